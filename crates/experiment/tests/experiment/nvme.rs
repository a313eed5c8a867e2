//! The model `nvme`: its keys, its data, and what software finds of it.

use tlplab_device::{Medium, SparseMedium};
use tlplab_experiment::run::{Inputs, Run, RunError};
use tlplab_experiment::{Experiment, FileKind, Options, lspci};

const MACHINE: &str = r#"
title = "A drive and somebody else"
stop = "10us"
[device.drive]
under = "host.rp0"
link = "gen4 x4"
model = "nvme"
size = "16MiB"
[device.dma]
under = "host.rp1"
link = "gen4 x4"
[load]
dma = { op = "write", size = "256B" }
"#;

fn experiment(set: &[&str]) -> Result<Experiment, String> {
    let read = |_: &str| Ok(MACHINE.to_owned());
    let options = Options { set: set.iter().map(|s| (*s).into()).collect(), ..Options::default() };
    Experiment::parse_with(&read, "folder/machine.toml", &options).map_err(|error| error.to_string())
}

#[test]
fn a_file_has_to_be_brought() {
    let named = experiment(&["device.drive.file=\"disk.img\""]).unwrap();
    let files: Vec<_> =
        named.files.iter().map(|file| (file.kind, file.is_named_by("drive", "file"))).collect();
    assert_eq!(files, [(FileKind::Medium, true)]);
    let error = Run::new(named.clone(), Inputs::default()).err();
    assert!(
        matches!(&error, Some(RunError::NoMedium { device, file }) if device == "drive" && file.ends_with("disk.img"))
    );
    assert!(error.unwrap().to_string().starts_with("device drive: the medium \""));
    let media = [("drive".to_owned(), Box::new(SparseMedium::new()) as Box<dyn Medium>)].into();
    assert!(Run::new(named, Inputs { media, ..Inputs::default() }).unwrap().advance(100).is_ok());
}

#[test]
fn impossible_drives_are_refused_with_a_message() {
    for (set, words) in [
        ("device.drive.mdts=4KiB", "transfers of 4096 B at most; expected a power of two from 8KiB"),
        ("device.drive.size=1KiB", "a namespace of 1024 B; expected a multiple of 4KiB"),
        ("device.drive.page=2KiB", "pages of 2048 B on the medium"),
        ("device.drive.startup=200s", "the controller can report at most 127 s"),
    ] {
        let message = experiment(&[set]).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn software_finds_a_drive() {
    let mut run = Run::new(experiment(&[]).unwrap(), Inputs::default()).unwrap();
    let (_, dump) = lspci::lspci(&mut run).unwrap();
    assert!(dump.contains("01:00.0 Non-Volatile memory controller"), "{dump}");
}
