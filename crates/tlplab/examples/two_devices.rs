//! A switch and two devices: their throughput and the causes of their latency.
use tlplab::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Builder::default();
    builder.switch(SwitchConfig::new("sw", LinkConfig::new("host.rp0", Generation::Gen4, Width::X4)));
    for (name, op) in [("nic", LoadOp::Write), ("ssd", LoadOp::Read)] {
        let link = LinkConfig::new("sw", Generation::Gen4, Width::X4);
        let load = Load::new(LoadConfig { op, size: 1024, ..LoadConfig::default() }, 1, name)?;
        builder.attach(DeviceConfig::new(name, link), Box::new(load));
    }
    let mut fabric = builder.build()?;
    fabric.run_until(Time::ZERO + Duration::from_us(100));
    flows(&fabric).iter().for_each(|flow| println!("{flow}"));
    Ok(())
}
