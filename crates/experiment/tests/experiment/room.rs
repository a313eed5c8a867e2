//! Numbers and addresses that do not suffice: what the file alone shows, and what a run says.

use std::fmt::Write;
use tlplab_experiment::result::Document;
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Error, Experiment, Options};

const HEAD: &str = "title = \"t\"\nhost = \"ideal\"\nstop = \"20us\"\n";

fn read(text: &str) -> Experiment {
    let read = |_: &str| Ok(text.to_owned());
    Experiment::parse_with(&read, "t.toml", &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn without_room(text: &str) -> Vec<Error> {
    read(text).without_room()
}

fn ran(text: &str) -> Document {
    run(read(text), Inputs::default()).unwrap()
}

/// `switches` switches with `below` devices each, and a load on the first.
fn tree(switches: usize, below: usize) -> String {
    let mut text = HEAD.to_owned();
    for s in 0..switches {
        let _ = write!(text, "[switch.s{s}]\nunder = \"host.rp{s}\"\nlink = \"gen3 x4\"\n");
        for d in 0..below {
            let _ = write!(text, "[device.d{s}x{d}]\nunder = \"s{s}\"\nlink = \"gen3 x1\"\n");
        }
    }
    text + "[load]\nd0x0 = { op = \"write\", size = \"64B\" }\n"
}

/// Below each root port a bus, the one inside the switch, and one for each device: 8 · (2 + 29) and one more are 249.
#[test]
fn bus_numbers() {
    assert_eq!(without_room(&tree(8, 29)), []);
    assert_eq!(ran(&tree(8, 29)).problems, []);
    let text = tree(9, 29);
    let mistakes = without_room(&text);
    let first = mistakes.first().expect("a mistake").to_string();
    assert!(first.starts_with("t.toml:"), "{first}");
    assert!(
        first.contains("switch.s8: s8, ") && first.contains("no bus number is left for the bus below"),
        "{first}"
    );
    assert!(first.contains("256 bus numbers"), "{first}");
    let document = ran(&text);
    assert_eq!(document.problems.len(), mistakes.len());
    for problem in &document.problems {
        assert_eq!((problem.kind.token(), problem.exhausted), ("no-bus-number", true), "{problem:?}");
        assert!(document.verdict.limit.evidence.contains(&problem.message));
    }
}

/// 512 MiB below 4 GiB are for BARs that are not prefetchable: of two cards with a window of 256 MiB and registers beside it, one.
#[test]
fn addresses() {
    let card = |name: &str, port: u8| {
        format!(
            "[device.{name}]\nunder = \"host.rp{port}\"\nlink = \"gen3 x1\"\nmodel = \"nettlp-card\"\nwindow = \"256MiB\"\n"
        )
    };
    let one = format!("{HEAD}{}[load]\na = {{ op = \"write\", size = \"64B\" }}\n", card("a", 0));
    assert_eq!(without_room(&one), []);
    let two = format!("{one}{}", card("b", 1));
    let mistakes: Vec<String> = without_room(&two).iter().map(ToString::to_string).collect();
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert!(mistake.starts_with("t.toml:11: device.b: b, 02:00.0: no address below 4 GiB"), "{mistake}");
    assert!(mistake.contains("512 MiB for all BARs"), "{mistake}");
    let problems = ran(&two).problems;
    assert!(
        matches!(&problems[..], [one] if one.kind.token() == "no-address" && one.exhausted),
        "{problems:?}"
    );
}

/// Of a device that another file holds only its place is known.
#[test]
fn devices_elsewhere() {
    let text = format!(
        "{HEAD}[device.a]\nunder = \"host.rp0\"\nlink = \"gen3 x1\"\nmodel = \"rtl:core.so\"\n[device.b]\nunder = \"a.fn1\"\nmodel = \"b.py:B\"\n"
    );
    assert_eq!(without_room(&text), []);
}

/// Device numbers: on a parallel bus and below a switch there are 32.
#[test]
fn device_numbers() {
    assert_eq!(without_room(&tree(1, 32)), []);
    let mistakes = without_room(&tree(1, 33));
    assert!(
        matches!(&mistakes[..], [one] if one.message.contains("at most 32 downstream ports")),
        "{mistakes:?}"
    );
    let mut text = format!("{HEAD}[bus.pci]\nunder = \"host.rp0\"\nlink = \"gen1 x1\"\nmode = \"pci 33\"\n");
    for d in 0..33 {
        let _ = write!(text, "[device.d{d}]\nunder = \"pci\"\n");
    }
    text += "[load]\nd0 = { op = \"write\", size = \"64B\" }\n";
    let mistakes: Vec<String> = without_room(&text).iter().map(ToString::to_string).collect();
    let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert!(mistake.contains("bus.pci: ") && mistake.contains("numbers for 32 devices"), "{mistake}");
}

/// That a device is not ready in time is a result.
#[test]
fn a_device_that_is_not_ready_is_a_result() {
    let text = format!(
        "{HEAD}[host]\nenumeration = \"simulated\"\n\
         [device.a]\nunder = \"host.rp0\"\nlink = \"gen3 x1\"\n\
         [device.b]\nunder = \"host.rp1\"\nlink = \"gen3 x1\"\nready = \"5s\"\n\
         [load]\na = {{ op = \"write\", size = \"64B\" }}\n"
    );
    let text = text.replace("host = \"ideal\"\nstop = \"20us\"\n", "stop = \"1200ms\"\n");
    let text = text.replace("size = \"64B\"", "size = \"64B\", outstanding = 1, count = 3");
    assert_eq!(without_room(&text), []);
    let problems = ran(&text).problems;
    assert!(
        matches!(&problems[..], [one] if one.kind.token() == "never-ready" && !one.exhausted),
        "{problems:?}"
    );
}
