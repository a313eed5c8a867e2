//! A custom channel: every 1000th unit is lost, and the others arrive up to 9 ns late.
use tlplab::prelude::*;
use tlplab::probe::UnitRecord;

#[derive(Clone)]
struct Rough {
    units: u64,
    random: Random,
}

impl ChannelModel for Rough {
    fn carry(&mut self, _unit: &UnitRecord<'_>) -> Passage {
        self.units += 1;
        match self.units % 1000 {
            0 => Passage::Lost,
            _ => Passage::Late(Duration::from_ns(self.random.below(10))),
        }
    }
    fn snapshot(&self) -> Option<Box<dyn ChannelModel>> {
        Some(Box::new(self.clone()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Builder::default();
    let link = LinkConfig::new("host.rp0", Generation::Gen3, Width::X8);
    let load = LoadConfig { count: Some(5000), ..LoadConfig::default() };
    builder.attach(DeviceConfig::new("nic", link), Box::new(Load::new(load, 1, "nic")?)).finishes();
    let random = Random::keyed(1, "nic", "a rough channel");
    builder.channel("nic", Direction::Up, Box::new(Rough { units: 0, random }));
    let mut fabric = builder.build()?;
    while fabric.run_events(1000, Time::NEVER) {}
    let [up, _] = fabric.topology().links[0].ports;
    let (wire, writes) = (fabric.direction_result(up).wire, flows(&fabric)[0].transactions);
    println!(
        "{} units were lost and {} TLPs sent again: {writes} writes arrived",
        wire.damaged, wire.replayed
    );
    assert!(wire.damaged >= 5 && wire.replayed >= 5);
    assert_eq!(writes, 5000, "the data link layer sends again what is lost");
    Ok(())
}
