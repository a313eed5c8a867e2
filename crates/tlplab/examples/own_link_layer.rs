//! A custom data link layer without credits, acknowledgement and replay: a damaged TLP is lost for good.
use std::collections::VecDeque;
use tlplab::datalink::*;
use tlplab::prelude::*;

#[derive(Clone, Default)]
struct Ideal {
    up: bool,
    queue: VecDeque<TlpUnit<TlpHandle>>,
}

impl LinkLayer<TlpHandle> for Ideal {
    fn link_up(&mut self, _now: Time) {
        self.up = true;
    }
    fn link_down(&mut self, _now: Time, events: &mut impl FnMut(Event<TlpHandle>)) {
        self.up = false;
        self.queue.drain(..).for_each(|tlp| events(Event::Lost(tlp.handle)));
    }
    fn is_active(&self) -> bool {
        self.up
    }
    fn send(&mut self, _now: Time, handle: TlpHandle, shape: TlpShape) {
        self.queue.push_back(TlpUnit::new(handle, shape));
    }
    fn send_nullified(&mut self, _now: Time, handle: TlpHandle, shape: TlpShape) {
        self.queue.push_back(TlpUnit { nullified: true, ..TlpUnit::new(handle, shape) });
    }
    fn poll_transmit(&mut self, _now: Time) -> Option<Unit<TlpHandle>> {
        self.queue.pop_front().map(Unit::Tlp)
    }
    fn handle_unit(
        &mut self,
        _now: Time,
        unit: &Unit<TlpHandle>,
        integrity: Integrity,
        events: &mut impl FnMut(Event<TlpHandle>),
    ) {
        let Unit::Tlp(tlp) = unit else { return };
        events(tlp.arrived(integrity));
        if !tlp.nullified {
            events(Event::Acked(tlp.handle)); // for the sender, which keeps nothing
        }
    }
}

impl CustomLinkLayer<TlpHandle> for Ideal {}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Builder::default();
    let mut link = LinkConfig::new("host.rp0", Generation::Gen3, Width::X8);
    let kind = FaultKind::Nth { unit: FaultUnit::Tlp, n: 100, count: 3, damage: Damage::Corrupt };
    link.faults.push(Fault { direction: Direction::Up, kind });
    let load = LoadConfig { count: Some(1000), ..LoadConfig::default() };
    builder.attach(DeviceConfig::new("nic", link), Box::new(Load::new(load, 1, "nic")?)).finishes();
    builder.link_layer("nic", |_| Ideal::default());
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let [up, down] = fabric.topology().links[0].ports;
    let flow = &flows(&fabric)[0];
    println!("{flow}\n{} writes arrived, {} were lost", flow.transactions, flow.failed);
    assert_eq!((flow.transactions, flow.failed), (997, 3));
    assert_eq!((fabric.direction_result(up).wire.replayed, fabric.direction_result(down).wire.dllp), (0, 0));
    Ok(())
}
