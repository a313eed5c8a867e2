//! Transaction layer, sans-IO: tags, splitting, reassembly, completion rules, ordering.

pub mod ordering;
pub mod split;
pub mod tags;

pub use ordering::{OrderedQueue, OrderingAttributes};
pub use split::{Chunk, CompletionChunk, CompletionPolicy, RequestPolicy, split_completion, split_request};
pub use tags::{Quarantine, TagBits, TagConfig, TagOrder, TagPool};
