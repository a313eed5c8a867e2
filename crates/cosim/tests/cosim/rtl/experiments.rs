//! `model = "rtl:FILE.so"` in an experiment.

use super::{compile, library};
use std::path::Path;
use tlplab_cosim::rtl;
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, lspci};

fn text(model: &str, keys: &str) -> String {
    format!(
        "title = \"RTL\"\nstop = \"20us\"\n[device.card]\nunder = \"host.rp0\"\nlink = \"gen1 x8\"\nmodel = \"{model}\"\n{keys}\n\
         [load.regs]\ndevice = \"host\"\nop = \"mmio-read\"\nsize = \"4B\"\ntarget = \"card\"\ncount = 3\n"
    )
}

fn parse(model: &str, keys: &str) -> Experiment {
    let text = text(model, keys);
    Experiment::parse(&|_| Ok(text.clone()), "dir/t.toml").expect("an experiment")
}

fn open(experiment: Experiment) -> Run {
    let cores = rtl::load(&experiment).expect("a model");
    Run::new(experiment, Inputs { cores, ..Inputs::default() }).expect("a run")
}

#[test]
fn an_experiment_runs_a_library_with_its_parameters() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let wave = folder.join("card.wave");
    let _ = std::fs::remove_file(&wave);
    let keys =
        format!("mps = \"4KiB\"\npcie_clock = \"62.5MHz\"\nidle = false\nwaveform = \"{}\"", wave.display());
    let mut run = open(parse(&format!("rtl:{}", library()), &keys));
    let (document, _) = lspci::lspci(&mut run).expect("what software sees");
    let card = document.functions.iter().find(|function| function.component.as_deref() == Some("card"));
    let card = card.expect("a card");
    assert_eq!((card.ids.as_str(), card.bars.len(), card.msix_vectors), ("71ab:0001", 1, 1));
    assert_eq!((card.mps_supported, card.interrupts.as_str()), (Some(512), "msi-x"));
    assert!(!wave.exists(), "who only looks writes nothing");
    run.finish().expect("a run");
    let document = run.document();
    let reads = document.flows.iter().find(|flow| flow.name == "regs").expect("a flow");
    assert_eq!(reads.transactions, 3);
    drop(run);
    // One edge of a clock of 62.5 MHz every 16 ns, on the time axis of the run.
    let edges = std::fs::read_to_string(&wave).expect("a waveform");
    let times: Vec<u64> = edges.lines().map(|line| line.parse().expect("a time")).collect();
    assert_eq!(times[..3], [0, 16_000_000, 32_000_000]);
    assert_eq!(times.last(), Some(&20_000_000_000));
}

#[test]
fn a_library_declares_interrupts_and_resets_of_its_function() {
    for (keys, interrupts, flr) in [
        ("", "msi-x", false),
        ("msi = 8", "msi", false),
        ("flr = true", "msi-x", true),
        ("intx = true", "intx", false),
    ] {
        let mut run = open(parse(&format!("rtl:{}", library()), keys));
        let (document, _) = lspci::lspci(&mut run).expect("what software sees");
        let card = document.functions.iter().find(|function| function.component.as_deref() == Some("card"));
        assert_eq!(card.expect("a card").interrupts, interrupts, "{keys}");
        let id = run.fabric().id_of("card");
        let spaces = run.fabric().config_spaces();
        let space = spaces.iter().find(|(bdf, _)| Some(*bdf) == id).map(|(_, space)| space);
        assert_eq!(space.expect("its registers").reset_register().is_some(), flr, "{keys}");
    }
}

#[test]
fn a_library_that_cannot_be_used_is_a_mistake_in_the_experiment() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let junk = folder.join("junk.so");
    std::fs::write(&junk, "no library at all. ".repeat(100)).expect("a file");
    let empty = folder.join("empty.c");
    std::fs::write(&empty, "int nothing(void);\n").expect("a file");
    let empty = compile("empty", &empty);
    let good = library();
    for (library, keys, says) in [
        ("missing.so", "", "there is no such file; `make rtl` builds the project's own"),
        (junk.to_str().expect("UTF-8"), "", "invalid ELF header"),
        (
            &empty,
            "",
            "it does not export tlplab_rtl_open; expected a model built with rtl/include/tlplab_rtl.h",
        ),
        (good, "mistake = \"abi\"", "it was built with version 7 of tlplab_rtl.h, but this is version 2"),
        (
            good,
            "msi = 3",
            "its model reports an invalid property: 3 MSI vectors; expected 0, 1, 2, 4, 8, 16 or 32",
        ),
        (good, "mistake = \"bar\"", "its model reports an invalid property: BAR 0 has 4097 B"),
        (good, "speed = 3", "unknown parameter speed; there are pcie_clock, idle"),
        (
            good,
            "waveform = \"no/such/folder/x.fst\"",
            "waveform: the folder dir/no/such/folder does not exist",
        ),
    ] {
        let refused = rtl::load(&parse(&format!("rtl:{library}"), keys)).map(|_| ()).expect_err(says);
        assert_eq!(
            (refused.file.as_str(), refused.line, refused.key.as_str()),
            ("dir/t.toml", 6, "device.card.model")
        );
        assert!(refused.message.contains(says), "{refused}");
    }
}
