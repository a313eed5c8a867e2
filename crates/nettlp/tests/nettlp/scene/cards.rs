//! An adapter with two cards, spoken to datagram by datagram. TLPs are written by hand from PCIe 5.0 §2.2.

use std::net::{Ipv4Addr, SocketAddrV4};
use tlplab_device::DmaError;
use tlplab_nettlp::adapter::host::MmioAccess;
use tlplab_nettlp::adapter::{
    Adapter, AdapterConfig, DeviceConfig, DeviceCounters, FunctionKind, MemoryHost, MsixHome,
};
use tlplab_nettlp::{Datagram, Engine, MAX_DATAGRAM};
use tlplab_transaction::Payload;
use tlplab_units::{Bdf, Time};

pub(crate) const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
pub(crate) const SECOND_BAR4: u64 = 0xB000_0000;

/// An adapter with two devices, 1b:00.0 and 1c:00.0.
pub(crate) struct Scene {
    pub(crate) adapter: Adapter<MemoryHost>,
    pub(crate) now: Time,
}

/// Destination, UDP port, and payload.
pub(crate) type Sent = (Ipv4Addr, u16, Vec<u8>);

/// Two cards with their MSI-X tables there.
pub(crate) fn cards(msix: MsixHome) -> AdapterConfig {
    let card = |peer, bdf| DeviceConfig {
        function: FunctionKind::Card { window: 256 << 20, msix },
        ..DeviceConfig::card(peer, Bdf(bdf))
    };
    AdapterConfig::new(LOCAL, vec![card(FIRST, 0x1B00), card(SECOND, 0x1C00)])
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(MsixHome::Bar2)
    }

    pub(crate) fn with(msix: MsixHome) -> Self {
        Self::of(cards(msix))
    }

    /// An adapter with this configuration.
    pub(crate) fn of(config: AdapterConfig) -> Self {
        let mut host = MemoryHost::new(1 << 20);
        let data: Vec<u8> = (0..1 << 16).map(|at: u32| (at ^ at >> 8) as u8).collect();
        host.poke(0, &data).expect("memory");
        Self { adapter: Adapter::new(config, host).expect("devices"), now: Time::ZERO }
    }

    /// A program of the host accesses a device; what is sent then.
    pub(crate) fn access(&mut self, device: usize, bar: u8, offset: u64, access: MmioAccess) -> Vec<Sent> {
        self.adapter.host_mut().access(device, bar, offset, access);
        self.sent()
    }

    /// The results of accesses by programs of the host, the oldest first.
    pub(crate) fn results(&mut self) -> Vec<Result<Payload, DmaError>> {
        std::iter::from_fn(|| self.adapter.host_mut().take_result()).map(|(_, result)| result).collect()
    }

    /// A datagram comes; what is sent then.
    pub(crate) fn send(&mut self, from: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<Sent> {
        let from = SocketAddrV4::new(from, port);
        self.adapter.handle_datagram(self.now, Datagram { from, port, payload });
        self.sent()
    }

    /// A TLP comes from a device, on the port of its tag.
    pub(crate) fn tlp(&mut self, from: Ipv4Addr, words: &[u32], data: &[u8]) -> Vec<Sent> {
        let payload = datagram(words, data);
        self.send(from, 0x3000 + (words[1] >> 8 & 0xFF) as u16, &payload)
    }

    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        let mut buffer = [0; MAX_DATAGRAM];
        let next = || {
            let out = self.adapter.poll_transmit(self.now, &mut buffer)?;
            Some((*out.to.ip(), out.to.port(), buffer[..out.len].to_vec()))
        };
        std::iter::from_fn(next).collect()
    }

    pub(crate) fn counters(&self, device: usize) -> DeviceCounters {
        self.adapter.device_counters(device).expect("a device")
    }
}

pub(crate) fn datagram(words: &[u32], data: &[u8]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_be_bytes());
    [&[0; 6], &words.collect::<Vec<_>>()[..], data].concat()
}

/// The words of a TLP's header, without NetTLP header and data.
pub(crate) fn header(sent: &Sent) -> [u32; 3] {
    std::array::from_fn(|n| u32::from_be_bytes(sent.2[6 + 4 * n..10 + 4 * n].try_into().expect("four bytes")))
}

pub(crate) fn headers(all: &[Sent]) -> Vec<[u32; 3]> {
    all.iter().map(header).collect()
}
