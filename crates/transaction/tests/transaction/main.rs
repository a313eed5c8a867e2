//! The tests of tlplab-transaction, in one program.
//!
//! * [`completer`]: The requests that are answered, refusals, the fields of a request that come back.
//! * [`lossy`]: A requester over a carrier that loses and reorders: retries, news of what was not delivered, tags that rest, time that begins anew.
//! * [`ordering`]: The ordering queue against an oracle written from the table (PCIe 5.0 §2.4.1, table 2-40).
//! * [`requester`]: A requester and completers in virtual time: whatever is interleaved, delayed, lost or corrupted, an operation ends once, with
//! * [`rules`]: The fields that a completion must match, the TLPs of each kind of request, the queries and changes of its owner.
//! * [`tags`]: The tags that a requester owns, their order and their reuse.

mod completer;
mod lossy;
mod ordering;
mod requester;
mod rules;
mod tags;
