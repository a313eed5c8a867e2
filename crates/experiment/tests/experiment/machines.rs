//! Several machines in one experiment, and the cables between them.

use tlplab_experiment::device_models::ModelSpec;
use tlplab_experiment::guest::GuestKind;
use tlplab_experiment::machines::Machines;
use tlplab_experiment::{Error, Experiment, Options};
use tlplab_units::Duration;

const TWO: &str = r#"
title = "Two"
guest.memory = "64MiB"
[device.nic0]
under = "host.rp0"
link = "gen1 x1"
model = "nic"
[device.ssd]
under = "host.rp1"
link = "gen3 x4"
model = "nvme"
[machine.left]
guest.run = "left.sh"
[machine.right]
seed = 9
device.nic0 = { model = "nic", mac = "02:1d:e5:00:00:02" }
[cable.wire]
ends = ["left.nic0", "right.nic0"]
"#;

fn options() -> Options {
    Options { guest: Some(GuestKind::UserMode), ..Options::default() }
}

fn read(text: &str) -> Result<Machines, Vec<Error>> {
    Experiment::parse_machines(&|_: &str| Ok(text.to_owned()), "t.toml", &options())
}

#[test]
fn each_machine_joins_common_keys_with_its_own() {
    let Machines { machines, cables } = read(TWO).expect("two machines");
    let names: Vec<&str> = machines.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["left", "right"]);
    let [(_, left), (_, right)] = machines.as_slice() else { panic!("two") };
    assert_eq!((left.title.as_str(), right.title.as_str()), ("Two: left", "Two: right"));
    assert_eq!((left.fabric.seed, right.fabric.seed), (1, 9));
    let guests = [left, right].map(|one| one.guest.clone().expect("a guest"));
    assert_eq!(guests.each_ref().map(|guest| guest.run.as_deref()), [Some("left.sh"), None]);
    assert_eq!(guests.map(|guest| guest.memory), [64 << 20; 2]);
    let mac = |one: &Experiment| {
        one.devices.iter().find_map(|device| match &device.model {
            ModelSpec::Nic(nic) => Some(nic.mac),
            _ => None,
        })
    };
    assert_eq!(mac(left), Some([0x02, 0x1D, 0xE5, 0, 0, 1]));
    assert_eq!(mac(right), Some([0x02, 0x1D, 0xE5, 0, 0, 2]));
    let [wire] = cables.as_slice() else { panic!("one cable") };
    assert_eq!((wire.name.as_str(), wire.delay), ("wire", Duration::from_ns(500)));
    assert_eq!(wire.ends, [(0, "nic0".to_owned()), (1, "nic0".to_owned())]);
}

#[test]
fn an_ordinary_experiment_has_no_machines() {
    let one = TWO.split("[machine.left]").next().expect("the beginning");
    let found = read(one).expect("an experiment");
    assert!(found.machines.is_empty() && found.cables.is_empty());
}

/// What holds for all is overridden for all, and a machine's own for that machine.
#[test]
fn overrides_reach_one_machine_or_all() {
    let set = ["device.nic0.link=gen2 x4", "machine.right.seed=5"].map(str::to_owned).to_vec();
    let options = Options { set, ..options() };
    let found = Experiment::parse_machines(&|_: &str| Ok(TWO.to_owned()), "t.toml", &options).expect("two");
    let seeds: Vec<u64> = found.machines.iter().map(|(_, one)| one.fabric.seed).collect();
    assert_eq!(seeds, [1, 5]);
    let links = found.machines.iter().map(|(_, one)| one.fabric.devices[0].link.clone());
    assert!(links.into_iter().all(|link| format!("{} {}", link.generation, link.width) == "gen2 x4"));
}

#[test]
fn one_machine_is_to_be_chosen() {
    let mistakes = Experiment::parse_all(&|_: &str| Ok(TWO.to_owned()), "t.toml", &Options::default());
    let said = mistakes.expect_err("which?")[0].to_string();
    assert!(said.contains("t.toml:12: machine: there are several machines: left, right"), "{said}");
    assert!(said.contains("tlplab guest uml"), "{said}");
}

#[test]
fn mistakes_in_machines_and_cables_have_their_place() {
    for (from, to, said) in [
        (r#""left.nic0", "#, "", "t.toml:18: cable.wire.ends: a cable has two ends; for example"),
        ("left.nic0", "lift.nic0", r#"ends.0: unknown machine "lift"; did you mean "left"?"#),
        ("left.nic0", "left.nic1", r#"ends.0: "left" has no NIC "nic1"; did you mean "nic0"?"#),
        ("left.nic0", "left.ssd", r#"ends.0: "left" has no NIC "ssd"; "#),
        ("left.nic0", "left", r#"ends.0: "left" is not a machine's name and its NIC's; as in left.nic0"#),
        ("right.nic0", "left.nic0", r#"ends: "nic0" has one port, but two ends of cables name it"#),
        (
            r#"mac = "02:1d:e5:00:00:02""#,
            "",
            "cable.wire.ends: the two NICs have the same address; give one of them",
        ),
        (
            "00:02\"",
            "00:02\", ethernet = \"10Gb/s\"",
            "ends: the two NICs send at different rates; give both",
        ),
        ("e5:00:00:02", "e5:00:02", "mac: \"02:1d:e5:00:02\" is not an Ethernet address, such as"),
        (
            "02:1d:e5:00:00:02",
            "03:1d:e5:00:00:02",
            "is a group's address; the first byte of a NIC's own address is even",
        ),
        ("seed = 9", "sead = 9", "machine.right.sead: unknown key \"sead\"; did you mean \"seed\"?"),
        ("seed = 9", "title = \"x\"", "machine.right.title: unknown key \"title\""),
        (
            "[cable.wire]",
            "[cable.wire]\ndelay = \"1.5ns\"",
            "delay: a cable's delay must be a whole number of nanoseconds",
        ),
        (
            "[cable.wire]",
            "[cable.wire]\ndelay = \"0s\"",
            "delay: a cable's delay must be a whole number of nanoseconds, at least 1ns",
        ),
    ] {
        let text = TWO.replacen(from, to, 1);
        assert_ne!(text, TWO, "{from}");
        let mistakes = read(&text).expect_err(said);
        assert!(mistakes[0].to_string().contains(said), "{} instead of {said}", mistakes[0]);
    }
    let text = TWO.split("[machine.left]").next().expect("the beginning").to_owned();
    let mistakes =
        read(&(text + "[cable.wire]\nends = [\"left.nic0\", \"right.nic0\"]\n")).expect_err("no machines");
    let said = "cable: a cable joins NICs of several machines, and there are none; describe them";
    assert!(mistakes[0].to_string().contains(said), "{}", mistakes[0]);
}
