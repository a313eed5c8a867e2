//! The device contract and the built-in devices.

pub mod contract;
pub mod host;
mod issue;
pub mod load;
pub mod random;
pub mod replay;

pub use contract::{
    Action, BarSpec, Context, Device, DmaError, Event, Identity, IdentityError, OpId, Refusal, ReplyToken,
};
pub use host::{DeviceInfo, HostAction, HostContext, HostEvent, HostMemory, HostProgram, OutOfMemory};
pub use issue::Target;
pub use load::{Load, LoadConfig, LoadError, LoadOp, Pattern};
pub use random::Random;
pub use replay::{Record, Relocation, Replay, ReplayError, ReplayPace};
pub use tlplab_transaction::{Bytes, Payload};
