//! Resources that processes share: memory ([`Mapping`]), and descriptors that come with the bytes of a stream ([`receive`]).

mod mapping;
mod receive;

pub use mapping::Mapping;
pub use receive::receive;
