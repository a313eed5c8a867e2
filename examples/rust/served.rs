//! A device in Rust behind a NetTLP adapter: it fills memory of the host with a byte. Run an adapter, `tlplab adapter`, and then
//! `cargo run --example served -- 127.0.0.1 127.0.0.2`.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tlplab_device::kit::RegisterFile;
use tlplab_device::{BarSpec, Context, Device, Event, Identity, registers};
use tlplab_netio::{Serving, Station};

registers! {
    ADDRESS: u64 = 0x00, wo;
    BYTE: u32 = 0x08, wo;
    /// A write of a length fills.
    GO: u32 = 0x0C, wo;
}

/// The same code would run in the simulator.
#[derive(Clone)]
struct Filler {
    file: RegisterFile,
}

impl Default for Filler {
    fn default() -> Self {
        Self { file: RegisterFile::new(TABLE) }
    }
}

impl Device for Filler {
    fn identity(&self) -> Identity {
        let bars = vec![BarSpec::registers(0, 4096)];
        Identity { bars, msix_vectors: 1, ..Identity::new(0x71AB, 0x06, 0xFF_00_00) }
    }

    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        match event {
            Event::MmioWrite { offset, data, .. } => {
                let written = self.file.write(offset, &data);
                if written.touches(GO) {
                    let bytes = self.file.get(GO).min(1 << 20) as usize;
                    let data = vec![self.file.get(BYTE) as u8; bytes];
                    cx.dma_write(0, self.file.get(ADDRESS), data.into());
                    cx.msix(0, 0); // behind the write
                }
            }
            Event::MmioRead { offset, bytes, reply, .. } => cx.reply(reply, self.file.read(offset, bytes)),
            Event::Reset => *self = Self::default(),
            _ => {}
        }
    }
}

/// Serves it between these addresses until `end`.
fn serve(local: Ipv4Addr, adapter: Ipv4Addr, end: Instant) -> Result<(), Box<dyn Error>> {
    let station = Station::between(local, adapter);
    let (place, mut serving) = Serving::start(&station, vec![Filler::default()], None)?;
    for (bar, window) in place.bars.bars() {
        println!("BAR {bar} at {:#x}, {} B", window.base, window.size);
    }
    serving.watch(end)?;
    Ok(serving.end()?)
}

fn main() -> ExitCode {
    let addresses: Option<Vec<Ipv4Addr>> = std::env::args().skip(1).map(|text| text.parse().ok()).collect();
    let Some(&[local, adapter]) = addresses.as_deref() else {
        eprintln!("usage: served LOCAL-IP ADAPTER-IP");
        return ExitCode::from(2);
    };
    match serve(local, adapter, Instant::now() + Duration::from_secs(24 * 3600)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Another device writes the registers, and reads what was written to the host's memory.
#[test]
fn it_fills_the_memory_of_a_host() {
    use tlplab_netio::{AdapterServer, Context, Kind, Network, Wait, adapter_ports};
    use tlplab_nettlp::adapter::MemoryHost;
    use tlplab_nettlp::{Adapter, AdapterConfig, DeviceConfig, EndpointConfig};
    use tlplab_units::Bdf;

    let [adapter, device, other] = [1, 2, 3].map(|host| Ipv4Addr::new(127, 62, 1, host));
    let peers = vec![device, other];
    let cards = peers.iter().zip(1..).map(|(peer, bus)| DeviceConfig::card(*peer, Bdf(bus << 8))).collect();
    let engine = Adapter::new(AdapterConfig::new(adapter, cards), MemoryHost::new(1 << 20)).unwrap();
    let network = |local| Network { kind: Kind::Udp, local, interface: None };
    let transport = network(adapter).open_for(adapter_ports().collect(), peers, 256).unwrap();
    let mut host = AdapterServer::new(engine, transport, Wait::Sleep);

    let end = Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        scope.spawn(move || host.serve(Duration::from_secs(3)).unwrap());
        scope.spawn(move || serve(device, adapter, end).unwrap());
        let mut config = EndpointConfig::new(adapter, Bdf(2 << 8));
        (config.tags, config.completion_timeout) = (0..=15, tlplab_units::Duration::from_ms(1000));
        let transport = network(other).open(&EndpointConfig { host_ports: 0, ..config.clone() }).unwrap();
        let context = Context::new(config, transport, Wait::Sleep);
        let mut filled = [0; 3000];
        while filled != [0xA5; 3000] && Instant::now() < end {
            // The window of the first card; the device may not be there yet.
            let bar = 0xA000_0000u64;
            context.dma_write(bar + ADDRESS, &0x1003_u64.to_le_bytes()).unwrap();
            context.dma_write(bar + BYTE, &0xA5_u32.to_le_bytes()).unwrap();
            context.dma_write(bar + GO, &3000_u32.to_le_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            context.dma_read(0x1003, &mut filled).unwrap();
        }
        assert_eq!(filled, [0xA5; 3000]);
    });
}
