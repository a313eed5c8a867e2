//! Is there room for what an experiment describes: device numbers, bus numbers, addresses? As far as its files alone tell: of a device
//! that another file holds is known only where it is.

use crate::assemble::add_devices;
use crate::device_models::ModelSpec;
use crate::error::Error;
use crate::experiment::Experiment;
use crate::lspci::{self, Problem};
use crate::outside::OutsideDevice;
use crate::run::{Inputs, RunError};
use crate::topology::DeviceSpec;
use tlplab_cfgspace::enumerate::ProblemKind;
use tlplab_device::Identity;
use tlplab_fabric::Builder;
use tlplab_fabric::config::EnumerationTime;

/// IDs and class of a function of which nothing else is known: IDs that are nobody's, but are there; the class of what has no other.
const UNKNOWN: (u16, u16, u32) = (2, 0, 0xFF_00_00);
const MORE_BUSES: &str = "there are 256 bus numbers; each link and each bus inside a switch takes one";
const MORE_ADDRESSES: &str =
    "below 4 GiB there are 512 MiB for all BARs and the windows around them, in steps of 1 MiB";

impl Experiment {
    /// A mistake for each component that cannot be built, or finds no number or address when it is enumerated; none if there is room for all.
    pub fn without_room(&self) -> Vec<Error> {
        match self.problems() {
            Ok(problems) => {
                problems.into_iter().filter_map(|(kind, problem)| self.exhausted(kind, problem)).collect()
            }
            Err(RunError::Build(error)) => {
                vec![self.mistake(error.component().unwrap_or_default(), error.to_string(), None)]
            }
            Err(error) => vec![self.mistake("", error.to_string(), None)],
        }
    }

    fn exhausted(&self, kind: ProblemKind, problem: Problem) -> Option<Error> {
        let hint = match kind {
            ProblemKind::NoBusNumber | ProblemKind::NoVirtualBus => MORE_BUSES,
            ProblemKind::NoAddress { .. } => MORE_ADDRESSES,
            ProblemKind::NeverReady
            | ProblemKind::NoAnswer
            | ProblemKind::HeaderType(_)
            | ProblemKind::CapabilityChain(_)
            | ProblemKind::BarSize { .. }
            | ProblemKind::BarUnkept { .. }
            | ProblemKind::MsixTable
            | ProblemKind::VirtualIds { .. } => return None,
        };
        let component = problem.component.unwrap_or_default();
        Some(self.mistake(&component, problem.message, Some(hint.into())))
    }

    /// The problems of software that enumerates this fabric in no time.
    fn problems(&self) -> Result<Vec<(ProblemKind, Problem)>, RunError> {
        let mut bare = self.clone();
        bare.loads.clear();
        bare.fabric.host.enumeration = EnumerationTime::Before;
        let elsewhere = |device: &DeviceSpec| {
            matches!(device.model, ModelSpec::Python { .. } | ModelSpec::Library(_) | ModelSpec::Rtl(_))
        };
        bare.devices.retain(|device| !elsewhere(device));
        for device in &mut bare.devices {
            if let ModelSpec::Nvme(nvme) = &mut device.model {
                nvme.file = None; // which data it has does not matter
            }
        }
        let mut builder = Builder::new(bare.fabric.clone());
        add_devices(&mut builder, &bare, &mut Inputs::default())?;
        for device in self.devices.iter().filter(|device| elsewhere(device)) {
            let unknown = OutsideDevice::new(Identity::new(UNKNOWN.0, UNKNOWN.1, UNKNOWN.2));
            builder.outside_device(&device.name, Box::new(unknown));
        }
        let mut fabric = builder.build()?;
        let kinds: Vec<_> = fabric.enumeration_problems().iter().map(|problem| problem.kind).collect();
        Ok(kinds.into_iter().zip(lspci::problems_so_far(&mut fabric)).collect())
    }
}
