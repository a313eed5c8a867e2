//! Provisional: replaced by `tlplab_wire::dllp` as soon as it exists.
use tlplab_units::{FcClass, Vc};

/// Content of a DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Acknowledge
    Ack { /** Sequence */ sequence: u16 },
    /// Refuse
    Nak { /** Sequence */ sequence: u16 },
    /// InitFC1
    InitFc1(FlowControl),
    /// InitFC2
    InitFc2(FlowControl),
    /// UpdateFC
    UpdateFc(FlowControl),
    /// Feature
    Feature { /** Ack bit */ ack: bool, /** supported features */ features: u32 },
}

/// Fields of a flow control DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControl {
    /// virtual channel
    pub vc: Vc,
    /// class
    pub class: FcClass,
    /// HdrScale
    pub header_scale: u8,
    /// DataScale
    pub data_scale: u8,
    /// HdrFC
    pub header: u8,
    /// DataFC
    pub data: u16,
}
