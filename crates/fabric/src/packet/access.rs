//! Access control between peers: what a downstream port does with TLPs from below (PCIe 5.0 §6.12.3).

use crate::packet::routing::BridgeRegisters;
use tlplab_cfgspace::AcsControls;
use tlplab_wire::tlp::{AddressType, Kind, Repr};

/// The way of a TLP to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerWay {
    /// Straight to the peer's port.
    Direct,
    /// Up, to the root complex, which sends it down again if it lets it.
    Redirected,
    /// Nowhere: an ACS violation.
    Forbidden,
}

/// The reason that a port refuses a TLP from below its way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerRefusal {
    /// Source validation: its requester is on no bus below the port (PCIe 5.0 §6.12.1.1).
    SourceValidation,
    /// Translation blocking: its address is translated, or it asks for a translation.
    TranslationBlocking,
    /// Egress control: the vector forbids the port of the peer.
    EgressControl,
    /// The peer is below the same port, which sends nothing back without upstream forwarding.
    NoUpstreamForwarding,
    /// The root complex passes no requests between its ports.
    RootComplex,
}

impl PeerRefusal {
    /// True if access control is the reason, or its absence.
    pub const fn is_access_control(self) -> bool {
        !matches!(self, Self::RootComplex)
    }
}

impl BridgeRegisters {
    /// True if a TLP from below is of a requester that is below, and has an address of a kind that may come from there.
    #[inline]
    pub(crate) fn admits(&self, repr: &Repr) -> bool {
        let on = self.access.enabled;
        if on == AcsControls::NONE || matches!(repr.kind(), Kind::Completion(_)) {
            return true;
        }
        let address = !on.contains(AcsControls::TRANSLATION_BLOCKING)
            || repr.attributes().at == AddressType::Untranslated;
        self.validates_source(repr) && address
    }

    fn validates_source(&self, repr: &Repr) -> bool {
        let bus = repr.transaction_id().requester.bus();
        !self.access.enabled.contains(AcsControls::SOURCE_VALIDATION)
            || (self.secondary <= bus && bus <= self.subordinate)
    }

    /// The reason that it does not [admit](Self::admits) a TLP.
    pub(crate) fn objection_to(&self, repr: &Repr) -> PeerRefusal {
        match self.validates_source(repr) {
            false => PeerRefusal::SourceValidation,
            true => PeerRefusal::TranslationBlocking,
        }
    }

    /// The way of a TLP from below this port to its peer, the port with that number.
    #[inline]
    pub(crate) fn way_to_peer(&self, repr: &Repr, number: usize) -> PeerWay {
        let on = self.access.enabled;
        if on == AcsControls::NONE {
            return PeerWay::Direct;
        }
        let redirects = on.contains(AcsControls::REQUEST_REDIRECT);
        if matches!(repr.kind(), Kind::Completion(_)) {
            let redirected =
                on.contains(AcsControls::COMPLETION_REDIRECT) && !repr.attributes().relaxed_ordering;
            return if redirected { PeerWay::Redirected } else { PeerWay::Direct };
        }
        let translated = repr.attributes().at == AddressType::Translated;
        if translated && on.contains(AcsControls::DIRECT_TRANSLATED) {
            return PeerWay::Direct;
        }
        match (on.contains(AcsControls::EGRESS_CONTROL), redirects) {
            (true, _) if self.access.forbidden >> number & 1 == 0 => PeerWay::Direct,
            (true, false) => PeerWay::Forbidden,
            (_, true) => PeerWay::Redirected,
            (false, false) => PeerWay::Direct,
        }
    }

    /// True if a TLP from below that is for what is below the same port goes up.
    pub(crate) fn forwards_up(&self) -> bool {
        self.access.enabled.contains(AcsControls::UPSTREAM_FORWARDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tlplab_cfgspace::AccessControl;
    use tlplab_units::{Bdf, Tag};
    use tlplab_wire::tlp::{Attributes, TransactionId};

    /// A port with buses 3 to 5 below.
    fn port(enabled: AcsControls, forbidden: u64) -> BridgeRegisters {
        let access = AccessControl { present: true, enabled, forbidden };
        BridgeRegisters { secondary: 3, subordinate: 5, access, ..BridgeRegisters::RESET }
    }

    fn read(bus: u8, at: AddressType) -> Repr {
        let id = TransactionId::new(Bdf::new(bus, 0, 0).unwrap(), Tag::default());
        let repr = Repr::mem_read(id, 0x1_0000_0000, 64).unwrap();
        repr.with_attributes(Attributes { at, ..Attributes::default() }).unwrap()
    }

    #[test]
    fn source_validation_admits_requesters_of_the_buses_below() {
        let port = port(AcsControls::SOURCE_VALIDATION, 0);
        let admitted: Vec<_> =
            (0..8).filter(|bus| port.admits(&read(*bus, AddressType::Untranslated))).collect();
        assert_eq!(admitted, [3, 4, 5]);
        let without = super::tests::port(AcsControls::ALL, 0);
        assert!(!without.admits(&read(2, AddressType::Untranslated)));
        let without = super::tests::port(AcsControls::REQUEST_REDIRECT, 0);
        assert!(without.admits(&read(2, AddressType::Untranslated)));
    }

    #[test]
    fn translation_blocking_admits_untranslated_addresses_only() {
        for (at, admitted) in [
            (AddressType::Untranslated, true),
            (AddressType::TranslationRequest, false),
            (AddressType::Translated, false),
        ] {
            assert_eq!(port(AcsControls::TRANSLATION_BLOCKING, 0).admits(&read(3, at)), admitted);
            assert!(port(AcsControls::SOURCE_VALIDATION, 0).admits(&read(3, at)));
        }
    }

    /// Table 6-11 of PCIe 5.0: egress control and request redirect; direct translated overrides both.
    #[test]
    fn the_way_of_a_request_follows_from_redirect_vector_and_translation() {
        use PeerWay::{Direct, Forbidden, Redirected};
        let (r, e, t) =
            (AcsControls::REQUEST_REDIRECT, AcsControls::EGRESS_CONTROL, AcsControls::DIRECT_TRANSLATED);
        let cases = [
            (AcsControls::NONE, 0b100, Direct, Direct),
            (r, 0, Redirected, Redirected),
            (e, 0b100, Forbidden, Forbidden),
            (e, 0b010, Direct, Direct),
            (e | r, 0b100, Redirected, Redirected),
            (e | r, 0b010, Direct, Direct),
            (r | t, 0, Redirected, Direct),
            (e | t, 0b100, Forbidden, Direct),
            (e | r | t, 0b100, Redirected, Direct),
        ];
        for (enabled, forbidden, plain, translated) in cases {
            let port = port(enabled, forbidden);
            assert_eq!(port.way_to_peer(&read(3, AddressType::Untranslated), 2), plain, "{enabled:?}");
            assert_eq!(port.way_to_peer(&read(3, AddressType::Translated), 2), translated, "{enabled:?}");
        }
    }
}
