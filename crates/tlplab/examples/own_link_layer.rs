//! A custom data link layer without credits, acknowledgement and replay: a damaged TLP is lost for good.
use tlplab::datalink::{Discard, Event, Integrity, Unacknowledged};
use tlplab::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Builder::default();
    let mut link = LinkConfig::new("host.rp0", Generation::Gen3, Width::X8);
    let kind = FaultKind::Nth { unit: FaultUnit::Tlp, n: 100, count: 3, damage: Damage::Corrupt };
    link.faults.push(Fault { direction: Direction::Up, kind });
    let load = LoadConfig { count: Some(1000), ..LoadConfig::default() };
    builder.attach(DeviceConfig::new("nic", link), Box::new(Load::new(load, 1, "nic")?)).finishes();
    // For each TLP that arrives, its event. A layer with state of its own implements `LinkLayer` and `CustomLinkLayer`.
    builder.link_layer("nic", |_| {
        Unacknowledged::new(|tlp, integrity| match integrity {
            Integrity::Good => Event::Deliver(tlp.handle),
            Integrity::Bad => Event::Discarded { handle: tlp.handle, reason: Discard::BadLcrc },
        })
    });
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let [up, down] = fabric.topology().links[0].ports;
    let flow = &flows(&fabric)[0];
    println!("{flow}\n{} writes arrived, {} were lost", flow.transactions, flow.failed);
    assert_eq!((flow.transactions, flow.failed), (997, 3));
    assert_eq!((fabric.direction_result(up).wire.replayed, fabric.direction_result(down).wire.dllp), (0, 0));
    Ok(())
}
