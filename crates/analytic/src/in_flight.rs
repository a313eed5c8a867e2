//! Little's law: what is under way is rate times time. Each resource that a transfer holds for some time bounds the rate, and a rate
//! needs so much of each.

use crate::bandwidth::Operation;
use crate::connection::{Access, Connection, Party};
use crate::cut::Span;
use crate::link::{DLLP, FLIT};

/// Something of which there is only so much, held by a transfer for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Transfers that the device keeps account of, from their start until they are over.
    Transfers,
    /// Tags: one for each read request, until its last completion has come.
    Tags,
    /// Header credits for read requests, until they come back.
    NonPostedHeaders,
    /// Header credits for writes.
    PostedHeaders,
    /// Data credits for writes, in units of 16 bytes.
    PostedData,
    /// Bytes of the device's replay buffer, until the Ack has come.
    Replay,
}

impl Resource {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 6] = [
        Self::Transfers,
        Self::Tags,
        Self::NonPostedHeaders,
        Self::PostedHeaders,
        Self::PostedData,
        Self::Replay,
    ];
    /// For people and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transfers => "transfers",
            Self::Tags => "tags",
            Self::NonPostedHeaders => "non-posted headers",
            Self::PostedHeaders => "posted headers",
            Self::PostedData => "posted data",
            Self::Replay => "replay buffer",
        }
    }
}

/// The supply of each resource, in the order of [`Resource::ALL`]; `None` is as much as is needed.
pub type Supply = [Option<f64>; 6];

/// Times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// From the start of a transfer to its end: the last byte of a read's last completion is there, a write's data is in memory.
    pub latency: f64,
    /// From one end of the link to the other.
    pub flight: f64,
    /// From the arrival of a request at the host until its place in the receive buffer is free.
    pub drain: f64,
}

/// The limit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The wanted rate is reached.
    Demand,
    /// The link.
    Link,
    /// A resource.
    Resource(Resource),
}

/// The use of a resource by transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// The resource.
    pub resource: Resource,
    /// Units that each transfer takes.
    pub each: f64,
    /// Seconds for which it holds them.
    pub held: f64,
    /// Units under way, on average, at the rate that is wanted (or that the link allows).
    pub needed: f64,
    /// Units that there are.
    pub available: Option<f64>,
    /// Transfers per second that they allow.
    pub transfers: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct InFlight {
    /// Transfers per second that the link allows.
    pub link: f64,
    /// Transfers per second that are reached.
    pub reached: f64,
    /// The limit.
    pub limit: Limit,
    /// Each resource that such transfers use.
    pub uses: Vec<Use>,
}

/// The limit of transfers of which `wanted` are requested in a second (as many as possible if `None`), and how much of each resource
/// that rate needs.
pub fn in_flight(
    connection: &Connection,
    operation: Operation,
    transfer: Span,
    wanted: Option<f64>,
    delays: Delays,
    supply: Supply,
) -> InFlight {
    let cost = operation.cost(connection, transfer);
    let link = connection.rate(cost);
    let target = wanted.unwrap_or(link).min(link);
    let uses: Vec<Use> = Resource::ALL
        .into_iter()
        .zip(supply)
        .filter_map(|(resource, available)| {
            let (each, held) = holding(connection, operation, transfer, delays, resource);
            let needed = wanted.unwrap_or(link) * each * held;
            let transfers = available.map(|units| units / (each * held));
            (each > 0.0).then_some(Use { resource, each, held, needed, available, transfers })
        })
        .collect();
    let first = if wanted.is_some_and(|wanted| wanted <= link) { Limit::Demand } else { Limit::Link };
    let bounded = uses.iter().filter_map(|one| Some((one.transfers?, Limit::Resource(one.resource))));
    let (reached, limit) =
        bounded.fold((target, first), |least, next| if next.0 < least.0 { next } else { least });
    InFlight { link, reached, limit, uses }
}

/// Units of a resource that a transfer takes, and for how long.
fn holding(
    connection: &Connection,
    operation: Operation,
    transfer: Span,
    delays: Delays,
    resource: Resource,
) -> (f64, f64) {
    let count = |does: bool, count: u64| if does { count as f64 } else { 0.0 };
    let reads = count(operation != Operation::Write, connection.reads(transfer));
    let writes = count(operation != Operation::Read, connection.writes(transfer));
    let cost = |access| connection.cost(Party::Device, access, transfer).up.bytes;
    let request = cost(Access::Read) / connection.reads(transfer) as f64;
    let write = cost(Access::Write) / connection.writes(transfer) as f64;
    let longest = if operation == Operation::Read { request } else { write };
    match resource {
        Resource::Transfers => (1.0, delays.latency),
        Resource::Tags => (reads, delays.latency),
        Resource::NonPostedHeaders => (reads, credit_loop(connection, request, delays)),
        Resource::PostedHeaders => (writes, credit_loop(connection, write, delays)),
        Resource::PostedData => {
            let units = count(operation != Operation::Read, connection.write_credits(transfer));
            (units, credit_loop(connection, write, delays))
        }
        Resource::Replay => {
            (operation.cost(connection, transfer).up.bytes, ack_loop(connection, longest, delays))
        }
    }
}

/// Seconds from a TLP's first byte on the wire until the credits it took can be used again: its arrival, its place free, the UpdateFC as
/// late as the specification allows (PCIe 5.0 §2.6.1.2), its arrival.
fn credit_loop(connection: &Connection, bytes: f64, delays: Delays) -> f64 {
    bytes / connection.raw() + delays.flight + delays.drain + answer(connection, 1) + delays.flight
}

/// Seconds from a TLP's first byte on the wire until its Ack has come, as late as the specification allows (§3.6.3.1).
fn ack_loop(connection: &Connection, bytes: f64, delays: Delays) -> f64 {
    bytes / connection.raw() + delays.flight + answer(connection, 0) + delays.flight
}

/// Seconds that an Ack (0) or an UpdateFC (1) may take, itself included. In flit mode the next flit carries it.
fn answer(connection: &Connection, which: usize) -> f64 {
    let Connection { link, mistakes, mps, .. } = connection;
    if mistakes.flits(link) {
        return 2.0 * FLIT.1 / connection.raw();
    }
    let symbols = mistakes.dllp_limits(link, *mps)[which];
    symbols * mistakes.symbol_bytes(link) / connection.raw() + DLLP / connection.raw()
}
