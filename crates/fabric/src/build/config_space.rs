//! Configuration spaces of the fabric's parts: bridges are made here, a device's own is fitted to the link it is on.

use crate::config::BuildError;
use crate::config::numbering::Numbering;
use crate::config::{BusConfig, DeviceConfig, FabricConfig, HostConfig, LinkConfig, Payloads, SwitchConfig};
use crate::kernel::ids::PortId;
use crate::node::function::Function;
use tlplab_cfgspace::{
    Acs, AcsControls, Aer, Capability, ConfigSpace, ExtendedCapability, Header, Identity, Layout, LinkPart,
    Msi, Pcie, PortType, PowerManagement, Slot, Type0, Type1, VENDOR_ID,
};
use tlplab_device::Device;
use tlplab_units::{Bdf, Generation, Rcb, Time};

const HOST_BRIDGE: u16 = 0x0100;
const ROOT_PORT: u16 = 0x0101;
const UPSTREAM_PORT: u16 = 0x0110;
const DOWNSTREAM_PORT: u16 = 0x0111;
const BUS_BRIDGE: u16 = 0x0120;
/// Class codes: host bridge, and PCI-PCI bridge.
const HOST_BRIDGE_CLASS: u32 = 0x06_00_00;
const BRIDGE_CLASS: u32 = 0x06_04_00;
/// Ports can tell of their slots in D0 and D3hot, and declare D3cold besides, as those of real machines do.
const WAKES_FROM: u8 = 0b1_1001;

/// The functions on bus 0: the host bridge is device 0, root ports are the devices after it.
pub(crate) fn of_root(
    host: &HostConfig,
    numbering: &Numbering,
    config: &FabricConfig,
    ports: &[PortId],
) -> Result<Vec<Function>, BuildError> {
    let bridge = Layout::new(Type0::new(Identity::new(config.vendor, HOST_BRIDGE, HOST_BRIDGE_CLASS)));
    let mut functions = vec![function(&host.name, &bridge, Bdf(0))?];
    for (i, port) in ports.iter().enumerate() {
        let slot = &numbering.ports[port.index()];
        let (vendor, device) = host.root_port_ids.get(i).copied().unwrap_or((config.vendor, ROOT_PORT));
        let link = numbering.link_config(config, slot.link);
        let pcie = Pcie {
            read_boundary_128: host.rcb == Rcb::ALL[1],
            ..port_of(PortType::RootPort, link, i + 1, slot.link)
        };
        let layout = port_layout(Identity::new(vendor, device, BRIDGE_CLASS), pcie, host.ecrc);
        // Root ports are numbered from 1 on.
        let layout = with_access_control(layout, numbering, config, *port, ports, 1)?;
        let id = u8::try_from(i + 1).ok().and_then(|device| Bdf::new(0, device, 0));
        let id = id.ok_or(BuildError::TooLarge("bus 0 has room for 31 root ports"))?;
        functions.push(function(&slot.name, &layout, id)?);
    }
    Ok(functions)
}

/// The functions of a switch, by port.
pub(crate) fn of_switch(
    switch: &SwitchConfig,
    numbering: &Numbering,
    config: &FabricConfig,
    ports: &[PortId],
) -> Result<Vec<Function>, BuildError> {
    let kinds = std::iter::once((UPSTREAM_PORT, PortType::Upstream))
        .chain(std::iter::repeat((DOWNSTREAM_PORT, PortType::Downstream)));
    let mut functions = Vec::new();
    for ((i, port), (device, kind)) in ports.iter().enumerate().zip(kinds) {
        let place = numbering.ports[port.index()].link;
        let pcie = port_of(kind, numbering.link_config(config, place), i, place);
        let mut layout =
            port_layout(Identity::new(config.vendor, device, BRIDGE_CLASS), pcie, config.host.ecrc);
        if kind.is_downstream() {
            layout = with_access_control(layout, numbering, config, *port, ports, 0)?;
        }
        functions.push(function(&switch.name, &layout, Bdf(0))?);
    }
    if functions.len() > 33 {
        return Err(BuildError::TooLarge("a switch has at most 32 downstream ports"));
    }
    Ok(functions)
}

/// The function of a bridge to a parallel bus.
pub(crate) fn of_bridge(
    bus: &BusConfig,
    numbering: &Numbering,
    config: &FabricConfig,
    port: PortId,
) -> Result<Function, BuildError> {
    let place = numbering.ports[port.index()].link;
    let pcie = port_of(PortType::BridgeToPci, numbering.link_config(config, place), 0, place);
    let layout = port_layout(Identity::new(config.vendor, BUS_BRIDGE, BRIDGE_CLASS), pcie, config.host.ecrc);
    function(&bus.name, &layout, Bdf(0))
}

/// The space of a device's function, as it shows itself on its link; `numbers` are those of all functions, in ascending order; what is of [`VENDOR_ID`] is of the
/// fabric's.
pub(crate) fn of_device(
    device: &dyn Device,
    config: &DeviceConfig,
    link: &LinkConfig,
    numbers: &[u8],
    fabric: &FabricConfig,
    on_bus: bool,
) -> Result<ConfigSpace, BuildError> {
    let mut layout = device.layout();
    let ecrc = fabric.host.ecrc;
    if on_bus {
        // It is not PCI Express, and has 256 bytes of configuration space.
        layout.capabilities.retain(|(_, capability)| !matches!(capability, Capability::Pcie(_)));
        layout.extended.clear();
    }
    for (_, capability) in &mut layout.extended {
        if let ExtendedCapability::Aer(aer) = capability {
            aer.ecrc = ecrc;
        }
    }
    if let Header::Type0(header) = &mut layout.header {
        for vendor in [&mut header.identity.vendor, &mut header.subsystem.0] {
            if *vendor == VENDOR_ID {
                *vendor = fabric.vendor;
            }
        }
        header.multi_function = numbers.len() > 1;
    }
    let has_ats = layout.extended.iter().any(|(_, c)| matches!(c, ExtendedCapability::Ats { .. }));
    if config.ats.is_some() && !has_ats && !on_bus {
        layout = layout.extended(ExtendedCapability::Ats { queue_depth: 32 });
    }
    if numbers.iter().any(|number| *number > 7) {
        list_functions(&mut layout, config, numbers);
    }
    let tells_latency = layout.extended.iter().any(|(_, c)| matches!(c, ExtendedCapability::Ltr));
    for (_, capability) in &mut layout.capabilities {
        if let Capability::Pcie(pcie) = capability {
            pcie.link = Some(LinkPart::new(link.generation, link.width));
            pcie.mps = Payloads::supported(link).lower;
            pcie.extended_tag = config.tags > 32;
            pcie.ten_bit_completer = ten_bit_completer(link);
            pcie.ten_bit_requester = config.tags > 256;
            pcie.ltr |= tells_latency;
        }
    }
    space(&config.name, &layout)
}

/// Function numbers of 8 bits: each function names the next one (PCIe 5.0 §7.8.7).
fn list_functions(layout: &mut Layout, config: &DeviceConfig, numbers: &[u8]) {
    let number = config.function_of.as_ref().map_or(0, |of| of.number);
    let next_function = numbers.iter().copied().find(|next| *next > number).unwrap_or(0);
    let capability = layout.extended.iter_mut().find(|(_, c)| matches!(c, ExtendedCapability::Ari { .. }));
    match capability {
        Some((_, capability)) => *capability = ExtendedCapability::Ari { next_function },
        None => layout.extended.push((None, ExtendedCapability::Ari { next_function })),
    }
}

/// A port of a bridge; its number tells it from the other ports of its node, and the place of its link among all links numbers
/// the slots of the fabric.
fn port_of(kind: PortType, link: &LinkConfig, number: usize, place: usize) -> Pcie {
    let part = LinkPart { port: number as u8, ..LinkPart::new(link.generation, link.width) };
    // A link that goes down is news for hot-plug software. As no card is declared to go without a word, it is an error besides.
    let slot = Slot { number: place as u16 + 1, hot_plug: true, surprise: false, power_limit: 25 };
    let payloads = Payloads::supported(link);
    Pcie {
        mps: if kind.is_downstream() { payloads.upper } else { payloads.lower },
        slot: kind.is_downstream().then_some(slot),
        ten_bit_completer: ten_bit_completer(link),
        ten_bit_requester: false,
        ..Pcie::new(kind, part)
    }
}

/// A component at 16 GT/s or above must complete requests with 10 bits of tag (PCIe 5.0 §2.2.6.2).
fn ten_bit_completer(link: &LinkConfig) -> bool {
    link.generation >= Generation::Gen4
}

fn port_layout(identity: Identity, pcie: Pcie, ecrc: bool) -> Layout {
    let root = pcie.port == PortType::RootPort;
    let layout = Layout::new(Type1 { interrupt_pin: 1, ..Type1::new(identity) })
        .capability(PowerManagement { wakes_from: WAKES_FROM, ..PowerManagement::default() })
        .capability(Msi { vectors: 1, wide: true, masking: false })
        .capability(pcie);
    layout.extended(Aer { root, ecrc })
}

/// A downstream port's access control; the ports of its node are numbered from `first` on.
fn with_access_control(
    layout: Layout,
    numbering: &Numbering,
    config: &FabricConfig,
    port: PortId,
    ports: &[PortId],
    first: usize,
) -> Result<Layout, BuildError> {
    let below = |port: PortId| &numbering.links[numbering.ports[port.index()].link];
    let link = numbering.link_config(config, numbering.ports[port.index()].link);
    let Some(acs) = &link.upper.acs else { return Ok(layout) };
    let mut forbidden = 0;
    for peer in &acs.forbidden {
        let number = ports.iter().position(|other| {
            let link = below(*other);
            link.upper == other.index() && link.name == *peer
        });
        let no_peer = || BuildError::NoPeer { component: below(port).name.clone(), peer: peer.clone() };
        forbidden |= 1 << (first + number.ok_or_else(no_peer)?);
    }
    let ports = (first + ports.len()) as u8;
    Ok(layout.extended(Acs { enabled: acs.enabled, ports, forbidden, ..Acs::new(AcsControls::ALL) }))
}

fn function(name: &str, layout: &Layout, id: Bdf) -> Result<Function, BuildError> {
    Ok(Function::new(space(name, layout)?, id, Time::ZERO))
}

fn space(name: &str, layout: &Layout) -> Result<ConfigSpace, BuildError> {
    ConfigSpace::new(layout).map_err(|error| BuildError::ConfigSpace { component: name.to_string(), error })
}
