//! What the fuzz targets and the smoke test of `tlplab-wire` feed bytes to: whatever they are, nothing panics, and what is valid
//! survives the way there and back.

use tlplab_wire::{dllp as link, flit as flits, nettlp as datagrams, tlp as tlps};
use tlps::{Packet, ParseOptions, Repr, TagWidth};

/// Bytes of a TLP.
pub(crate) fn tlp(bytes: &[u8]) {
    let packet = Packet::new(bytes);
    look_at_everything(&packet);
    for tags in [TagWidth::Five, TagWidth::Eight, TagWidth::Ten] {
        for truncated in [false, true] {
            match Repr::parse_with(&packet, ParseOptions { tags, truncated }) {
                Ok(repr) => there_and_back(&repr, &packet, truncated),
                Err(error) => assert!(!format!("{error}").is_empty()),
            }
        }
    }
}

fn there_and_back(repr: &Repr, packet: &Packet<'_>, truncated: bool) {
    assert!(format!("{repr}").starts_with(repr.name()));
    let mut payload = packet.payload().to_vec();
    let whole = payload.len() == repr.payload_bytes() as usize;
    assert!(whole || truncated, "{repr}: a payload of {} bytes was accepted", payload.len());
    payload.resize(repr.payload_bytes() as usize, 0);
    let mut bytes = vec![0; repr.wire_bytes() as usize];
    let digest = packet.digest().unwrap_or(0);
    let end = repr.emit_with_digest(&mut bytes, &payload, digest).expect("what was read can be written");
    assert_eq!(end, bytes.len());
    let again = Repr::parse(&Packet::new(&bytes)).expect("what was written can be read");
    assert_eq!(*repr, again);
    assert_eq!(Packet::new(&bytes).payload(), payload);
}

fn look_at_everything(p: &Packet<'_>) {
    let _ = (
        p.fmt(),
        p.type_bits(),
        p.fmt_type(),
        p.has_data(),
        p.tc(),
        p.ln(),
        p.th(),
        p.td(),
        p.ep(),
        p.attr(),
    );
    let _ = (
        p.at(),
        p.length_field(),
        p.length(),
        p.is_completion(),
        p.requester(),
        p.tag_byte(),
        p.t9_t8(),
        p.tag(),
    );
    let _ = (p.byte7(), p.address(), p.ph(), p.target(), p.register(), p.completer(), p.status(), p.bcm());
    let _ = (
        p.byte_count(),
        p.lower_address(),
        p.message_content(),
        p.header_len(),
        p.expected_len(),
        p.digest(),
    );
    let _ = (p.check_len(), p.payload(), p.ecrc_matches(), p.prefixes().count(), p.raw_prefixes().count());
}

/// Bytes of a DLLP, CRC included; and the same with a CRC that is right, so that the fields are reached.
pub(crate) fn dllp(bytes: &[u8]) {
    let packet = link::Packet::new(bytes);
    let _ = (packet.type_bits(), packet.sequence(), packet.crc_matches());
    if let Ok(repr) = link::Repr::parse(&packet) {
        assert_eq!(packet.crc_matches(), Some(true), "{repr}");
    }
    if let Some(content) = packet.content()
        && let Ok(repr) = link::Repr::from_content(content)
    {
        assert_eq!(link::Repr::parse(&link::Packet::new(&repr.emit())), Ok(repr));
        assert!(format!("{repr}").starts_with(repr.name()));
    }
}

/// Bytes of a flit; fewer are filled up with zeros.
pub(crate) fn flit(bytes: &[u8]) {
    assert_eq!(flits::Packet::new(bytes).is_ok(), bytes.len() == flits::BYTES);
    let mut whole = [0; flits::BYTES];
    let len = bytes.len().min(flits::BYTES);
    whole[flits::BYTES - len..].copy_from_slice(&bytes[..len]);
    let packet = flits::Packet::new(&whole).expect("256 bytes");
    if let Ok(repr) = flits::Repr::parse(&packet) {
        let tlp_bytes = packet.tlp_bytes().try_into().expect("236 bytes");
        let again = repr.emit(tlp_bytes);
        let again = flits::Packet::new(&again).expect("256 bytes");
        assert_eq!(flits::Repr::parse(&again), Ok(repr));
        assert_eq!((again.crc(), again.fec()), (packet.crc(), packet.fec()));
    }
}

/// A UDP payload of the protocols beside the TLPs.
fn nettlp_apis(bytes: &[u8]) {
    use datagrams::{config_api, link, message_api, registers};
    if let Some((numbers, tlp)) = link::open(bytes) {
        let mut again = bytes.to_vec();
        again.copy_within(14..14 + tlp.len(), 6);
        assert_eq!(link::seal(&mut again, 6 + tlp.len(), numbers), Ok(bytes.len()));
        assert_eq!(again, bytes);
    }
    if let Ok(access) = config_api::ConfigAccess::parse(bytes) {
        assert_eq!(access.emit(), bytes[..config_api::BYTES]);
    }
    if let Ok(request) = message_api::Request::parse(bytes) {
        assert_eq!(request.emit(), bytes);
    }
    if let Ok(table) = message_api::parse_msix_table(bytes) {
        assert_eq!(message_api::emit_msix_table(&table), bytes);
    }
    if let Ok(access) = registers::RegisterAccess::parse(bytes) {
        assert_eq!(access.emit(), bytes[..registers::BYTES]);
    }
}

/// A UDP payload in NetTLP encapsulation, or of the protocols beside it.
pub(crate) fn nettlp(bytes: &[u8]) {
    nettlp_apis(bytes);
    match datagrams::parse_udp_payload(bytes) {
        Ok((header, packet)) => {
            assert_eq!(header.emit(), bytes[..datagrams::HEADER_BYTES]);
            assert_eq!(packet.bytes(), &bytes[datagrams::HEADER_BYTES..]);
            tlp(packet.bytes());
        }
        Err(error) => assert!(bytes.len() <= datagrams::HEADER_BYTES, "{error}"),
    }
}
