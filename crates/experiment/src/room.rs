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
use tlplab_fabric::config::{EnumerationTime, MapConfig, MapTarget};
use tlplab_fabric::{Builder, Fabric};

/// IDs and class of a function of which nothing else is known: IDs that are nobody's, but are there; the class of what has no other.
const UNKNOWN: (u16, u16, u32) = (2, 0, 0xFF_00_00);
const MORE_BUSES: &str = "there are 256 bus numbers; each link and each bus inside a switch takes one";
const MORE_ADDRESSES: &str =
    "below 4 GiB there are 512 MiB for all BARs and the windows around them, in steps of 1 MiB";

impl Experiment {
    /// A mistake for each component that cannot be built, or finds no number or address when it is enumerated, and for each mapping of the IOMMU
    /// over a BAR; none if there is room for all.
    pub fn without_room(&self) -> Vec<Error> {
        match self.bare_fabric() {
            Ok(mut fabric) => {
                let over = self.mappings_over_bars(&fabric);
                let problems = problems(&mut fabric);
                let exhausted =
                    problems.into_iter().filter_map(|(kind, problem)| self.exhausted(kind, problem));
                exhausted.chain(over).collect()
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

    /// Mappings that lead to host memory where a BAR is: the BAR claims what goes there.
    fn mappings_over_bars(&self, fabric: &Fabric) -> Vec<Error> {
        let functions = fabric.hierarchy().map_or(&[][..], |hierarchy| &hierarchy.functions);
        let bars = functions.iter().flat_map(|function| &function.bars);
        let ranges: Vec<(u64, u64)> = bars.filter_map(|bar| Some((bar.address?, bar.size))).collect();
        let over = |map: &MapConfig| {
            let MapTarget::Address(to) = map.to else { return None };
            let (bar, size) = *ranges.iter().find(|(bar, size)| to < bar + size && *bar < to + map.bytes)?;
            let last = bar + size - 1;
            let message = format!(
                "the mapping from {:#x} leads to a BAR at {bar:#x} to {last:#x}, not to memory",
                map.from
            );
            let hint = "choose another to in host.iommu.map, or write bar = \"…\"".to_owned();
            Some(self.mistake("", message, Some(hint)))
        };
        self.fabric.host.maps.iter().filter_map(over).collect()
    }

    /// The fabric of this experiment, without loads, enumerated in no time.
    fn bare_fabric(&self) -> Result<Fabric, RunError> {
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
        Ok(builder.build()?)
    }
}

/// The problems of the software that enumerated a fabric.
fn problems(fabric: &mut Fabric) -> Vec<(ProblemKind, Problem)> {
    let kinds: Vec<_> = fabric.enumeration_problems().iter().map(|problem| problem.kind).collect();
    kinds.into_iter().zip(lspci::problems_so_far(fabric)).collect()
}
