//! The tests of tlplab-datalink, in one program.
//!
//! * [`cost`]: The formulas of the crate's page for the number of Acks and UpdateFCs, against counted ones.
//! * [`dialogue`]: Conversations of two non-flit ports, unit by unit with times, each of which ends in silence.
//! * [`drop_replay`]: Conversations of two ports without credits, unit by unit with times, each of which ends in silence.
//! * [`flit`]: Conversations of two ports in flit mode. Gen6 x16: a flit takes 2 ns; a lone acknowledgement waits 16 of them, 32 ns.
//! * [`ports`]: One end of a link of each kind, by itself: its reaction to every unit, its counters.
//! * [`properties`]: Two ports and a channel that loses, damages and delays, for any schedule, any buffers, either mode: every TLP is delivered
//! * [`resting`]: Ports that rest, and refreshes that are left out: the traffic after them is as if they had been sent.

mod cost;
mod dialogue;
mod drop_replay;
mod flit;
mod pair;
mod ports;
mod properties;
mod resting;
