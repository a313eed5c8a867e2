//! A custom observer: TLPs by name, and the latency of the slowest transaction.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tlplab::prelude::*;
use tlplab::probe::{TransactionRecord, UnitContent, UnitRecord};

#[derive(Default)]
struct Seen {
    tlps: BTreeMap<&'static str, u64>,
    slowest: Duration,
}

impl Probe for Seen {
    fn unit(&mut self, record: &UnitRecord<'_>) {
        if let UnitContent::Tlp { packet, .. } = record.content {
            *self.tlps.entry(packet.repr.name()).or_default() += 1;
        }
    }
    fn transaction(&mut self, record: &TransactionRecord<'_>) {
        self.slowest = self.slowest.max(record.end - record.start);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut builder, seen) = (Builder::default(), Arc::new(Mutex::new(Seen::default())));
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::X8);
    let load = LoadConfig { op: LoadOp::Read, count: Some(100), ..LoadConfig::default() };
    builder.attach(DeviceConfig::new("ssd", link), Box::new(Load::new(load, 1, "ssd")?)).finishes();
    builder.probe(Box::new(seen.clone()));
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let seen = seen.lock().map_err(|_| "the observer panicked")?;
    println!("{:?}, the slowest in {} ns", seen.tlps, seen.slowest.as_ns());
    assert_eq!((seen.tlps["MRd"], seen.tlps["CplD"]), (100, 100));
    Ok(())
}
