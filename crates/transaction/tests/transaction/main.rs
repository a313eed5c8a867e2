//! The tests of tlplab-transaction, in one program.
//!
//! * [`completer`]: Which requests are answered, how they are refused, what of a request comes back.
//! * [`lossy`]: A requester over a carrier that loses and reorders: retries, news of what was not delivered, tags that rest, time that begins anew.
//! * [`ordering`]: The ordering queue against an oracle written from the table (PCIe 5.0 §2.4.1, table 2-40).
//! * [`requester`]: A requester and completers in virtual time: whatever is interleaved, delayed, lost or corrupted, an operation ends once, with
//! * [`rules`]: What a completion must say to be its request's, what leaves for each kind of request, what its owner can ask and change.
//! * [`tags`]: Which tags a requester owns, which is next, when one may be used again.

mod completer;
mod lossy;
mod ordering;
mod requester;
mod rules;
mod tags;
