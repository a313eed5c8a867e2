//! Faults: what goes wrong on one direction of a link, as wrappers around the channel ([`Faults`]) and around the port that sends
//! ([`Tampering`]). Neither the data link layer nor the nodes know of them.

use crate::config::{Damage, Fault, FaultKind, FaultUnit, Forgery, Malformation, Tamper};
use crate::packet::flaw::Flaw;
use tlplab_datalink::Unit;
use tlplab_device::Random;
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Tag};
use tlplab_wire::dllp::{self, FcPhase, Sequence};
use tlplab_wire::tlp::{Attributes, Completion, CompletionStatus, Kind, Repr, Span, TransactionId};

/// Counts what concerns it, and hits some of that.
#[derive(Clone, Copy, Debug)]
struct Counter {
    /// The fault's place among those of its link.
    place: usize,
    first: u64,
    count: u64,
    seen: u64,
}

impl Counter {
    fn new(place: usize, first: u64, count: u64) -> Self {
        Self { place, first, count, seen: 0 }
    }

    /// Counts one more; true if it is hit.
    fn hits(&mut self) -> bool {
        self.seen += 1;
        self.seen >= self.first && self.seen - self.first < self.count
    }

    /// The fault's place, and how many it has hit.
    fn struck(&self) -> (usize, u64) {
        (self.place, (self.seen + 1).saturating_sub(self.first).min(self.count))
    }

    /// True if it is still to hit something.
    fn is_pending(&self) -> bool {
        self.struck().1 < self.count
    }
}

/// The faults of units on the wire.
#[derive(Clone)]
pub(crate) struct Faults {
    bit_errors: Option<BitErrors>,
    damages: Vec<(FaultUnit, Counter, Damage)>,
    forgeries: Vec<(Counter, Forgery)>,
}

impl Faults {
    /// `faults` have their places among those of the link.
    pub(crate) fn new<'a>(faults: impl Iterator<Item = (usize, &'a Fault)>, random: &Random) -> Self {
        let mut all = Self { bit_errors: None, damages: Vec::new(), forgeries: Vec::new() };
        for (place, fault) in faults {
            match fault.kind {
                FaultKind::BitErrors { numerator } => {
                    let random = random.clone();
                    all.bit_errors = Some(BitErrors { place, struck: 0, good: u64::MAX - numerator, random });
                }
                FaultKind::Nth { unit, n, count, damage } => {
                    all.damages.push((unit, Counter::new(place, n, count), damage));
                }
                FaultKind::Forge { n, count, how } => {
                    all.forgeries.push((Counter::new(place, n, count), how));
                }
                FaultKind::Tamper { .. }
                | FaultKind::Down { .. }
                | FaultKind::Reset { .. }
                | FaultKind::Narrow { .. } => {}
            }
        }
        all
    }

    /// The number of units that each fault has hit, by its place.
    pub(crate) fn struck(&self) -> impl Iterator<Item = (usize, u64)> {
        let counters = self.damages.iter().map(|(_, counter, _)| counter.struck());
        let forged = self.forgeries.iter().map(|(counter, _)| counter.struck());
        counters.chain(forged).chain(self.bit_errors.iter().map(|errors| (errors.place, errors.struck)))
    }

    /// True if a refresh of credits may be hit, or counts for a fault that is still to hit something.
    pub(crate) fn concern_refreshes(&self) -> bool {
        let refresh = |unit: &FaultUnit| match unit {
            FaultUnit::Dllp | FaultUnit::Flit => true,
            FaultUnit::Tlp => false,
            FaultUnit::Called(name) => name.starts_with("UpdateFC"),
        };
        let is_changed = |how: &Forgery| matches!(how, Forgery::TakeBack | Forgery::Overgrant(_));
        self.bit_errors.is_some()
            || self.damages.iter().any(|(unit, counter, _)| refresh(unit) && counter.is_pending())
            || self.forgeries.iter().any(|(counter, how)| is_changed(how) && counter.is_pending())
    }

    /// Changes what a DLLP says, and tells what happens to a unit on its way. `tlp` is the name of a TLP.
    pub(crate) fn strike<H>(&mut self, unit: &mut Unit<H>, tlp: Option<&'static str>) -> Option<Damage> {
        if self.bit_errors.is_none() && self.damages.is_empty() && self.forgeries.is_empty() {
            return None;
        }
        if let Unit::Dllp(dllp) = unit {
            for (counter, how) in &mut self.forgeries {
                if let Some(forged) = forged(dllp, *how)
                    && counter.hits()
                {
                    *dllp = forged;
                }
            }
        }
        let (kind, name) = match unit {
            Unit::Tlp(_) => (FaultUnit::Tlp, tlp.unwrap_or_default()),
            Unit::Dllp(dllp) => (FaultUnit::Dllp, dllp.name()),
            Unit::Flit(_) => (FaultUnit::Flit, ""),
        };
        let mut hit = None;
        for (unit, counter, damage) in &mut self.damages {
            let concerned = match *unit {
                FaultUnit::Called(called) => name == called || name.split('-').next() == Some(called),
                unit => unit == kind,
            };
            if concerned && counter.hits() {
                hit = hit.or(Some(*damage));
            }
        }
        let flipped = self.bit_errors.as_mut().is_some_and(|b| b.strikes(u64::from(unit.wire_bytes()) * 8));
        hit.or(flipped.then_some(Damage::Corrupt))
    }
}

/// The DLLP with a content that breaks the protocol; `None` if it is of another type.
fn forged(dllp: &dllp::Repr, how: Forgery) -> Option<dllp::Repr> {
    match (dllp, how) {
        (dllp::Repr::Ack(sequence), Forgery::AckUnsent) => {
            // A quarter of the ring ahead: neither old nor sent.
            Some(dllp::Repr::Ack(Sequence::new(sequence.value() + 1024)))
        }
        (dllp::Repr::FlowControl(fc), Forgery::TakeBack) if fc.phase == FcPhase::Update => {
            // Half the ring of eight bits and one: whatever is left, that is no valid limit.
            let mut forged = *fc;
            forged.header = fc.header.wrapping_add(129);
            Some(dllp::Repr::FlowControl(forged))
        }
        (dllp::Repr::FlowControl(fc), Forgery::Overgrant(more)) if fc.phase == FcPhase::Update => {
            // 0 stands in all UpdateFCs of credits without limit.
            let header = if fc.header == 0 { 0 } else { fc.header.wrapping_add(more) };
            let data = if fc.data() == 0 { 0 } else { fc.data() + u16::from(more) };
            let mut forged = dllp::FlowControl::new(fc.phase, fc.class, fc.vc, header, data);
            (forged.header_scale, forged.data_scale) = (fc.header_scale, fc.data_scale);
            Some(dllp::Repr::FlowControl(forged))
        }
        _ => None,
    }
}

/// The changes to TLPs before they are given to the data link layer.
#[derive(Clone)]
pub(crate) struct Tampering(Vec<(Option<&'static str>, Counter, Tamper)>);

impl Tampering {
    /// `faults` have their places among those of the link.
    pub(crate) fn new<'a>(faults: impl Iterator<Item = (usize, &'a Fault)>) -> Self {
        let tampers = faults.filter_map(|(place, fault)| match fault.kind {
            FaultKind::Tamper { only, n, count, how } => Some((only, Counter::new(place, n, count), how)),
            _ => None,
        });
        Self(tampers.collect())
    }

    /// The number of TLPs that each fault has changed, by its place.
    pub(crate) fn struck(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(_, counter, _)| counter.struck())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes a TLP, if it is hit, and returns the change. Its size stays.
    pub(crate) fn strike(&mut self, repr: &Repr, payload: &Payload) -> Option<(Repr, Option<Flaw>, Tamper)> {
        let mut result = None;
        for (only, counter, how) in &mut self.0 {
            if only.is_none_or(|name| name == repr.name())
                && let Some((changed, flaw)) = tampered(repr, payload, *how)
                && counter.hits()
            {
                result = result.or(Some((changed, flaw, *how)));
            }
        }
        result
    }
}

/// The data of a TLP after tampering: as much as before.
pub(crate) fn tampered_data(payload: &Payload, how: Tamper) -> Payload {
    let Payload::Bytes(bytes) = payload else { return payload.clone() };
    match how {
        Tamper::Ones => vec![0xFF; bytes.len()].into(),
        Tamper::Data { byte, flip } => {
            let mut changed = bytes.to_vec();
            for (at, mask) in changed.iter_mut().skip(usize::from(byte)).zip(flip.to_le_bytes()) {
                *at ^= mask;
            }
            changed.into()
        }
        _ => payload.clone(),
    }
}

/// The TLP after tampering; `None` if this cannot be done to it.
fn tampered(repr: &Repr, payload: &Payload, how: Tamper) -> Option<(Repr, Option<Flaw>)> {
    let has_data = repr.payload_dw() > 0;
    let attributes = *repr.attributes();
    let request = !matches!(repr.kind(), Kind::Completion(_) | Kind::Message(_));
    let config = matches!(repr.kind(), Kind::CfgRead { .. } | Kind::CfgWrite { .. });
    let flaw = |possible: bool, flaw| possible.then_some((*repr, Some(flaw)));
    match how {
        Tamper::Poison => {
            let attributes = Attributes { poisoned: true, ..attributes };
            repr.with_attributes(attributes).ok().map(|repr| (repr, None))
        }
        Tamper::Ecrc => flaw(attributes.digest, Flaw::Ecrc),
        Tamper::Malform(rule) => {
            let possible = match rule {
                Malformation::Type => true,
                Malformation::Length | Malformation::Payload => has_data,
                Malformation::Boundary => {
                    matches!(repr.kind(), Kind::MemRead { .. } | Kind::MemWrite { .. })
                }
            };
            flaw(possible, Flaw::Malformed(rule))
        }
        Tamper::Refuse(CompletionStatus::RetryStatus) => {
            flaw(config, Flaw::Refused(CompletionStatus::RetryStatus))
        }
        Tamper::Refuse(status) => flaw(request, Flaw::Refused(status)),
        Tamper::Lose => flaw(true, Flaw::Lost),
        Tamper::Late(by) => flaw(true, Flaw::Late(by)),
        Tamper::Twice => Some((*repr, None)),
        Tamper::Ones => {
            let completion = matches!(repr.kind(), Kind::Completion(_));
            (has_data && completion).then_some((*repr, None))
        }
        Tamper::Data { byte, .. } => {
            let known = matches!(payload, Payload::Bytes(bytes) if usize::from(byte) < bytes.len());
            (has_data && known).then_some((*repr, None))
        }
        Tamper::Tag | Tamper::Requester | Tamper::ByteCount => {
            let Kind::Completion(completion) = repr.kind() else { return None };
            let changed = miscompleted(completion, how)?;
            Repr::from(Kind::Completion(changed)).with_attributes(attributes).ok().map(|repr| (repr, None))
        }
        Tamper::Address => {
            let kind = misaddressed(repr.kind())?;
            Repr::from(kind).with_attributes(attributes).ok().map(|repr| (repr, None))
        }
    }
}

fn miscompleted(completion: &Completion, how: Tamper) -> Option<Completion> {
    let TransactionId { requester, tag } = completion.id();
    let id = match how {
        // 512 tags away: few requesters have that many.
        Tamper::Tag => TransactionId::new(requester, Tag::new(tag.value() ^ 0x200)?),
        Tamper::Requester => TransactionId::new(Bdf(requester.0 ^ 1), tag),
        _ => completion.id(),
    };
    let byte_count = match how {
        Tamper::ByteCount if completion.byte_count() == 4096 => return None,
        Tamper::ByteCount => completion.byte_count() + 1,
        _ => completion.byte_count(),
    };
    let (completer, lower_address) = (completion.completer(), completion.lower_address());
    let changed = match completion.length() {
        Some(length) => Completion::with_data(completer, id, byte_count, lower_address, length),
        None => Completion::new(completer, id, completion.status(), byte_count, lower_address),
    };
    let changed = changed.ok()?;
    Some(if completion.is_locked() { changed.locked() } else { changed })
}

/// The request for the last page of its address space: below 4 GiB that is firmware's, above it nobody's.
fn misaddressed(kind: &Kind) -> Option<Kind> {
    let elsewhere = |span: &Span| {
        let page = if span.is_64_bit() { 0x7FFF_FFFF_FFFF_F000 } else { 0xFFFF_F000 };
        Span::with_enables(page | span.address() & 0xFFF, span.length(), span.enables()).ok()
    };
    Some(match *kind {
        Kind::MemRead { id, span, locked } => Kind::MemRead { id, span: elsewhere(&span)?, locked },
        Kind::MemWrite { id, span } => Kind::MemWrite { id, span: elsewhere(&span)? },
        _ => return None,
    })
}

#[derive(Clone)]
struct BitErrors {
    /// The fault's place among those of its link, and the units that it has hit.
    place: usize,
    struck: u64,
    /// Probability that a bit is good, in units of 2^-64.
    good: u64,
    random: Random,
}

impl BitErrors {
    /// True if any of `bits` bits is flipped. Integer exponentiation keeps the answer the same on every machine.
    fn strikes(&mut self, mut bits: u64) -> bool {
        let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
        let (mut all_good, mut power) = (u64::MAX, self.good);
        while bits > 0 {
            if bits & 1 == 1 {
                all_good = times(all_good, power);
            }
            power = times(power, power);
            bits >>= 1;
        }
        let hit = self.random.next() > all_good;
        self.struck += u64::from(hit);
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_errors_strike_as_often_as_they_should() {
        let mut errors = BitErrors {
            place: 0,
            struck: 0,
            good: u64::MAX - u64::MAX / 100_000,
            random: Random::keyed(1, "link", "errors"),
        };
        let hits = (0..20_000).filter(|_| errors.strikes(2240)).count();
        // 1 - (1 - 1e-5)^2240 = 2.215 %: 443 of 20 000, σ = 21
        assert!((380..=506).contains(&hits), "{hits}");
    }
}
