//! Data link layer, sans-IO: credits, ack/nak and replay, link up, flits
