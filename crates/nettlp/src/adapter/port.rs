//! One device, as the adapter keeps it.

use super::config::{AdapterConfig, DeviceConfig};
use super::counters::DeviceCounters;
use super::egress::{Egress, Full, Reply};
use super::function::Function;
use super::host::MmioToken;
use super::limit::Bucket;
use super::peer::{Passed, Split};
use crate::early::Early;
use crate::sequence::Sequence;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tlplab_device::Refusal;
use tlplab_transaction::{
    Completer, CompletionPolicy, Payload, Quarantine, RequestPolicy, Requester, RequesterConfig, TagConfig,
    memory_access,
};
use tlplab_units::{Bdf, Duration, Tag, Time};
use tlplab_wire::tlp::{CompletionStatus, Repr};

/// Why the host asks something of a device.
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
    /// What came from it.
    pub(super) arrivals: Sequence,
    pub(super) egress: Egress,
    /// What the host asks of it.
    pub(super) requester: Requester<Errand>,
    /// What came of its answers before its turn.
    pub(super) early: Early,
    /// Requests of other devices that were passed on to it and that it has not answered: at most one per device and tag.
    pub(super) passed: BTreeMap<(Bdf, Tag), Passed>,
    /// Reads of other devices that reach it in pieces.
    pub(super) splits: BTreeMap<u32, Split>,
    /// Requests of each device that wait in `requester` or `splits`.
    pub(super) load: Vec<usize>,
    /// Reads of its own that the host answers later.
    pub(super) waiting: usize,
    /// Has it been heard of?
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
            arrivals: Sequence::of_device(),
            bucket: Bucket::new(config.rate),
            egress: Egress::new(config.devices.len(), config.queue),
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

    /// Is there room for one more answer? What this says of a request holds for its answer.
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
        let reply = match data {
            Ok(data) => Reply::Data { completions: self.completer.succeed(request), data },
            Err(status) => {
                self.counters.refused += 1;
                let Some(completion) = self.completer.refuse(request, status) else { return };
                Reply::Status(completion)
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
        self.passed.values_mut().for_each(|passed| passed.until = passed.until.earlier(by));
    }

    /// What waits: to be sent, to be answered by the host or by the device.
    pub(super) fn backlog(&self) -> usize {
        self.waiting + self.egress.backlog() + self.requester.queued() + self.requester.in_flight()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.requester.deadline()
    }
}
