//! Parallel buses with what else a machine does: interrupts, and a link above that goes down and comes back.

use tlplab_experiment::result::{Document, Flow};
use tlplab_experiment::{Experiment, Options, StopReason, run};

const MODES: [&str; 4] = ["pci 33", "pci 66", "pci-x 66", "pci-x 133"];

const NIC: &str = r#"
title = "A NIC on a bus"
[bus.b]
under = "host.rp0"
link = "gen1 x4"
bridge = { reads = 4, posted = 4 }
[device.nic]
under = "b"
model = "nic"
direction = "receive"
requests = 100
"#;

const PULLED: &str = r#"
title = "A bus goes away and comes back"
stop = "300us"
host = { profile = "ideal", completion_timeout = "20us" }
[bus.b]
under = "host.rp0"
link = "gen1 x4"
bridge = { reads = 4, posted = 4 }
[device.disk]
under = "b"
[device.target]
under = "b"
model = "memory"
[load]
disk = { op = "write", size = "512B", outstanding = 2 }
reader = { device = "host", target = "target", op = "mmio-read", size = "4B" }
[[fault]]
link = "b"
down = "40us"
until = "70us"
"#;

fn go(text: &str, set: &[String]) -> Document {
    let read = |_: &str| Ok(text.to_owned());
    let options = Options { set: set.to_vec(), ..Options::default() };
    let experiment = Experiment::parse_with(&read, "bus.toml", &options).unwrap();
    run::run(experiment, run::Inputs::default()).unwrap()
}

fn flow<'a>(document: &'a Document, name: &str) -> &'a Flow {
    document.flows.iter().find(|flow| flow.name == name).unwrap()
}

#[test]
fn a_bus_may_be_below_a_link_of_any_generation() {
    for link in ["gen5 x4", "gen5 x4 flit", "gen6 x4 flit", "gen7 x1 flit"] {
        let document = go(NIC, &[format!("bus.b.link={link}")]);
        assert_eq!(flow(&document, "nic.receive").transactions, 200, "{link}");
    }
}

#[test]
fn interrupts_of_every_kind_cross_a_bus() {
    for mode in MODES {
        for interrupts in ["msi-x", "msi", "intx"] {
            let document = go(NIC, &[format!("bus.b.mode={mode}"), format!("host.interrupts={interrupts}")]);
            // Each of 100 frames is data and a descriptor that is written back.
            assert_eq!(flow(&document, "nic.receive").transactions, 200, "{mode}, {interrupts}");
            assert_eq!(document.stop_reason, StopReason::LoadsDone, "{mode}, {interrupts}");
            assert_eq!(document.errors.len(), 0, "{mode}, {interrupts}");
        }
    }
}

#[test]
fn a_bus_works_again_when_the_link_above_has_come_back() {
    for mode in MODES {
        let mode = [format!("bus.b.mode={mode}")];
        let (document, before) = (go(PULLED, &mode), go(PULLED, &[mode[0].clone(), "stop=40us".into()]));
        let outage = &document.outages[0];
        assert!(outage.configured_fs.is_some_and(|at| at > 70_000_000_000), "{mode:?}: {outage:?}");
        // What was under way is lost, and no more of it than there can be.
        let (disk, reader) = (flow(&document, "disk"), flow(&document, "reader"));
        assert!((1..=4).contains(&disk.errors.lost), "{mode:?}: {:?}", disk.errors);
        assert_eq!(reader.errors.timeout, 1, "{mode:?}: {:?}", reader.errors);
        // Both go on: of the time that is left they have most.
        for (name, now) in [("disk", disk), ("reader", reader)] {
            let once = flow(&before, name).transactions;
            assert!(now.transactions > 4 * once, "{mode:?}: {name} {once}, then {}", now.transactions);
        }
        // Places of the bus where nothing is answer nothing: the bridge gives up and says so.
        let aborts = document
            .errors
            .iter()
            .find(|e| e.name.token() == "Unsupported Request" && e.port.starts_with("b "));
        assert!(aborts.is_some_and(|found| found.count > 20), "{mode:?}: {:?}", document.errors);
    }
}
