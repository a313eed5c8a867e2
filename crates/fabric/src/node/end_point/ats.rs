//! Address translation services of a function (PCIe 5.0 chapter 10): it asks the root complex for the translations of its addresses, keeps them, and
//! sends its requests with translated addresses.
//!
//! ```text
//! operation ─▶ requester: next request ── kept? ──▶ translated ─▶ egress
//!                              │ no: its stream waits          ▲
//!                              ▼                               │
//!               request for a translation ─▶ root complex ─▶ completion
//! ```
//!
//! Other streams go on meanwhile, and so do posted requests behind reads of their own stream, as with reads that wait for a tag. Translations are asked
//! for ahead of their requests, in the order in which operations came: as many as may be outstanding, and no more than are kept until their first use.
//! One that was asked for further ahead would make others go before they are used, and have to be asked for again.
//!
//! If there is no translation, or not for this kind of access, the request goes untranslated, and the IOMMU reports it. That there is none is not
//! kept (§10.2.3.5). What is asked while an invalidation comes for it is asked again. An invalidation is completed when no read is under way that used
//! what it took away; writes that did are before its completion in any case.

use crate::config::AtsConfig;
use crate::kernel::ids::PortId;
use crate::link::context::{Context, Translator};
use crate::node::end_point::EndPoint;
use crate::node::initiator::Ticket;
use crate::packet::slab::TlpHandle;
use std::collections::VecDeque;
use tlplab_transaction::{
    Classes, CompletionError, Next, Outcome, Outgoing, Payload, Requester, memory_access,
};
use tlplab_units::{Bdf, FcClass, Tag, Time};
use tlplab_wire::tlp::{
    AddressType, Attributes, Invalidation, Kind, Message, Repr, TransactionId, Translation,
};

const PAGE: u64 = 4096;

/// The counters of a device's translations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTranslations {
    /// Requests that found their translation kept.
    pub hits: u64,
    /// Requests that waited for their translation.
    pub waited: u64,
    /// Translations that were asked for.
    pub asked: u64,
    /// Of those, the ones that there is none for, or that were not answered.
    pub denied: u64,
    /// Translations that made room for others.
    pub evicted: u64,
    /// Invalidations that were completed.
    pub invalidations: u64,
    /// Translations that they took away.
    pub invalidated: u64,
}

/// A translation that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: u64,
    translation: Translation,
    used: u64,
    /// No request has used it yet.
    fresh: bool,
}

/// A translation that was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    page: u64,
    /// An invalidation has come for it meanwhile.
    stale: bool,
}

/// An invalidation that waits for reads.
#[derive(Clone, Copy, Debug)]
struct Drain {
    range: Invalidation,
    itag: u8,
    requester: Bdf,
}

/// Address translation services of a function.
#[derive(Clone, Debug)]
pub(crate) struct Ats {
    config: AtsConfig,
    /// Software lets it.
    pub(crate) enabled: bool,
    /// Nobody answers requests for translations: it asks for none any more.
    refused: bool,
    kept: Vec<Kept>,
    clock: u64,
    asked: Vec<Asked>,
    /// The translations to request, once the requester is at hand.
    wanted: Vec<u64>,
    /// First and last page of operations, in their order, whose translations are still to be asked for.
    ahead: VecDeque<(u64, u64)>,
    /// Addresses of requests that wait for their translation.
    blocked: Vec<u64>,
    /// Pages that there is no translation of: their next request goes untranslated.
    denied: Vec<u64>,
    /// Reads under way with a translated address: their tag and their page, as the device sees it.
    reads: Vec<(Tag, u64)>,
    drains: Vec<Drain>,
    /// By class, posted and non-posted: requests wait for a translation.
    pub(crate) waits: [bool; 2],
    pub(crate) count: DeviceTranslations,
}

impl Ats {
    /// The stream of the requester that its own requests and messages go in; those of the device come after it.
    pub(crate) const STREAM: u16 = 0;

    pub(crate) fn new(config: AtsConfig) -> Self {
        Self {
            config,
            enabled: false,
            refused: false,
            kept: Vec::new(),
            clock: 0,
            asked: Vec::new(),
            wanted: Vec::new(),
            ahead: VecDeque::new(),
            blocked: Vec::new(),
            denied: Vec::new(),
            reads: Vec::new(),
            drains: Vec::new(),
            waits: [false; 2],
            count: DeviceTranslations::default(),
        }
    }

    /// Nothing is kept, and nothing awaited any more; `enabled`: whether it may ask for more.
    pub(crate) fn restart(&mut self, enabled: bool) {
        *self = Self { enabled, count: self.count, ..Self::new(self.config) };
    }

    fn translates(&self) -> bool {
        self.enabled && !self.refused
    }

    /// The next TLP that may leave.
    pub(crate) fn poll(
        &mut self,
        requester: &mut Requester<Ticket>,
        now: Time,
        room: Classes,
        id: Bdf,
    ) -> Option<Outgoing<Ticket>> {
        if !self.translates() {
            self.waits = [false; 2];
            return requester.poll_request(now, room);
        }
        self.look_ahead();
        loop {
            self.waits = [false; 2];
            let outgoing = requester.poll_request_if(now, room, &mut |next| self.may_go(next));
            if self.wanted.is_empty() {
                return outgoing.map(|outgoing| self.translated(outgoing));
            }
            for page in std::mem::take(&mut self.wanted) {
                self.ask(requester, now, page, id);
            }
            if let Some(outgoing) = outgoing {
                return Some(self.translated(outgoing));
            }
        }
    }

    /// True if the translation of a request is kept, or there is none; if not, it is to be asked for, and of what follows.
    fn may_go(&mut self, next: Next) -> bool {
        let page = next.address / PAGE;
        self.pass(page);
        if self.find(next.address).is_some() || self.denied.contains(&page) {
            return true;
        }
        self.waits[next.class.index()] = true;
        if !self.blocked.contains(&next.address) {
            self.blocked.push(next.address);
        }
        if !self.is_known(page) && self.under_way() < usize::from(self.config.outstanding) {
            self.wanted.push(page);
        }
        false
    }

    /// An operation will need the translations of these addresses.
    fn expect(&mut self, address: u64, bytes: u64) {
        if self.translates() {
            let last = address.saturating_add(bytes.max(1) - 1) / PAGE;
            self.ahead.push_back((address / PAGE, last));
            self.look_ahead();
        }
    }

    /// Asks for what operations will need, the first ones first, as far as there is room.
    fn look_ahead(&mut self) {
        while let Some(&(page, last)) = self.ahead.front() {
            if page > last {
                self.ahead.pop_front();
                continue;
            }
            let fresh = self.kept.iter().filter(|kept| kept.fresh).count() + self.under_way();
            if self.under_way() >= usize::from(self.config.outstanding)
                || fresh >= usize::from(self.config.entries)
            {
                return;
            }
            let kept = self.kept.iter().find(|kept| kept.covers(page * PAGE));
            let next = kept.map_or(page + 1, |kept| (kept.from + kept.translation.bytes) / PAGE);
            if kept.is_none() && !self.is_known(page) {
                self.wanted.push(page);
            }
            if let Some(first) = self.ahead.front_mut() {
                first.0 = next;
            }
        }
    }

    /// It is the turn of a request for a page: of its operation, that page and those before it are not asked for ahead any more.
    fn pass(&mut self, page: u64) {
        let of = self.ahead.iter_mut().find(|(first, last)| (*first..=*last).contains(&page));
        if let Some((first, _)) = of {
            *first = page + 1;
        }
    }

    /// Requests for translations that are not answered.
    fn under_way(&self) -> usize {
        self.asked.len() + self.wanted.len()
    }

    /// True if a page is asked for, or has no translation.
    fn is_known(&self, page: u64) -> bool {
        self.asked.iter().any(|asked| asked.page == page)
            || self.wanted.contains(&page)
            || self.denied.contains(&page)
    }

    /// Requests the wanted translations.
    pub(crate) fn ask_for_wanted(&mut self, requester: &mut Requester<Ticket>, now: Time, id: Bdf) {
        for page in std::mem::take(&mut self.wanted) {
            self.ask(requester, now, page, id);
        }
    }

    fn ask(&mut self, requester: &mut Requester<Ticket>, now: Time, page: u64, id: Bdf) {
        let attributes = Attributes {
            at: AddressType::TranslationRequest,
            digest: requester.config().attributes.digest,
            ..Attributes::default()
        };
        let template = Repr::mem_read(TransactionId::new(id, Tag::default()), page * PAGE, 8);
        let Ok(template) = template.and_then(|repr| repr.with_attributes(attributes)) else { return };
        if requester.request(now, Self::STREAM, Ticket::Translation { page }, template, None).is_ok() {
            self.asked.push(Asked { page, stale: false });
            self.count.asked += 1;
        }
    }

    fn find(&mut self, address: u64) -> Option<Translation> {
        self.clock += 1;
        let clock = self.clock;
        let kept = self.kept.iter_mut().find(|kept| kept.covers(address))?;
        (kept.used, kept.fresh) = (clock, false);
        Some(kept.translation)
    }

    /// A request that leaves has the address that its translation says.
    fn translated(&mut self, mut outgoing: Outgoing<Ticket>) -> Outgoing<Ticket> {
        let Ticket::Transaction(_) = outgoing.op else { return outgoing };
        let Some(access) = memory_access(&outgoing.repr) else { return outgoing };
        let page = access.address / PAGE;
        let write = !matches!(outgoing.repr.kind(), Kind::MemRead { .. });
        let waited = self.blocked.iter().position(|address| *address == access.address);
        let waited = waited.map(|at| self.blocked.swap_remove(at)).is_some();
        let Some(kept) = self.kept.iter().find(|kept| kept.covers(access.address)).copied() else {
            self.denied.retain(|denied| *denied != page);
            return outgoing;
        };
        let translation = kept.translation;
        let allowed = if write { translation.write } else { translation.read };
        if !allowed || translation.untranslated_only {
            return outgoing;
        }
        *if waited { &mut self.count.waited } else { &mut self.count.hits } += 1;
        let moved = outgoing.repr.in_page(translation.address + (access.address - kept.from));
        let attributes = Attributes { at: AddressType::Translated, ..*moved.attributes() };
        if let Ok(repr) = moved.with_attributes(attributes) {
            outgoing.repr = repr;
            if repr.fc_class() != FcClass::Posted {
                self.reads.push((repr.transaction_id().tag, page));
            }
        }
        outgoing
    }

    /// A request for a translation is over.
    fn answered(&mut self, page: u64, result: &Result<Payload, CompletionError>) {
        let Some(at) = self.asked.iter().position(|asked| asked.page == page) else { return };
        if self.asked.remove(at).stale {
            return; // asked again, if it is needed
        }
        let bytes: Option<[u8; 8]> = match result {
            Ok(payload) => payload.bytes().and_then(|bytes| bytes.get(..8)?.try_into().ok()),
            Err(CompletionError::UnsupportedRequest { .. }) => {
                self.refused = true;
                self.denied.clear();
                self.ahead.clear();
                None
            }
            Err(_) => None,
        };
        let translation = bytes.map_or(Translation::NONE, Translation::from_bytes);
        if !translation.read && !translation.write {
            self.count.denied += 1;
            self.denied.push(page);
            return;
        }
        self.keep(page * PAGE, translation);
    }

    fn keep(&mut self, address: u64, translation: Translation) {
        let from = address & !(translation.bytes - 1);
        self.clock += 1;
        // What it covers is of it from now on.
        self.kept.retain(|kept| {
            kept.from + kept.translation.bytes <= from || from + translation.bytes <= kept.from
        });
        if self.kept.len() >= usize::from(self.config.entries) {
            self.evict();
        }
        self.kept.push(Kept { from, translation, used: self.clock, fresh: true });
    }

    /// One makes room: that which was used least recently. If none was used yet, the one that was asked for last, to be asked for again before those
    /// that follow it.
    fn evict(&mut self) {
        let all = 0..self.kept.len();
        let used = all.clone().filter(|at| !self.kept[*at].fresh).min_by_key(|at| self.kept[*at].used);
        let Some(at) = used.or_else(|| all.max_by_key(|at| self.kept[*at].used)) else { return };
        let Kept { from, fresh, .. } = self.kept.swap_remove(at);
        if fresh {
            self.ahead.push_front((from / PAGE, from / PAGE));
        }
        self.count.evicted += 1;
    }

    /// The translations of a range are forgotten.
    fn forget(&mut self, range: Invalidation) {
        let before = self.kept.len();
        self.kept.retain(|kept| !overlap(range, kept.from, kept.translation.bytes));
        self.count.invalidated += (before - self.kept.len()) as u64;
        for asked in &mut self.asked {
            asked.stale |= overlap(range, asked.page * PAGE, PAGE);
        }
    }

    /// A request with that tag is over, in whatever way.
    fn request_over(&mut self, tag: Tag) {
        if let Some(at) = self.reads.iter().position(|(other, _)| *other == tag) {
            self.reads.swap_remove(at);
        }
    }

    /// An invalidation that no read waits for any more.
    fn next_drained(&mut self) -> Option<Drain> {
        let reads = &self.reads;
        let drained = |drain: &Drain| !reads.iter().any(|(_, page)| overlap(drain.range, page * PAGE, PAGE));
        let at = self.drains.iter().position(drained)?;
        Some(self.drains.remove(at))
    }
}

impl Kept {
    fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.from).is_some_and(|offset| offset < self.translation.bytes)
    }
}

fn overlap(range: Invalidation, from: u64, bytes: u64) -> bool {
    range.address < from.saturating_add(bytes) && from < range.address.saturating_add(range.bytes)
}

impl EndPoint {
    /// Software has let the function ask for translations, or forbidden it.
    pub(crate) fn obey_translation_control(&mut self, cx: &mut Context) {
        let Some(view) = self.function.space.translation() else { return };
        if view.enabled != cx.translator(self.node).is_some() {
            cx.host.translators.retain(|other| other.function != self.node);
            if view.enabled {
                let (function, queue_depth, since) = (self.node, view.queue_depth, cx.now());
                cx.host.translators.push(Translator { function, queue_depth, since });
            }
        }
        if let Some(ats) = self.ats.as_mut().filter(|ats| ats.enabled != view.enabled) {
            ats.restart(view.enabled);
            cx.agenda.pump(self.node);
        }
    }

    /// An operation reaches the requester: its translations are asked for.
    pub(crate) fn want_translations(&mut self, now: Time, address: u64, bytes: u64) {
        if let Some(ats) = &mut self.ats {
            ats.expect(address, bytes);
            ats.ask_for_wanted(&mut self.initiator.requester, now, self.function.id);
        }
    }

    /// A message for the function: it is to forget translations, or nothing that concerns it.
    pub(crate) fn take_message(
        &mut self,
        cx: &mut Context,
        ingress: PortId,
        handle: TlpHandle,
        message: Message,
    ) {
        let tlp = cx.tlps.get(handle);
        let range = tlp.payload.bytes().and_then(|bytes| bytes.get(..8)?.try_into().ok());
        if let (Some(itag), Some(range), Some(ats)) = (message.itag(), range, &mut self.ats)
            && message.target() == Some(self.function.id)
        {
            let range = Invalidation::from_bytes(range);
            ats.forget(range);
            ats.drains.push(Drain { range, itag, requester: message.id().requester });
            self.complete_invalidations(cx);
        }
        cx.consume(ingress, handle);
    }

    /// Invalidations that no read waits for are completed.
    fn complete_invalidations(&mut self, cx: &mut Context) {
        let (now, id) = (cx.now(), self.function.id);
        let Some(ats) = &mut self.ats else { return };
        while let Some(Drain { itag, requester, .. }) = ats.next_drained() {
            let Ok(message) = Message::invalidate_completion(id, requester, 1 << itag, 1) else { continue };
            ats.count.invalidations += 1;
            let initiator = &mut self.initiator;
            let ticket = Ticket::Interrupt(initiator.flow(0));
            let digest = initiator.requester.config().attributes.digest;
            let attributes = Attributes { digest, ..Attributes::default() };
            let template = Repr::from(Kind::Message(message)).with_attributes(attributes);
            if let Ok(template) = template {
                // A message without data is a request that cannot be refused.
                let _ = initiator.requester.request(now, Ats::STREAM, ticket, template, None);
            }
            cx.agenda.pump(self.node);
        }
    }

    /// The meaning of a completion, or the lack of one, for translated requests.
    pub(crate) fn note_translated(&mut self, cx: &mut Context, outcome: &Outcome<Ticket>) {
        let Some(ats) = &mut self.ats else { return };
        let (progress, result) = match outcome {
            Outcome::RequestDone(progress) => (progress, None),
            Outcome::OperationDone(progress, result) => (progress, Some(result)),
            Outcome::Partial(_) | Outcome::Again(_) | Outcome::Unexpected(_) => return,
        };
        ats.request_over(progress.tag);
        if let (Ticket::Translation { page }, Some(result)) = (progress.op, result) {
            ats.answered(page, result);
        }
        if !ats.drains.is_empty() {
            self.complete_invalidations(cx);
        }
    }
}
