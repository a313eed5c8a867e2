//! Custom host memory: each doubleword reads as its own address, and writes are counted instead of stored.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tlplab::device::{HostMemory, OutOfMemory};
use tlplab::prelude::*;

struct Addresses(Arc<AtomicU64>);

impl HostMemory for Addresses {
    fn read(&self, address: u64, out: &mut [u8]) {
        for (at, byte) in (address..).zip(out) {
            *byte = (at as u32 & !3).to_le_bytes()[at as usize & 3];
        }
    }
    fn write(&mut self, _address: u64, data: &[u8]) {
        self.0.fetch_add(data.len() as u64, Ordering::Relaxed);
    }
    fn alloc(&mut self, bytes: u64, _align: u64) -> Result<u64, OutOfMemory> {
        Err(OutOfMemory { bytes }) // no program of this host asks
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut builder, written) = (Builder::default(), Arc::new(AtomicU64::new(0)));
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::X8);
    let load = LoadConfig { size: 256, count: Some(100), ..LoadConfig::default() };
    builder.attach(DeviceConfig::new("nic", link), Box::new(Load::new(load, 1, "nic")?)).finishes();
    builder.memory(Box::new(Addresses(written.clone())));
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let mut word = [0; 4];
    fabric.host_memory().read(0x1234, &mut word);
    println!("{} B were written, and 0x1234 reads as {word:02x?}", written.load(Ordering::Relaxed));
    assert_eq!((written.load(Ordering::Relaxed), u32::from_le_bytes(word)), (25_600, 0x1234));
    Ok(())
}
