//! One device, as the adapter keeps it.

use super::config::{AdapterConfig, DeviceConfig};
use super::counters::DeviceCounters;
use super::egress::{Clock, Egress, Full, Reply, Sent};
use super::function::Function;
use super::host::MmioToken;
use super::lanes::Lanes;
use super::limit::Bucket;
use super::peer::{Passed, Split};
use crate::datagram::with_digest;
use crate::early::Early;
use crate::engine::Outgoing;
use crate::sequence::FromDevice;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tlplab_device::Refusal;
use tlplab_transaction::{
    Completer, CompletionPolicy, Payload, Quarantine, RequestPolicy, Requester, RequesterConfig, TagConfig,
    memory_access,
};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::{CompletionStatus, Repr};

/// The reason of a request by the host to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// A program reads or writes.
    Mmio(MmioToken),
    /// The host's software writes the MSI-X table.
    Table,
    /// A piece of a read by another device, through a root complex.
    Piece { split: u32, offset: u32 },
    /// A write by another device, through a root complex.
    PeerWrite { from: usize },
}

/// One device.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) peer: Ipv4Addr,
    pub(super) bdf: Bdf,
    pub(super) function: Function,
    pub(super) counters: DeviceCounters,
    pub(super) bucket: Bucket,
    /// The datagrams that came from it.
    pub(super) arrivals: FromDevice,
    pub(super) egress: Egress,
    /// Its acknowledged links.
    pub(super) lanes: Lanes,
    /// The host's requests to it.
    pub(super) requester: Requester<Errand>,
    /// Results of its answers before its turn.
    pub(super) early: Early,
    /// Requests of other devices that were passed on to it and that it has not answered: at most one per device and tag.
    pub(super) passed: BTreeMap<(Bdf, Tag), Passed>,
    /// Reads of other devices that reach it in pieces.
    pub(super) splits: BTreeMap<u32, Split>,
    /// Requests of each device that wait in `requester` or `splits`.
    pub(super) load: Vec<usize>,
    /// Reads of its own that the host answers later.
    pub(super) waiting: usize,
    /// True once it has sent something.
    pub(super) seen: bool,
    completer: Completer,
    limit: usize,
}

impl Port {
    pub(super) fn new(config: &AdapterConfig, device: &DeviceConfig, function: Function) -> Self {
        // A network may bring the completions of a read in any order, so the last to come says nothing.
        let quarantine = Quarantine::Unordered(config.completion_timeout);
        let requester = RequesterConfig {
            tags: TagConfig { quarantine, limit: Some(config.tags), ..TagConfig::default() },
            mps: config.mps,
            mrrs: config.mrrs,
            split: RequestPolicy::Aligned,
            completion_timeout: Some(config.completion_timeout),
            ..RequesterConfig::new(config.requester)
        };
        Self {
            peer: device.peer,
            bdf: device.bdf,
            function,
            counters: DeviceCounters::default(),
            arrivals: FromDevice::default(),
            bucket: Bucket::new(config.rate),
            egress: Egress::new(config.devices.len(), config.queue),
            lanes: Lanes::default(),
            requester: Requester::new(requester),
            early: Early::default(),
            passed: BTreeMap::new(),
            splits: BTreeMap::new(),
            load: vec![0; config.devices.len()],
            waiting: 0,
            seen: false,
            completer: Completer {
                id: config.completer,
                rcb: config.rcb,
                mps: config.mps,
                policy: CompletionPolicy::Max,
            },
            limit: config.queue,
        }
    }

    /// True if there is room for one more answer. The result for a request also holds for its answer.
    pub(super) fn room(&mut self) -> Result<(), Full> {
        if self.waiting + self.egress.replies() < self.limit {
            return Ok(());
        }
        self.counters.overflows += 1;
        Err(Full)
    }

    /// Answers a request of the device.
    pub(super) fn reply(&mut self, request: &Repr, result: Result<Payload, Refusal>) {
        let wanted = memory_access(request).map_or(0, |access| u64::from(access.bytes));
        let data = match result {
            Ok(data) if data.len() == wanted => Ok(data),
            // A host that answers with other data than were asked for has failed.
            Ok(_) | Err(Refusal::CompleterAbort) => Err(CompletionStatus::CompleterAbort),
            Err(Refusal::UnsupportedRequest) => Err(CompletionStatus::UnsupportedRequest),
        };
        let digest = request.attributes().digest;
        let reply = match data {
            Ok(data) => Reply::Data { completions: self.completer.succeed(request), data, digest },
            Err(status) => {
                self.counters.refused += 1;
                let Some(completion) = self.completer.refuse(request, status) else { return };
                Reply::Status(with_digest(completion, digest))
            }
        };
        self.egress.reply(reply, self.requester.posted_mark());
    }

    /// Answers a request of the device with UR at once.
    pub(super) fn refuse(&mut self, request: &Repr, refusal: Refusal) {
        if self.room().is_ok() {
            self.reply(request, Err(refusal));
        }
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        self.bucket.rebase(by);
        self.requester.rebase(by);
        self.lanes.rebase(by);
    }

    /// The number of items that wait: to be sent, to be answered by the host or by the device.
    pub(super) fn backlog(&self) -> usize {
        let asked = self.requester.queued() + self.requester.in_flight();
        self.waiting + self.egress.backlog() + self.lanes.backlog() + asked
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        [self.requester.deadline(), self.lanes.deadline()].into_iter().flatten().min()
    }

    /// The next datagram for the device, and the posted errand that is over with it.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        clock: Clock,
        buffer: &mut [u8],
    ) -> Option<(Outgoing, Option<Errand>)> {
        let Self { lanes, egress, completer, peer, requester, .. } = self;
        if let Some(outgoing) =
            lanes.poll(now, *peer, completer.id, buffer, || egress.next_header(now, clock))
        {
            return Some((outgoing, None));
        }
        if !lanes.have_room() {
            return None;
        }
        let Sent { mut outgoing, tlp, done } = egress.poll(now, clock, *peer, requester, buffer)?;
        if tlp && let Some(link) = lanes.link(outgoing.from_port) {
            outgoing.len = link.seal(now, buffer, outgoing.len, outgoing.from_port, None);
        }
        Some((outgoing, done))
    }
}
