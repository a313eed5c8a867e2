//! The destination of a TLP: decided by bridge registers only, however they were set.

use std::ops::RangeInclusive;
use tlplab_cfgspace::{AccessControl, ConfigSpace};
use tlplab_units::Bdf;
use tlplab_wire::tlp::{Kind, Repr, message::Routing};

/// The registers of a PCI-PCI bridge that route (PCI-to-PCI Bridge Architecture 1.2 §3.2.5). A window with `limit < base` is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeRegisters {
    /// Bus above.
    pub primary: u8,
    /// First bus below.
    pub secondary: u8,
    /// Last bus below.
    pub subordinate: u8,
    /// Memory window, inclusive.
    pub memory: Window,
    /// Prefetchable memory window, inclusive.
    pub prefetchable: Window,
    /// I/O window, inclusive.
    pub io: Window,
    /// Bus Master Enable: memory and I/O requests from below go up.
    pub upstream: bool,
    /// ARI Forwarding Enable: the functions right below have numbers of 8 bits, and no device number.
    pub ari: bool,
    /// The access control of the port between peers.
    pub access: AccessControl,
}

/// An inclusive range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First address.
    pub base: u64,
    /// Last address.
    pub limit: u64,
}

impl Window {
    /// No address at all.
    pub const CLOSED: Self = Self { base: u64::MAX, limit: 0 };

    /// True if `address` is inside.
    pub const fn contains(&self, address: u64) -> bool {
        self.base <= address && address <= self.limit
    }
}

impl From<RangeInclusive<u64>> for Window {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self { base: *range.start(), limit: *range.end() }
    }
}

impl BridgeRegisters {
    /// As after reset: nothing is behind the bridge.
    pub const RESET: Self = Self {
        primary: 0,
        secondary: 0,
        subordinate: 0,
        memory: Window::CLOSED,
        prefetchable: Window::CLOSED,
        io: Window::CLOSED,
        upstream: false,
        ari: false,
        access: AccessControl::ABSENT,
    };

    pub(crate) fn claims_address(&self, address: u64) -> bool {
        self.memory.contains(address) || self.prefetchable.contains(address)
    }

    /// True if the bridge passes this route upwards. Memory and I/O requests need its Bus Master Enable (PCIe 5.0 §7.5.1.1.3).
    pub(crate) fn passes_up(&self, route: Route) -> bool {
        self.upstream || !matches!(route, Route::Memory(_) | Route::Io(_))
    }

    pub(crate) const fn claims_bus(&self, bus: u8) -> bool {
        self.secondary != 0 && self.secondary <= bus && bus <= self.subordinate
    }
}

/// The routing in the registers of a bridge's function.
pub(crate) fn registers_of(space: &ConfigSpace) -> BridgeRegisters {
    let Some(bridge) = space.bridge() else { return BridgeRegisters::RESET };
    BridgeRegisters {
        primary: bridge.primary,
        secondary: bridge.secondary,
        subordinate: bridge.subordinate,
        memory: bridge.memory.map_or(Window::CLOSED, Window::from),
        prefetchable: bridge.prefetchable.map_or(Window::CLOSED, Window::from),
        io: bridge.io.map_or(Window::CLOSED, Window::from),
        upstream: bridge.bus_master,
        ari: space.pcie().is_some_and(|pcie| pcie.ari_forwarding),
        access: space.access_control(),
    }
}

/// The routing of a TLP (PCIe 5.0 §2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Memory(u64),
    Io(u64),
    Id(Bdf),
    ToRoot,
    FromRoot,
    Here,
}

pub(crate) fn route_of(repr: &Repr) -> Route {
    match repr.kind() {
        Kind::MemRead { span, .. } | Kind::MemWrite { span, .. } | Kind::DeferrableMemWrite { span, .. } => {
            Route::Memory(span.address())
        }
        Kind::AtomicOp { target, .. } => Route::Memory(target.address()),
        Kind::IoRead { port, .. } | Kind::IoWrite { port, .. } => Route::Io(u64::from(port.address())),
        Kind::CfgRead { target, .. } | Kind::CfgWrite { target, .. } => Route::Id(target.function()),
        Kind::Completion(completion) => Route::Id(completion.id().requester),
        Kind::Message(message) => match message.routing() {
            Routing::ToRootComplex | Routing::GatherToRootComplex => Route::ToRoot,
            Routing::ByAddress => Route::Memory(u64::from_be_bytes(message.content())),
            Routing::ById => message.target().map_or(Route::Here, Route::Id),
            Routing::Broadcast => Route::FromRoot,
            Routing::Local => Route::Here,
        },
    }
}

/// True if the bridge passes this route downwards.
pub(crate) fn claims(bridge: &BridgeRegisters, route: Route) -> bool {
    match route {
        Route::Memory(address) => bridge.claims_address(address),
        Route::Io(address) => bridge.io.contains(address),
        Route::Id(id) => bridge.claims_bus(id.bus()),
        Route::ToRoot | Route::FromRoot | Route::Here => false,
    }
}
