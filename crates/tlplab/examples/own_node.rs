//! A custom node: a firewall between a device and its root port, which refuses requests to the upper half of a window.
use tlplab::prelude::*;
use tlplab::probe::TlpRecord;
use tlplab::transaction::memory_access;
use tlplab::wire::tlp::CompletionStatus;

#[derive(Clone)]
struct Firewall {
    forbidden: std::ops::Range<u64>,
}

impl NodeModel for Firewall {
    fn handle_tlp(&mut self, _cx: &mut NodeContext<'_>, from: Side, tlp: &TlpRecord<'_>) -> Verdict {
        match memory_access(tlp.repr) {
            Some(access) if from == Side::Down && self.forbidden.contains(&access.address) => {
                Verdict::Refuse(CompletionStatus::UnsupportedRequest)
            }
            _ => Verdict::Forward,
        }
    }
    fn snapshot(&self) -> Option<Box<dyn NodeModel>> {
        Some(Box::new(self.clone()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut builder, window) = (Builder::default(), 1 << 32..(1 << 32) + (1 << 20));
    let link = |under| LinkConfig::new(under, Generation::Gen3, Width::X8);
    let forbidden = window.start + (1 << 19)..window.end;
    builder.node(NodeConfig::new("firewall", link("host.rp0")), Box::new(Firewall { forbidden }));
    let load = LoadConfig { op: LoadOp::Read, count: Some(4096), ..LoadConfig::default() };
    builder
        .attach(DeviceConfig::new("nic", link("firewall")), Box::new(Load::new(load, 1, "nic")?))
        .finishes();
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let flow = &flows(&fabric)[0];
    println!("{flow}\n{} reads were answered, {} refused", flow.transactions, flow.failed);
    assert_eq!((flow.transactions, flow.failed), (2048, 2048));
    Ok(())
}
