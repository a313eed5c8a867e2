//! The models `nic` and `simple-nic` in a run.

use tlplab_experiment::result::Document;
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options, StopReason};

fn ran(text: &str) -> Document {
    let read = |_: &str| Ok(text.to_owned());
    let experiment =
        Experiment::parse_with(&read, "nic.toml", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    run(experiment, Inputs::default()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The driver brings the NIC up over the link and compares each frame that comes back.
#[test]
fn frames_move_in_each_direction() {
    let modes = ["msi-x", "msi", "intx"];
    for (interrupts, direction) in modes.into_iter().zip(["loop-back", "transmit", "receive"]) {
        let document = ran(&format!(
            "title = \"A NIC\"\n[host]\ninterrupts = \"{interrupts}\"\n[device.nic]\nunder = \"host.rp0\"\n\
             link = \"gen1 x1\"\nmodel = \"nic\"\ndirection = \"{direction}\"\nrequests = 200\n"
        ));
        let moved = |flow: &str| document.flows.iter().find(|f| f.name == flow).map_or(0, |f| f.bytes);
        let frames = 200 * 1514;
        let (sent, received) = (moved("nic.transmit"), moved("nic.receive"));
        assert_eq!(sent, if direction == "receive" { 0 } else { frames }, "{direction}");
        // Behind each frame its descriptor is written back.
        let least = if direction == "transmit" { 0 } else { frames };
        assert!((least..=least + 200 * 32).contains(&received), "{direction}: {received}");
        // 200 frames of 12.304 us each, after some ten microseconds to negotiate and some hundred reads of registers.
        let limit = &document.verdict.limit;
        assert_eq!(limit.resource, "Ethernet of nic");
        assert!((0.95..=1.0).contains(&limit.utilization), "{}", limit.utilization);
    }
}

/// The processor reads a register of a NIC that is up and idle: at 2 ns per byte, 20 B of request and 24 B of completion (8 B of framing,
/// sequence number and LCRC; a header of 12 B, as the BAR lies below 4 GiB; 4 B of data), and the NIC's own latency twice.
#[test]
fn a_register_is_read_in_the_time_of_a_round_trip() {
    let document = ran(
        "title = \"A register\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen2 x1\"\nmodel = \"nic\"\n\
         latency = \"45ns\"\nrequests = 0\n[load.read]\ndevice = \"host\"\ntarget = \"nic\"\nop = \"mmio-read\"\n\
         size = \"4B\"\naddress = 8\nwindow = \"4B\"\nstart = \"1ms\"\ncount = 64\n[defaults.link]\nskp = \"off\"\n",
    );
    let flow = document.flows.iter().find(|flow| flow.name == "read").expect("it was read");
    let latency = flow.latency_ns.expect("each takes time");
    assert_eq!((flow.transactions, latency.min, latency.max), (64, 178.0, 178.0));
}

/// By hand: 1514 B and 24 B of preamble, check sequence and gap take 4921.6 ns on a cable of 2.5 Gb/s, so the partner has 2031 frames in 10 ms, less those of the
/// time in which driver and cable come up; of each that is received, 1514 B and a descriptor of 16 B are written, which take the link at least 6.8 us.
#[test]
fn frames_that_find_no_room_are_counted() {
    for (model, latest) in [("nic", 900), ("simple-nic", 80)] {
        let document = ran(&format!(
            "title = \"A NIC\"\nstop = \"10ms\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen1 x1\"\nmodel = \"{model}\"\n\
             direction = \"receive\"\nethernet = \"2.5Gb/s\"\nrequests = 100000\n"
        ));
        let [frames] = &document.frames[..] else { panic!("{model}: {:?}", document.frames) };
        assert!((2031 - latest..=2031).contains(&frames.arrived()), "{model}: {frames:?}");
        assert!(frames.missed > 0 && frames.received < 10_000_000 / 6_800 + 300, "{model}: {frames:?}");
        let written =
            document.flows.iter().find(|flow| flow.name == "nic.receive").map_or(0, |flow| flow.bytes);
        // At the end 64 frames may wait in the simple NIC, and a ring of 256 is under way to memory; it writes its heads, too.
        let in_memory = (frames.received - 300) * 1530..=frames.received * 1538;
        assert!(in_memory.contains(&written), "{model}: {frames:?}, {written} B");
        let said = format!("nic lost {} of {} frames that arrived", frames.missed, frames.arrived());
        assert!(
            document.verdict.limit.evidence.iter().any(|line| line.starts_with(&said)),
            "{model}: {said}"
        );
    }
}

/// What is received ends when the driver has had what it was to have, though the partner could go on and fills the link.
#[test]
fn a_simple_nic_that_is_flooded_is_switched_off_in_the_end() {
    let document = ran(
        "title = \"A NIC\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen1 x1\"\nmodel = \"simple-nic\"\n\
         direction = \"receive\"\nethernet = \"100Gb/s\"\ntransfer = \"60B\"\nrequests = 2000\n",
    );
    assert_eq!(document.stop_reason, StopReason::LoadsDone);
    let frames = &document.frames[0];
    assert!(frames.received >= 2000 && frames.missed > 10 * frames.received, "{frames:?}");
}

/// In each direction every frame moves, in rings and in the published protocol, with data and without; one at a time it takes longer.
#[test]
fn the_simple_nic_moves_every_frame() {
    for direction in ["loop-back", "transmit", "receive"] {
        let times = ["entries = 256", "entries = 1", "entries = 256\nmoderation = \"20us\""].map(|rings| {
            let document = ran(&format!(
                "title = \"A NIC\"\n[device.nic]\nunder = \"host.rp0\"\nlink = \"gen2 x4\"\nmodel = \"simple-nic\"\n\
                 direction = \"{direction}\"\nrequests = 200\n{rings}\n"
            ));
            assert_eq!(document.stop_reason, StopReason::LoadsDone);
            let moved = |flow: &str| document.flows.iter().find(|f| f.name == flow).map_or(0, |f| f.bytes);
            let frames = 200 * 1514;
            assert_eq!(moved("nic.transmit"), if direction == "receive" { 0 } else { frames }, "{direction}");
            let received = if direction == "transmit" { 0 } else { frames };
            assert!(moved("nic.receive") >= received, "{direction}");
            let frames = &document.frames[0];
            let (sends, receives) = (direction != "receive", direction != "transmit");
            assert_eq!((frames.sent, frames.missed), (if sends { 200 } else { 0 }, 0), "{direction}");
            assert!(frames.received >= if receives { 200 } else { 0 }, "{direction}: {frames:?}");
            (document.end_fs - document.start_fs) as f64
        });
        // One descriptor at a time keeps a line of 10 Gb/s busy in one direction, not in both.
        let least = if direction == "loop-back" { 1.25 } else { 0.99 };
        assert!(times[1] > times[0] * least && times[2] > times[0], "{direction}: {times:?}");
    }
}
