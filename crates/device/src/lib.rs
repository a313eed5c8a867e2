//! The device contract and the built-in devices.

pub mod contract;
pub mod host;

pub use contract::{
    Action, BarSpec, Context, Device, DmaError, Event, Identity, IdentityError, OpId, Refusal, ReplyToken,
};
pub use host::{DeviceInfo, HostAction, HostContext, HostEvent, HostMemory, HostProgram, OutOfMemory};
pub use tlplab_transaction::{Bytes, Payload};
