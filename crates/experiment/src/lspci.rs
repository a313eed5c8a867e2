//! The view of software of a fabric once it has enumerated it: the document `tlplab/lspci/1`, and the dump that `lspci -F` reads.
//!
//! Registers are read when enumeration is over, or later if the run is further. Identifiers and addresses are hexadecimal in strings, as
//! `lspci` writes them; sizes are bytes.

use crate::result::ProblemName;
use crate::run::{Run, RunError};
use core::ops::RangeInclusive;
use schemars::JsonSchema;
use serde::Serialize;
use tlplab_cfgspace::enumerate::{Hierarchy, Windows};
use tlplab_cfgspace::lspci::{class_name, dump};
use tlplab_cfgspace::{BarKind, ConfigSpace, InterruptMode, PortType, enumerate};
use tlplab_fabric::Fabric;
use tlplab_fabric::config::EnumerationTime;
use tlplab_units::{Bdf, Generation, Time, Width};

/// Value of [`Document::schema`].
pub const SCHEMA: &str = "tlplab/lspci/1";

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Title of the experiment.
    pub title: String,
    /// `before` time 0, or `simulated`.
    pub enumeration: String,
    /// The end of enumeration.
    pub enumerated_fs: u64,
    /// The time at which the registers were read.
    pub now_fs: u64,
    /// A bridge comes before what is below it.
    pub functions: Vec<Function>,
    /// The problems of enumeration.
    pub problems: Vec<Problem>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// `01:00.0`
    pub bdf: String,
    /// The bridge above it.
    pub parent: Option<String>,
    /// The component, or of the host the root port.
    pub component: Option<String>,
    /// Of a downstream port: the component at the other end of its link.
    pub below: Option<String>,
    /// Vendor ID and device ID, `71ab:0101`.
    pub ids: String,
    /// Base class, sub-class and programming interface, `060400`.
    pub class: String,
    /// The name of the class.
    pub class_name: String,
    /// The kind of port; absent without the PCI Express capability.
    pub port_type: Option<String>,
    /// Its link, if it is a port.
    pub link: Option<Link>,
    /// The payload it may send, and the largest it can; absent without the PCI Express capability.
    pub mps: Option<u32>,
    /// See `mps`.
    pub mps_supported: Option<u32>,
    /// The largest size that it may request in one read; absent likewise.
    pub mrrs: Option<u32>,
    /// Buses and windows of a bridge.
    pub bridge: Option<Bridge>,
    /// Its base addresses.
    pub bars: Vec<BaseAddress>,
    /// Its capabilities, in the order of the chains.
    pub capabilities: Vec<Capability>,
    /// The kind of its interrupts: `msi-x`, `msi`, `intx` or `none`.
    pub interrupts: String,
    /// Entries of its MSI-X table, enabled or not; 0 without one.
    pub msix_vectors: u16,
    /// Its legacy interrupt pin, `A` to `D`.
    pub pin: Option<String>,
}

/// A link as a port shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Generation it runs at.
    pub generation: u8,
    /// Lanes it runs at.
    pub width: u8,
    /// The highest generation that the port can.
    pub generation_possible: u8,
    /// The most lanes that the port can.
    pub width_possible: u8,
}

/// Buses and windows of a bridge; a closed window is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bridge {
    /// The bus right below.
    pub secondary: u8,
    /// The highest bus below.
    pub subordinate: u8,
    /// First and last address of the I/O window.
    pub io: Option<[String; 2]>,
    /// Of the memory window.
    pub memory: Option<[String; 2]>,
    /// Of the window of prefetchable memory.
    pub prefetchable: Option<[String; 2]>,
}

/// A base address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaseAddress {
    /// Its number, 0 to 5.
    pub index: u8,
    /// `memory` or `io`.
    pub space: String,
    /// It takes two registers.
    pub is_64_bit: bool,
    /// Reads have no side effects.
    pub prefetchable: bool,
    /// Bytes.
    pub size: u64,
    /// Null if there was no room.
    pub address: Option<String>,
}

/// A capability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Capability {
    /// Its identifier.
    pub id: String,
    /// It is in the chain from 100h.
    pub extended: bool,
    /// Its offset.
    pub offset: String,
}

/// Something that software could not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The function that it concerns: `03:00.0`.
    pub function: String,
    /// The component that it concerns: a device, or a port such as `host.rp0`; null where that is not known.
    pub component: Option<String>,
    /// The kind of problem.
    pub kind: ProblemName,
    /// Bus numbers or addresses have run out: a run in which that happens has failed.
    pub exhausted: bool,
    /// The problem, for people.
    pub message: String,
}

/// Goes on until enumeration is over, if it is not, and tells what is there: the document, and the text of `lspci -xxxx`.
///
/// # Errors
/// [`RunError::Fault`]
pub fn lspci(run: &mut Run) -> Result<(Document, String), RunError> {
    let hierarchy = enumerate(run)?;
    let enumeration = match run.experiment().fabric.host.enumeration {
        EnumerationTime::Before => "before",
        EnumerationTime::Simulated => "simulated",
        EnumerationTime::Outside => "outside",
    };
    let title = run.experiment().title.clone();
    let fabric = run.fabric();
    let spaces = fabric.config_spaces();
    // What has gone since it was found has no registers any more.
    let space_of = |bdf| spaces.iter().find(|(id, _)| *id == bdf).map(|(_, space)| space);
    let there = hierarchy.functions.iter().filter_map(|found| Some((found, space_of(found.bdf)?)));
    let document = Document {
        schema: SCHEMA.into(),
        title,
        enumeration: enumeration.into(),
        enumerated_fs: fabric.enumerated_at().unwrap_or(Time::ZERO).as_fs(),
        now_fs: fabric.now().as_fs(),
        functions: there.map(|(found, space)| function(fabric, found, space)).collect(),
        problems: problems(fabric),
    };
    let mut bytes: Vec<_> = spaces.iter().map(|(id, space)| (*id, space.shown_bytes())).collect();
    bytes.sort_by_key(|(id, _)| *id);
    Ok((document, dump(bytes.iter().map(|(id, bytes)| (*id, bytes)))))
}

fn enumerate(run: &mut Run) -> Result<Hierarchy, RunError> {
    let fabric = run.fabric();
    loop {
        if let Some(hierarchy) = fabric.hierarchy() {
            return Ok(hierarchy.clone());
        }
        let over = fabric.next_event().is_none().then_some("enumeration waits for an event that never comes");
        if let Some(message) = fabric.fault().or(over) {
            return Err(RunError::Fault { at: fabric.now(), message: message.into() });
        }
        fabric.step();
    }
}

fn function(fabric: &mut Fabric, found: &enumerate::Function, space: &ConfigSpace) -> Function {
    let (component, below) = names(fabric, found.bdf);
    let pcie = space.pcie();
    Function {
        bdf: found.bdf.to_string(),
        parent: found.parent.map(|bdf| bdf.to_string()),
        component,
        below,
        ids: format!("{:04x}:{:04x}", found.ids.0, found.ids.1),
        class: format!("{:06x}", found.class),
        class_name: class_name(found.class).into(),
        port_type: pcie.and_then(|pcie| pcie.port).map(|port| port_name(port).into()),
        link: space.link().map(|link| link_of(link.current, link.capable)),
        mps: pcie.map(|pcie| pcie.mps.bytes()),
        mps_supported: pcie.map(|_| found.mps_supported.bytes()),
        mrrs: pcie.map(|pcie| pcie.mrrs.bytes()),
        bridge: found.bridge.as_ref().map(bridge),
        bars: found.bars.iter().map(bar).collect(),
        capabilities: found.capabilities.iter().map(capability).collect(),
        interrupts: match space.interrupt_mode() {
            InterruptMode::MsiX => "msi-x",
            InterruptMode::Msi => "msi",
            InterruptMode::Intx => "intx",
            InterruptMode::Disabled => "none",
        }
        .into(),
        msix_vectors: space.msix().map_or(0, |msix| msix.vectors),
        pin: found.intx.map(|(pin, _)| char::from(b'A' + pin - 1).into()),
    }
}

/// The component that a function is, or whose port it is; and what is at the other end of a downstream port.
fn names(fabric: &mut Fabric, bdf: Bdf) -> (Option<String>, Option<String>) {
    let Some((node, port)) = fabric.component_at(bdf) else { return (None, None) };
    let topology = fabric.topology();
    let Some(port) = port else { return (Some(topology.nodes[node.index()].name.clone()), None) };
    let port = &topology.ports[port.index()];
    let below = (port.direction == 1).then(|| topology.links[port.link.index()].name.clone());
    (Some(port.name.clone()), below)
}

fn port_name(port: PortType) -> &'static str {
    match port {
        PortType::EndPoint => "end point",
        PortType::LegacyEndPoint => "legacy end point",
        PortType::RootPort => "root port",
        PortType::Upstream => "upstream port",
        PortType::Downstream => "downstream port",
        PortType::BridgeToPci => "bridge to PCI",
        PortType::RcIntegrated => "root complex integrated end point",
    }
}

fn link_of(current: (Generation, Width), capable: (Generation, Width)) -> Link {
    Link {
        generation: current.0.number(),
        width: current.1.lanes(),
        generation_possible: capable.0.number(),
        width_possible: capable.1.lanes(),
    }
}

fn bridge(windows: &Windows) -> Bridge {
    let window = |range: &Option<RangeInclusive<u64>>| {
        range.as_ref().map(|range| [hexadecimal(*range.start()), hexadecimal(*range.end())])
    };
    Bridge {
        secondary: windows.secondary,
        subordinate: windows.subordinate,
        io: window(&windows.io),
        memory: window(&windows.memory),
        prefetchable: window(&windows.prefetchable),
    }
}

fn bar(found: &enumerate::BarFound) -> BaseAddress {
    BaseAddress {
        index: found.index,
        space: if found.kind.is_io() { "io" } else { "memory" }.into(),
        is_64_bit: found.kind.is_wide(),
        prefetchable: matches!(found.kind, BarKind::Memory { prefetchable: true, .. }),
        size: found.size,
        address: found.address.map(hexadecimal),
    }
}

fn capability(found: &enumerate::CapabilityFound) -> Capability {
    Capability {
        id: hexadecimal(found.id.into()),
        extended: found.extended,
        offset: hexadecimal(found.offset.into()),
    }
}

/// The problems of software, with the names of the components that they concern.
pub(crate) fn problems(fabric: &mut Fabric) -> Vec<Problem> {
    let problems = fabric.hierarchy().map(|hierarchy| hierarchy.problems.clone()).unwrap_or_default();
    named(fabric, problems)
}

/// The same since the start of the run: of what has gone since, too.
pub(crate) fn problems_so_far(fabric: &mut Fabric) -> Vec<Problem> {
    let problems = fabric.enumeration_problems().to_vec();
    named(fabric, problems)
}

fn named(fabric: &mut Fabric, problems: Vec<enumerate::Problem>) -> Vec<Problem> {
    let named = problems.into_iter().map(|problem| {
        let component = names(fabric, problem.function).0;
        let name = component.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        Problem {
            function: problem.function.to_string(),
            message: format!("{name}{problem}"),
            component,
            kind: (&problem.kind).into(),
            exhausted: problem.kind.is_exhaustion(),
        }
    });
    named.collect()
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}
