//! A client's dialogues with a port, message by message.

mod client;
mod dialogues;
mod elsewhere;
mod junk;
mod ordering;
mod properties;
mod tlps;
