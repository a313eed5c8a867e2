//! The translation agent of the root complex: the addresses of devices become those of the host, and devices are told how (PCIe 5.0 chapter 10).
//!
//! ```text
//!                      ┌─ untranslated: IOMMU ── tables ──▶ memory, or another root port
//! memory request ──────┼─ translated, of a function that may: ──▶ memory, or another root port
//!                      ├─ asks for a translation: IOMMU ── tables ──▶ completion
//!                      └─ what is not mapped, not allowed, not trusted ──▶ fault: unsupported request
//! ```
//!
//! The time of a translation is the IOMMU's (`host_memory::iommu`); its result is looked up when that time is over. When software takes a
//! mapping away, all that is kept of it is forgotten at once here, and devices that may keep translations are told to forget theirs
//! (`invalidation`).

mod invalidation;
mod tables;

use crate::config::{FabricConfig, HostConfig, MapError, MapTarget};
use crate::kernel::ids::{NodeId, PortId};
use crate::kernel::queue::EventKind;
use crate::link::context::Context;
use crate::node::answer::Answer;
use crate::node::root::Root;
use crate::node::root::host_memory::Page;
use crate::packet::routing::Route;
use crate::packet::slab::TlpHandle;
pub use invalidation::InvalidationCount;
use invalidation::Invalidations;
use std::collections::BTreeMap;
pub use tables::FaultReason;
use tables::{Change, Found, Tables};
use tlplab_transaction::{Payload, memory_access};
use tlplab_units::{Bdf, Time};
use tlplab_wire::tlp::{AddressType, Kind, Repr, Translation};

/// Accesses of a function that the IOMMU refused for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationFault {
    /// The requester.
    pub requester: Bdf,
    /// The reason.
    pub reason: FaultReason,
    /// The number.
    pub count: u64,
    /// The first.
    pub first: Time,
    /// The address of the first.
    pub address: u64,
    /// The first was a write.
    pub write: bool,
}

/// Translations that devices asked for, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredTranslations {
    /// Answers with a translation.
    pub given: u64,
    /// Answers without a translation.
    pub denied: u64,
    /// Invalidations.
    pub invalidations: InvalidationCount,
}

/// Checks what is to be translated, and by whom.
pub(crate) fn check(config: &FabricConfig) -> Result<(), MapError> {
    let device = |name: &str| config.devices.iter().any(|device| device.name == name);
    for map in &config.host.maps {
        let target = match &map.to {
            MapTarget::Bar { device, .. } => Some(device),
            MapTarget::Address(_) => None,
        };
        if let Some(name) = map.device.iter().chain(target).find(|name| !device(name)) {
            return Err(MapError::NoDevice(name.clone()));
        }
    }
    config.devices.iter().filter_map(|device| device.ats).try_for_each(|ats| ats.check())
}

/// The translation agent.
#[derive(Clone)]
pub(crate) struct TranslationAgent {
    tables: Tables,
    /// The page size where addresses stay as they are.
    page: u64,
    /// Posted writes for memory that wait for the IOMMU.
    pub(super) held_writes: u64,
    faults: BTreeMap<(Bdf, FaultReason), TranslationFault>,
    /// Requests for translations that were answered with one, and with none.
    answered: [u64; 2],
    invalidations: Invalidations,
}

/// The kind of a memory request for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Its address is one of the host.
    Physical,
    /// Its address is to be translated.
    Virtual(NodeId),
    /// It asks for translations.
    Asks(NodeId),
    /// Its function may not do that.
    Untrusted(FaultReason),
}

impl TranslationAgent {
    /// The agent of a host, if anything is translated there.
    pub(crate) fn new(config: &FabricConfig, end_points: &[(&str, NodeId)]) -> Option<Box<Self>> {
        let host: &HostConfig = &config.host;
        let asks =
            host.iommu.is_some_and(|iommu| iommu.ats) && config.devices.iter().any(|d| d.ats.is_some());
        (asks || !host.maps.is_empty()).then(|| {
            Box::new(Self {
                tables: Tables::new(host, end_points),
                page: host.iommu.map_or(4096, |iommu| iommu.page),
                held_writes: 0,
                faults: BTreeMap::new(),
                answered: [0; 2],
                invalidations: Invalidations::default(),
            })
        })
    }

    /// The times at which the tables change.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Time> {
        self.tables.changes.iter().map(|change| change.at)
    }

    fn meaning(&self, cx: &Context, repr: &Repr) -> Meaning {
        let requester = repr.transaction_id().requester;
        let function = cx.function_with(requester);
        let trusted = function.filter(|node| cx.translator(*node).is_some());
        match (repr.attributes().at, function, trusted) {
            (AddressType::Translated, _, None) => Meaning::Untrusted(FaultReason::Translated),
            (AddressType::TranslationRequest, _, None) => Meaning::Untrusted(FaultReason::Asked),
            (AddressType::TranslationRequest, _, Some(node)) => Meaning::Asks(node),
            (AddressType::Untranslated, Some(node), _) if self.tables.translates(node) => {
                Meaning::Virtual(node)
            }
            _ => Meaning::Physical,
        }
    }

    /// The mapping of an address; the addresses of a function without mappings stay as they are.
    fn find(&self, function: NodeId, address: u64) -> Option<Found> {
        if self.tables.translates(function) {
            return self.tables.find(function, address);
        }
        Some(Found { address, page: self.page, read: true, write: true })
    }
}

impl Root {
    /// The page that a memory request, or an interrupt, needs the translation of; `None` if of none.
    pub(super) fn page_of(&self, cx: &Context, repr: &Repr) -> Option<Page> {
        let access = memory_access(repr)?;
        let as_it_is = || self.memory_system.as_ref()?.page(access.address);
        let posted = matches!(repr.kind(), Kind::MemWrite { .. });
        if posted && self.is_interrupt(access) {
            return None;
        }
        let Some(agent) = &self.agent else {
            return as_it_is().filter(|_| repr.attributes().at == AddressType::Untranslated);
        };
        match agent.meaning(cx, repr) {
            Meaning::Physical if repr.attributes().at == AddressType::Untranslated => as_it_is(),
            Meaning::Physical | Meaning::Untrusted(_) => None,
            Meaning::Virtual(node) | Meaning::Asks(node) if agent.tables.translates(node) => {
                let found = agent.tables.find(node, access.address);
                let page = found.map_or(4096, |found| found.page);
                Some(Page::of(node.0, access.address, page, found.is_some()))
            }
            Meaning::Virtual(_) | Meaning::Asks(_) => as_it_is(),
        }
    }

    /// A memory request of a device, where some addresses are translated. False if its own is one of the host's, and nothing is to be done.
    pub(super) fn translates(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) -> bool {
        let repr = cx.tlps.get(handle).repr;
        let (Some(access), Some(agent)) = (memory_access(&repr), &self.agent) else { return false };
        let meaning = agent.meaning(cx, &repr);
        if let Meaning::Untrusted(reason) = meaning {
            self.note_fault(cx, &repr, access.address, reason);
            self.refuse_request(cx, ingress, handle);
            return true;
        }
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        if meaning == Meaning::Physical || write && self.is_interrupt(access) {
            return false;
        }
        // What is for another device is not counted among the requests for memory, and waits for nothing but the IOMMU.
        let counted = match meaning {
            Meaning::Virtual(node) => {
                let found = agent.tables.find(node, access.address);
                found.is_none_or(|found| self.port_for(Route::Memory(found.address)).is_none())
            }
            _ => false,
        };
        if counted && write {
            self.count_posted_write();
        }
        let waits = match counted {
            true => self.memory_system.is_some() && self.hold_at_root(cx, ingress, handle),
            false => self.hold_redirected(cx, ingress, handle),
        };
        if !waits {
            self.translated(cx, ingress, handle, counted);
        }
        true
    }

    /// A TLP's wait at the IOMMU, or before it, is over.
    pub(crate) fn put_off_is_over(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        counted: bool,
    ) {
        if let Some(agent) = self.agent.as_mut().filter(|_| counted) {
            let posted = matches!(cx.tlps.get(handle).repr.kind(), Kind::MemWrite { .. });
            agent.held_writes -= u64::from(posted);
        }
        self.translated(cx, ingress, handle, counted);
    }

    /// A TLP has passed the IOMMU, or has not had to; `counted`: among those for memory.
    pub(super) fn translated(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, counted: bool) {
        let repr = cx.tlps.get(handle).repr;
        let access = memory_access(&repr);
        let meaning = match (&self.agent, access) {
            (Some(agent), Some(access)) if !self.is_interrupt(access) => agent.meaning(cx, &repr),
            _ => Meaning::Physical,
        };
        let (Some(access), Some(agent)) = (access, &self.agent) else {
            return self.send_on(cx, ingress, handle);
        };
        match meaning {
            Meaning::Physical => self.send_on(cx, ingress, handle),
            Meaning::Asks(node) => self.answer_translation(cx, ingress, handle, node),
            // Software has forbidden it meanwhile.
            Meaning::Untrusted(reason) => self.fault(cx, ingress, handle, counted, reason),
            Meaning::Virtual(node) => {
                let write = !matches!(repr.kind(), Kind::MemRead { .. });
                let found = agent.tables.find(node, access.address).ok_or(FaultReason::NotMapped);
                match found.and_then(|found| found.allows(write)) {
                    Ok(address) => self.go_to(cx, ingress, handle, address, counted),
                    Err(reason) => self.fault(cx, ingress, handle, counted, reason),
                }
            }
        }
    }

    /// A TLP that nothing is to be done about goes on.
    fn send_on(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle) {
        match self.port_for(crate::packet::routing::route_of(&cx.tlps.get(handle).repr)) {
            Some(port) => self.pass_to_peer(cx, ingress, port, handle),
            None => self.send_to_memory(cx, ingress, handle),
        }
    }

    /// A request goes on to the address that its own is translated to.
    fn go_to(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, address: u64, counted: bool) {
        let repr = cx.tlps.get(handle).repr;
        let moved = repr.in_page(address);
        let write = matches!(repr.kind(), Kind::MemWrite { .. });
        let handle = if moved == repr { handle } else { cx.readdress(ingress, handle, moved) };
        let Some(access) = memory_access(&moved) else { return };
        if let Some(port) = self.port_for(Route::Memory(access.address)) {
            if counted {
                self.uncount(cx, write, &moved);
            }
            if self.admits_peer(cx, ingress, port, handle) {
                self.pass_to_peer(cx, ingress, port, handle);
            }
            return;
        }
        let writes = !matches!(moved.kind(), Kind::MemRead { .. });
        let is_access = !matches!(moved.kind(), Kind::AtomicOp { .. });
        if !is_access || !self.holds(moved.transaction_id().requester, access, writes) {
            if counted {
                self.uncount(cx, write, &moved);
            }
            return self.refuse_request(cx, ingress, handle);
        }
        if !counted {
            match (write, &mut self.memory_system) {
                (true, _) => self.count_posted_write(),
                (false, Some(system)) if !writes => system.serve_read(),
                _ => {}
            }
        }
        self.send_to_memory(cx, ingress, handle);
    }

    /// A request that was counted among those for memory does not go there.
    fn uncount(&mut self, cx: &mut Context, write: bool, repr: &Repr) {
        if write {
            let behind = self.agent.as_ref().map_or(0, |agent| agent.held_writes);
            self.forget_posted_write(cx, behind);
        } else if matches!(repr.kind(), Kind::MemRead { .. }) {
            self.release_read(cx);
        }
    }

    /// A request may not go where it wants to: it is recorded, answered as unsupported if it is to be answered, and lost if not.
    #[cold]
    fn fault(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        counted: bool,
        reason: FaultReason,
    ) {
        let repr = cx.tlps.get(handle).repr;
        let address = memory_access(&repr).map_or(0, |access| access.address);
        self.note_fault(cx, &repr, address, reason);
        if counted {
            self.uncount(cx, matches!(repr.kind(), Kind::MemWrite { .. }), &repr);
        }
        self.refuse_request(cx, ingress, handle);
    }

    #[cold]
    fn note_fault(&mut self, cx: &Context, repr: &Repr, address: u64, reason: FaultReason) {
        let Some(agent) = &mut self.agent else { return };
        let requester = repr.transaction_id().requester;
        let write = !matches!(repr.kind(), Kind::MemRead { .. });
        let new = TranslationFault { requester, reason, count: 0, first: cx.now(), address, write };
        agent.faults.entry((requester, reason)).or_insert(new).count += 1;
    }

    /// A function asks for translations, and gets them, or the word that there are none.
    fn answer_translation(&mut self, cx: &mut Context, ingress: PortId, handle: TlpHandle, function: NodeId) {
        let tlp = cx.tlps.get_mut(handle);
        tlp.carry = true;
        let (repr, shape) = (tlp.repr, tlp.shape);
        cx.leave_request_queue(handle);
        cx.release_buffer(ingress, &shape);
        let Kind::MemRead { span, .. } = repr.kind() else { return };
        let Some(agent) = &self.agent else { return };
        let interrupts = &self.addresses.interrupts;
        let translation = |address: u64| {
            let found = agent.find(function, address).filter(|found| found.read || found.write);
            match found {
                _ if interrupts.contains(&address) => {
                    Translation { address, untranslated_only: true, write: true, ..Translation::NONE }
                }
                None => Translation::NONE,
                Some(Found { address, page, read, write }) => Translation {
                    address: address & !(page - 1),
                    bytes: page,
                    read,
                    write,
                    ..Translation::NONE
                },
            }
        };
        let first = span.address() & !0xFFF;
        let count = (u64::from(span.length().bytes()) / 8).max(1);
        let all: Vec<_> = (0..count).map(|n| translation(first.wrapping_add(n << 12))).collect();
        let none = all.iter().filter(|found| !found.read && !found.write).count() as u64;
        let data: Vec<u8> = all.iter().flat_map(|found| found.to_bytes()).collect();
        if let Some(agent) = &mut self.agent {
            agent.answered[0] += count - none;
            agent.answered[1] += none;
        }
        let data = data.into_iter().take(span.length().bytes() as usize).collect::<Vec<_>>();
        self.answer(cx, ingress, handle, Ok(Payload::from(data)));
    }

    /// Software changes the tables.
    pub(crate) fn change_tables(&mut self, cx: &mut Context, index: u64) {
        let Some(agent) = &mut self.agent else { return };
        let change: Change = agent.tables.changes[index as usize];
        let (functions, piece) = agent.tables.apply(change, &cx.devices);
        // That nothing was there is kept by nobody.
        if change.comes {
            return;
        }
        for function in functions {
            if let Some(system) = &mut self.memory_system {
                system.forget(function.0, piece.from, piece.bytes);
            }
            self.invalidate(cx, function, piece.from, piece.bytes);
        }
    }

    /// Mappings that hold from the start are there, and the others are to come.
    pub(crate) fn start_translation(&mut self, cx: &mut Context) {
        let Some(agent) = &self.agent else { return };
        let times: Vec<Time> = agent.changes().collect();
        for (index, at) in times.into_iter().enumerate() {
            if at <= cx.now() {
                self.change_tables(cx, index as u64);
            } else {
                cx.schedule(at, EventKind::MapChange, cx.node_event(self.node), index as u64);
            }
        }
    }

    /// The accesses that the IOMMU has refused, by function and reason.
    pub(crate) fn translation_faults(&self) -> impl Iterator<Item = &TranslationFault> {
        self.agent.iter().flat_map(|agent| agent.faults.values())
    }

    /// The translations that devices requested; `None` where no addresses are translated.
    pub(crate) fn answered_translations(&self) -> Option<AnsweredTranslations> {
        let agent = self.agent.as_ref()?;
        let [given, denied] = agent.answered;
        Some(AnsweredTranslations { given, denied, invalidations: agent.invalidations.count() })
    }
}
