//! Bytes as a source of choices, and any function made of them.

use tlplab_cfgspace::*;
use tlplab_units::{Generation, Mps, Width};

/// Bytes that are used up; zeros behind them.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    pub(crate) fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
    pub(crate) fn dword(&mut self) -> u32 {
        u32::from(self.word()) | u32::from(self.word()) << 16
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn bit(&mut self) -> bool {
        self.byte() & 1 == 1
    }
    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }
}

/// Any function: a bridge or an end point, with any of the capabilities. What does not go together is refused later.
pub(crate) fn any_layout(choices: &mut Bytes<'_>) -> Layout {
    let identity = Identity { revision: choices.byte(), ..Identity::new(0x71AB, choices.word(), 0x06_04_00) };
    let port = PortType::ALL[usize::from(choices.below(6))];
    let mut layout = match port {
        PortType::RootPort | PortType::Upstream | PortType::Downstream => {
            Layout::new(any_bridge(choices, identity))
        }
        _ => Layout::new(Type0 {
            bars: any_bars(choices, true),
            rom: choices.bit().then(|| 1 << (11 + choices.below(14))),
            interrupt_pin: choices.below(5),
            multi_function: choices.bit(),
            subsystem: (1, 2),
            ..Type0::new(identity)
        }),
    };
    for nth in 0..choices.below(7) {
        layout = layout.capability(any_capability(choices, nth, port));
    }
    let mut kinds = choices.word();
    for kind in 0..11 {
        if kinds & 1 == 1 {
            let capability = any_extended(choices, kind, port, &layout.header);
            layout = layout.extended(capability);
        }
        kinds >>= 1;
    }
    layout
}

fn any_bridge(choices: &mut Bytes<'_>, identity: Identity) -> Type1 {
    let [first, second, ..] = any_bars(choices, true);
    Type1 {
        bars: [first, second.filter(|bar| !bar.kind.is_wide())],
        rom: choices.bit().then(|| 1 << (11 + choices.below(14))),
        io: [None, Some(IoWindow::Bits16), Some(IoWindow::Bits32)][usize::from(choices.below(3))],
        prefetchable: choices.bit(),
        interrupt_pin: choices.below(5),
        multi_function: choices.bit(),
        ..Type1::new(identity)
    }
}

/// Base addresses, of a function or (not `own`) of virtual functions.
fn any_bars(choices: &mut Bytes<'_>, own: bool) -> [Option<Bar>; 6] {
    let mut bars = [None; 6];
    let mut index = 0;
    while index < 6 {
        let least = if own { 4 } else { 12 };
        bars[index] = match choices.below(5) {
            1 if own => Some(Bar::io(1 << (2 + choices.below(7)))),
            2 => Some(Bar::memory32(1 << (least + choices.below(32 - least)))),
            3 if index < 5 => Some(Bar::memory64(1 << (least + choices.below(64 - least)))),
            4 if index < 5 => Some(Bar::memory64(1 << (least + choices.below(64 - least))).prefetchable()),
            _ => None,
        };
        index += if bars[index].is_some_and(|bar| bar.kind.is_wide()) { 2 } else { 1 };
    }
    bars
}

fn any_capability(choices: &mut Bytes<'_>, nth: u8, port: PortType) -> Capability {
    match nth {
        0 => {
            let generation = Generation::ALL[usize::from(choices.byte()) % Generation::ALL.len()];
            let width = Width::ALL[usize::from(choices.byte()) % Width::ALL.len()];
            let slot = Slot { number: choices.byte().into(), hot_plug: choices.bit(), ..Slot::default() };
            let has_link = port != PortType::RcIntegrated;
            let link = has_link.then_some(LinkPart::new(generation, width));
            Capability::Pcie(Pcie {
                version: if choices.bit() { PcieVersion::V1 } else { PcieVersion::V2 },
                mps: Mps::ALL[usize::from(choices.below(6))],
                slot: (choices.bit() && port.is_downstream()).then_some(slot),
                extended_tag: choices.bit(),
                ten_bit_completer: choices.bit(),
                ten_bit_requester: choices.bit(),
                ltr: choices.bit(),
                read_boundary_128: choices.bit(),
                ari_forwarding: choices.bit(),
                function_level_reset: choices.bit(),
                ..Pcie::new(port, link)
            })
        }
        1 => PowerManagement { d1: choices.bit(), d2: choices.bit(), wakes_from: choices.below(32) }.into(),
        2 => Msi { vectors: 1 << choices.below(6), wide: choices.bit(), masking: choices.bit() }.into(),
        3 => {
            let vectors = 1 + u16::from(choices.byte());
            MsiX { vectors, table: (choices.below(6), 0), pending: (choices.below(6), 0x1000) }.into()
        }
        4 => Capability::SubsystemId { vendor: choices.word(), subsystem: choices.word() },
        _ => Capability::Vendor((0..choices.below(20)).collect()),
    }
}

fn any_extended(choices: &mut Bytes<'_>, kind: u8, port: PortType, header: &Header) -> ExtendedCapability {
    match kind {
        0 => Aer { root: port == PortType::RootPort, ecrc: choices.bit() }.into(),
        1 => ExtendedCapability::SerialNumber(choices.dword().into()),
        2 => {
            let controls = AcsControls::from_bits(choices.byte());
            let egress = controls.contains(AcsControls::EGRESS_CONTROL);
            let ports = if egress { 1 + choices.byte() % 64 } else { 0 };
            let enabled = AcsControls::from_bits(choices.byte() & controls.bits());
            let forbidden = u64::from(choices.byte()) & ((1 << ports.min(8)) - 1);
            ExtendedCapability::Acs(Acs { controls, enabled, ports, forbidden })
        }
        3 => ExtendedCapability::Ari { next_function: choices.byte() },
        4 => {
            let (total, bars) = (1 + u16::from(choices.byte()), any_bars(choices, false));
            SrIov { total, first_offset: choices.word(), stride: choices.word(), device: 1, bars }.into()
        }
        5 => ExtendedCapability::Ats { queue_depth: 1 + choices.below(32) },
        6 => ExtendedCapability::Pasid { width: choices.below(21) },
        7 => ExtendedCapability::Ltr,
        8 => {
            let bars: &[_] = match header {
                Header::Type0(header) => &header.bars,
                Header::Type1(header) => &header.bars,
            };
            let memory =
                (0u8..).zip(bars).filter_map(|(bar, found)| found.filter(|f| !f.kind.is_io()).map(|_| bar));
            let resizable = memory.map(|bar| Resizable {
                bar,
                sizes: 0x3F | choices.dword() & 0xFFF,
                size: choices.below(6),
            });
            ResizableBar { bars: resizable.collect() }.into()
        }
        9 => ExtendedCapability::SecondaryPcie { lanes: 1 + choices.below(32) },
        _ => {
            ExtendedCapability::VendorSpecific { id: 7, revision: 1, bytes: (0..choices.below(40)).collect() }
        }
    }
}
