//! The transaction layer, sans-IO: from transfers to TLPs, and from TLPs to results.
//!
//! A requester wants bytes at an address. That becomes requests ([`split`]), each with a tag ([`tags`]); a completer answers each
//! with completions ([`completer`]); the requester checks them, puts the data together and reports the result of the operation
//! ([`requester`]). On their way TLPs wait in queues that obey the ordering table ([`ordering`]).
//!
//! ```
//! use tlplab_transaction::*;
//! use tlplab_units::{Bdf, Mps, Rcb, Time};
//! let mut requester = Requester::new(RequesterConfig::new(Bdf(0x0100)));
//! let host = Completer { id: Bdf(0), rcb: Rcb::ALL[0], mps: Mps::ALL[0], policy: CompletionPolicy::Max };
//!
//! requester.read(Time::ZERO, 0, "my read", 0x103C, 200)?;
//! let request = requester.poll_request(Time::ZERO, Classes::ALL).expect("tags are free");
//! for completion in host.succeed(&request.repr) {
//!     let data = vec![0x5A; completion.bytes as usize];
//!     match requester.handle_completion(Time::ZERO, &completion.repr, Some(&data)) {
//!         Outcome::Partial(_) => assert!(!completion.last),
//!         Outcome::OperationDone(_, Ok(data)) => assert_eq!(data.bytes(), Some(&[0x5A; 200][..])),
//!         other => panic!("{other:?}"),
//!     }
//! }
//! assert!(requester.is_idle());
//! # Ok::<(), RequestError>(())
//! ```
//!
//! Time is an input: everything that happens later is announced by `deadline`. Data are [`Payload`]s: bytes, or in length-only runs
//! just their number. Errors a request can end with are a [`CompletionError`]; completions that belong to nobody are
//! [`Unexpected`] and touch nothing.
//!
//! Read on in [`requester`], then [`ordering`].

pub mod completer;
pub mod error;
pub mod ordering;
pub mod payload;
pub mod requester;
pub mod split;
pub mod tags;

pub use bytes::Bytes;
pub use completer::{Access, Completer, CompletionTlp, Completions, memory_access};
pub use error::{CompletionError, Field, RequestError, Undeliverable, Unexpected};
pub use ordering::{OrderedQueue, OrderingAttributes};
pub use payload::{Payload, data_bytes, lay_out, padding_before};
pub use requester::{
    Classes, DEFERRABLE_WRITE_LIMIT, Next, Outcome, Outgoing, PostedMark, Progress, Requester,
    RequesterConfig,
};
pub use split::{Chunk, CompletionChunk, CompletionPolicy, RequestPolicy, split_completion, split_request};
pub use tags::{Quarantine, TagBits, TagConfig, TagOrder, TagPool};
