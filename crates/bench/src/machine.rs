//! The machine that is measured: a host, a link and a device, by the names of their profiles.

use crate::case::{Case, CaseError, Interface};
use crate::device::{self, DeviceProfile};
use crate::preparation::BASE;
use crate::target::MeasureError;
use tlplab_device::EngineProfile;
use tlplab_experiment::{Experiment, Options};
use tlplab_fabric::config::{FabricConfig, HostConfig};
use tlplab_units::{LinkRate, Mps, Mrrs};

/// The parts of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// A host profile: its name, or a file that ends in `.toml`.
    pub host: String,
    /// Keys of the host that replace those of its profile, and their values as TOML or bare words: `("iommu.mode", "off")`.
    pub host_keys: Vec<(String, String)>,
    /// A device profile: its name, or a file that ends in `.toml`.
    pub device: String,
    /// The link, such as `gen3 x8`.
    pub link: String,
    /// Max_Payload_Size as software set it, and Max_Read_Request_Size. `None`: as the device's profile says.
    pub mps: Option<Mps>,
    /// See `mps`.
    pub mrrs: Option<Mrrs>,
}

impl Default for Setup {
    /// The NFP-6000 in a plausible server, by a link of generation 3 with 8 lanes.
    fn default() -> Self {
        Self {
            host: "server".into(),
            host_keys: Vec::new(),
            device: "nfp6000".into(),
            link: "gen3 x8".into(),
            mps: None,
            mrrs: None,
        }
    }
}

/// A host, a link and a device.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Host and link, and the link's device without what it does.
    pub fabric: FabricConfig,
    /// The device.
    pub device: DeviceProfile,
}

/// The device's name in the fabric.
pub(crate) const DEVICE: &str = "bench";
/// The name of the experiment that is made of a setup.
const HERE: &str = "benchmark";

impl Machine {
    /// Reads what `setup` names; `read` brings the text of files.
    ///
    /// # Errors
    /// The mistake in the setup or in one of its files.
    pub fn new(setup: &Setup, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Self, MeasureError> {
        let mut device = device::profile(&setup.device, read)?;
        device.set(setup.mps.unwrap_or(device.mps), setup.mrrs.unwrap_or(device.mrrs));
        let text = experiment_of(setup, &device);
        let whole = |path: &str| if path == HERE { Ok(text.clone()) } else { read(path) };
        let set = setup.host_keys.iter().map(|(key, value)| format!("host.{key}={value}")).collect();
        let options = Options { set, ..Options::default() };
        let fabric =
            Experiment::parse_with(&whole, HERE, &options).map_err(|error| as_of_setup(error, setup))?.fabric;
        if device.beats_of_the_link {
            let link = &fabric.devices[0].link;
            let transmission = &mut device.engine.dma.transmission;
            transmission.beat_time = LinkRate::new(link.generation, link.width).time_of(transmission.beat);
        }
        Ok(Self { fabric, device })
    }

    /// The device's engine with as many transfers at once as the case says.
    pub(crate) fn engine_for(&self, case: &Case) -> EngineProfile {
        let mut engine = self.device.engine.clone();
        engine.dma.slots = case.at_once.unwrap_or(engine.dma.slots);
        engine
    }

    /// Checks that a case can be measured on it.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, case: &Case) -> Result<(), MeasureError> {
        case.check()?;
        let limit = self.device.engine.command.limit;
        if case.interface == Interface::Command && case.size > limit {
            return Err(CaseError::CommandSize { size: case.size, limit }.into());
        }
        check_memory(&self.fabric.host, case)?;
        Ok(())
    }
}

/// Checks that the buffer fits into the host's memory.
///
/// # Errors
/// It does not.
pub fn check_memory(host: &HostConfig, case: &Case) -> Result<(), CaseError> {
    let (window, memory) = (case.window, host.memory.size);
    if BASE + window > memory {
        return Err(CaseError::Memory { window, base: BASE, memory });
    }
    Ok(())
}

/// The experiment that is made of a setup. Its device's model is never loaded: the benchmark device takes its place.
fn experiment_of(setup: &Setup, device: &DeviceProfile) -> String {
    let quoted = |text: &str| format!("{text:?}");
    format!(
        "title = \"benchmark\"\nstop = \"1s\"\nfidelity = \"length-only\"\nhost.profile = {}\n\
         [device.{DEVICE}]\nunder = \"host.rp0\"\nmodel = \"device.py:Engine\"\nlink = {}\nmps = \"{}B\"\nmrrs = \"{}B\"\n\
         tags = {}\n[link.{DEVICE}]\ntlp_alignment = \"{}B\"\n",
        quoted(&setup.host),
        quoted(&setup.link),
        device.mps.bytes(),
        device.mrrs.bytes(),
        device.tags,
        device.tlp_alignment,
    )
}

/// A mistake in an experiment that nobody wrote has no line; it is in what the setup says of the host, the link or the device.
fn as_of_setup(error: tlplab_experiment::Error, setup: &Setup) -> tlplab_experiment::Error {
    if error.file != HERE && error.file != "--set" {
        return error;
    }
    let (file, key) = match error.key.as_str() {
        "device.bench.link" => (format!("link {:?}", setup.link), String::new()),
        key if key.starts_with("device.") || key.starts_with("link.") => {
            (format!("device {:?}", setup.device), key.rsplit('.').next().unwrap_or_default().to_owned())
        }
        key => (format!("host {:?}", setup.host), key.to_owned()),
    };
    tlplab_experiment::Error { file, line: 0, column: 0, key, ..error }
}
