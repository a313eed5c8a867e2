//! Devices made of RTL: libraries with the interface of `rtl/include/tlplab_rtl.h`.
//!
//! [`load`] opens those of an experiment. [`abi`](self) is what is unsafe about it, and nothing else.

mod abi;

use crate::library::unusable;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tlplab_cfgspace::MsiX;
use tlplab_device::{Identity, Room, TlpDevice, TlpIdentity, TlpOutput, TlpRegisters};
use tlplab_device_library::dynamic;
use tlplab_experiment::device_models::{ModelSpec, RtlSpec};
use tlplab_experiment::{Error, Experiment};
use tlplab_units::{Mps, Time};

/// The devices made of RTL that an experiment names, by their names, for
/// [`Inputs::cores`](tlplab_experiment::run::Inputs::cores).
///
/// # Errors
/// The first library that cannot be used, where the experiment names it: it is not there, it is none, or its model says what it does not like.
pub fn load(experiment: &Experiment) -> Result<BTreeMap<String, Box<dyn TlpDevice>>, Error> {
    let mut cores: BTreeMap<String, Box<dyn TlpDevice>> = BTreeMap::new();
    for device in &experiment.devices {
        let ModelSpec::Rtl(spec) = &device.model else { continue };
        let core =
            RtlDevice::open(spec).map_err(|why| unusable(experiment, &device.name, &spec.file, why))?;
        cores.insert(device.name.clone(), Box::new(core));
    }
    Ok(cores)
}

/// A model that a library has made.
pub struct RtlDevice {
    handle: abi::Handle,
    identity: TlpIdentity,
    /// The file for the waveform, until the model runs: who only looks at an experiment writes none.
    waveform: Option<PathBuf>,
}

impl RtlDevice {
    /// Loads the library and makes a model.
    ///
    /// # Errors
    /// The fact and the fix.
    pub fn open(spec: &RtlSpec) -> Result<Self, String> {
        let path = Path::new(&spec.file);
        if !path.is_file() {
            return Err("there is no such file; `make rtl` builds the project's own cores, docs/attach-rtl.md shows how to build others".into());
        }
        let mut parameters = String::new();
        for (key, value) in &spec.parameters {
            writeln!(parameters, "{key}={value}").expect("a string");
        }
        let (handle, said) = abi::Functions::load(path)?.open(&parameters)?;
        let identity = identity(&said)?;
        let waveform = spec.waveform.as_ref().map(PathBuf::from);
        if let Some(folder) = waveform.as_deref().and_then(Path::parent)
            && !folder.as_os_str().is_empty()
            && !folder.is_dir()
        {
            return Err(format!("waveform: the folder {} does not exist", folder.display()));
        }
        Ok(Self { handle, identity, waveform })
    }
}

/// The identity of a library's function.
fn identity(said: &abi::Identity) -> Result<TlpIdentity, String> {
    let function = Identity {
        revision: said.revision,
        subsystem: dynamic::subsystem(
            (said.subsystem_vendor, said.subsystem_device),
            (said.vendor, said.device),
        ),
        bars: dynamic::bars(&said.bars),
        msi_vectors: said.msi_vectors,
        intx: said.intx_pin > 0,
        ..Identity::new(said.vendor, said.device, said.class_code)
    };
    let msix = (said.msix_vectors > 0).then_some(MsiX {
        vectors: said.msix_vectors,
        table: (said.msix_table_bar, said.msix_table_offset),
        pending: (said.msix_pba_bar, said.msix_pba_offset),
    });
    let wrong = |what: String| format!("its model reports an invalid property: {what}");
    if said.intx_pin > 4 {
        return Err(wrong(format!("interrupt pin {}; expected 1 to 4, or 0 for none", said.intx_pin)));
    }
    let max_payload = Mps::ALL.get(usize::from(said.mps_supported)).copied();
    let max_payload = max_payload.ok_or_else(|| {
        wrong(format!("payload code {}; expected 0 to 5, for 128 to 4096 B", said.mps_supported))
    })?;
    let extended_tags = said.extended_tags != 0;
    let identity = TlpIdentity {
        function,
        intx_pin: said.intx_pin,
        msix,
        max_payload,
        extended_tags,
        function_level_reset: said.flr != 0,
    };
    identity.check().map_err(|error| wrong(error.to_string()))?;
    tlplab_cfgspace::ConfigSpace::new(&identity.layout()).map_err(|error| wrong(error.to_string()))?;
    Ok(identity)
}

impl TlpDevice for RtlDevice {
    fn identity(&self) -> TlpIdentity {
        self.identity.clone()
    }

    fn configure(&mut self, registers: &TlpRegisters, reset: bool) {
        let code = |bytes: u32| bytes.trailing_zeros() as u8 - 7;
        self.handle.configure(&abi::Registers {
            id: registers.id.0,
            mps: code(registers.mps.bytes()),
            mrrs: code(registers.mrrs.bytes()),
            bus_master: registers.bus_master.into(),
            extended_tag: registers.extended_tag.into(),
            msix_enable: registers.msix_enable.into(),
            msix_mask: registers.msix_mask.into(),
            intx_disable: registers.intx_disable.into(),
            reset: reset.into(),
            read_boundary_128: registers.read_boundary_128.into(),
            msi_enable: registers.msi.enable.into(),
            msi_vectors: registers.msi.vectors,
            msi_data: registers.msi.data,
            msi_mask: registers.msi.mask,
            msi_address: registers.msi.address,
        });
    }

    fn receive(&mut self, tlp: &[u8], bar: Option<u8>) -> bool {
        self.handle.receive(tlp, bar.unwrap_or(abi::NO_BAR))
    }

    fn run(&mut self, until: Time, room: Room, output: &mut TlpOutput) -> Result<(), String> {
        if let Some(path) = self.waveform.take() {
            self.handle.trace(&path).map_err(|why| format!("waveform {}: {why}", path.display()))?;
        }
        let (said, tlp) = self.handle.run(until.as_fs(), room.bits())?;
        output.tlp.clear();
        output.tlp.extend_from_slice(tlp);
        output.time = Time::from_fs(said.time);
        output.taken = said.taken;
        (output.intx, output.idle) = (said.intx != 0, said.idle != 0);
        Ok(())
    }
}
