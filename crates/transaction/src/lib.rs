//! Transaction layer, sans-IO: tags, splitting, reassembly, completion rules, ordering.

pub mod completer;
pub mod error;
pub mod ordering;
pub mod payload;
pub mod requester;
pub mod split;
pub mod tags;

pub use bytes::Bytes;
pub use completer::{Access, Completer, CompletionTlp, Completions, memory_access};
pub use error::{CompletionError, Field, RequestError, Unexpected};
pub use ordering::{OrderedQueue, OrderingAttributes};
pub use payload::{Payload, data_bytes, padding_before};
pub use requester::{Classes, Outcome, Outgoing, Progress, Requester, RequesterConfig};
pub use split::{Chunk, CompletionChunk, CompletionPolicy, RequestPolicy, split_completion, split_request};
pub use tags::{Quarantine, TagBits, TagConfig, TagOrder, TagPool};
