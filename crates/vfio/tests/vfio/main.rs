//! A client's dialogues with a port, message by message.

mod client;
mod dialogues;
mod ordering;
mod properties;
