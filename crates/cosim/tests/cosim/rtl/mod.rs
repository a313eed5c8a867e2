//! Devices made of RTL, by a stand-in in C (`copier.c`): it has the registers of the built-in copier, so that its driver, which checks every
//! byte, drives both.

mod experiments;
mod mistakes;
mod noise;
mod runs;
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tlplab_cosim::rtl::RtlDevice;
use tlplab_device::{Device, Dma, DmaDriver, HostProgram};
use tlplab_experiment::device_models::RtlSpec;
use tlplab_fabric::config::{DeviceConfig, FabricConfig, LinkConfig};
use tlplab_fabric::topology::FlowInfo;
use tlplab_fabric::{Builder, Fabric};
use tlplab_units::{Duration, Generation, Time, Width};

/// The stand-in, compiled.
fn library() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| compile("copier", &here("tests/cosim/rtl/copier.c")))
}

/// A source file as a library.
fn compile(name: &str, source: &Path) -> String {
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let done = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"])
        .arg(here("../../rtl/include"))
        .arg("-o")
        .args([&library, source])
        .status();
    assert!(done.expect("a C compiler, cc or $CC").success(), "{} compiles", source.display());
    library.to_str().expect("a path in UTF-8").into()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn spec(parameters: &[(&str, &str)]) -> RtlSpec {
    let pairs = parameters.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    RtlSpec { file: library().into(), parameters: pairs.collect::<BTreeMap<_, _>>(), waveform: None }
}

/// A run of one copier below one root port.
struct Bench {
    config: FabricConfig,
    program: Box<dyn HostProgram>,
}

impl Bench {
    /// The copier's driver makes so many copies.
    fn copies(bytes: u32, copies: u32) -> Self {
        Self::of(Box::new(DmaDriver::new("card", bytes, copies)))
    }

    fn of(program: Box<dyn HostProgram>) -> Self {
        let link = LinkConfig::new("host.rp0", Generation::Gen1, Width::new(8).expect("a width"));
        let mut config = FabricConfig { seed: 7, ..FabricConfig::new() };
        config.devices.push(DeviceConfig::new("card", link));
        Self { config, program }
    }

    fn link(&mut self) -> &mut LinkConfig {
        &mut self.config.devices[0].link
    }

    fn of_rtl(self, parameters: &[(&str, &str)]) -> Fabric {
        let core = RtlDevice::open(&spec(parameters)).expect("a model");
        let mut builder = Builder::new(self.config);
        builder.tlp_device("card", Box::new(core)).flows([flow("read"), flow("write")]);
        builder.program(self.program).flows([flow("mmio")]).finishes();
        builder.build().expect("a fabric")
    }

    /// As of RTL, with the same once more, on another clock and below another port.
    fn beside_another(mut self, parameters: &[(&str, &str)]) -> Fabric {
        let link = LinkConfig::new("host.rp1", Generation::Gen3, Width::new(4).expect("a width"));
        self.config.devices.push(DeviceConfig::new("other", link));
        let mut builder = Builder::new(self.config);
        for (name, parameters) in [("card", &[][..]), ("other", parameters)] {
            let core = RtlDevice::open(&spec(parameters)).expect("a model");
            builder.tlp_device(name, Box::new(core)).flows([flow("read"), flow("write")]);
        }
        builder.program(self.program).flows([flow("mmio")]).finishes();
        builder.program(Box::new(DmaDriver::new("other", 20_000, 2))).flows([flow("mmio")]).finishes();
        builder.build().expect("a fabric")
    }

    fn built_in(self) -> Fabric {
        let mut builder = Builder::new(self.config);
        let device: Box<dyn Device> = Box::new(Dma::new());
        builder.device("card", device).flows([flow("copy")]);
        builder.program(self.program).flows([flow("mmio")]).finishes();
        builder.build().expect("a fabric")
    }
}

fn flow(operation: &str) -> FlowInfo {
    let text = |s: &str| s.to_string();
    FlowInfo {
        name: format!("card.{operation}"),
        owner: text("card"),
        operation: text(operation),
        target: text("host"),
    }
}

/// Runs until all is done; the fault, if it comes to one.
fn run(fabric: &mut Fabric) -> Result<(), String> {
    fabric.run_events(10_000_000, Time::ZERO + Duration::from_ms(100));
    match fabric.fault() {
        Some(fault) => Err(fault.into()),
        None => {
            assert!(fabric.is_done(), "at {}: it is not done", fabric.now());
            Ok(())
        }
    }
}
