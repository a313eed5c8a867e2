//! What firmware and an operating system do before a run: bus numbers, base addresses, bridge windows, in the order of names. Routing
//! knows only the registers that come out of it.

use crate::build::BuildError;
use crate::config::FabricConfig;
use crate::layout::Layout;
use crate::routing::{BridgeRegisters, Window};
use crate::topology::NodeKind;
use std::collections::BTreeMap;
use tlplab_device::{DeviceInfo, Identity};
use tlplab_units::Bdf;

/// Below 4 GiB, base addresses come from here on; host memory has a hole there.
pub(crate) const MMIO_LOW: u64 = 0xC000_0000;
const MMIO_LOW_END: u64 = 0xFE00_0000;
/// Bridge windows are multiples of 1 MiB.
const WINDOW: u64 = 1 << 20;

pub(crate) struct Firmware {
    /// By node.
    pub(crate) ids: Vec<Bdf>,
    /// By port: of downstream ports, root ports and the upstream ports of switches.
    pub(crate) bridges: Vec<Option<BridgeRegisters>>,
    /// In the order of their names.
    pub(crate) devices: Vec<DeviceInfo>,
}

struct Walk<'a> {
    layout: &'a Layout,
    identities: &'a BTreeMap<String, Identity>,
    next_bus: u16,
    low: u64,
    high: u64,
    firmware: Firmware,
}

impl Firmware {
    pub(crate) fn assign(
        layout: &Layout,
        config: &FabricConfig,
        identities: &BTreeMap<String, Identity>,
    ) -> Result<Self, BuildError> {
        let firmware = Self {
            ids: vec![Bdf(0); layout.nodes.len()],
            bridges: layout.ports.iter().map(|_| None).collect(),
            devices: Vec::new(),
        };
        // 64-bit windows start above all memory.
        let high = config.host.memory.size.next_power_of_two().max(1 << 40);
        let mut walk = Walk { layout, identities, next_bus: 1, low: MMIO_LOW, high, firmware };
        let root_ports: Vec<_> = layout.ports_of(layout.root).collect();
        for port in root_ports {
            walk.bridge(port, 0)?;
        }
        let mut firmware = walk.firmware;
        firmware.devices.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(firmware)
    }
}

impl Walk<'_> {
    /// Numbers what is below a downstream port and opens its windows.
    fn bridge(&mut self, port: usize, primary: u8) -> Result<(), BuildError> {
        let secondary = self.bus()?;
        (self.low, self.high) = (self.low.next_multiple_of(WINDOW), self.high.next_multiple_of(WINDOW));
        let (low, high) = (self.low, self.high);
        let node = self.layout.below(port);
        if self.layout.kind(node) == NodeKind::Switch {
            self.switch(node, secondary)?;
        } else {
            self.end_point(node, secondary)?;
        }
        self.firmware.bridges[port] = Some(self.registers(primary, secondary, low, high)?);
        Ok(())
    }

    fn registers(
        &mut self,
        primary: u8,
        secondary: u8,
        low: u64,
        high: u64,
    ) -> Result<BridgeRegisters, BuildError> {
        (self.low, self.high) = (self.low.next_multiple_of(WINDOW), self.high.next_multiple_of(WINDOW));
        if self.low > MMIO_LOW_END {
            return Err(BuildError::TooLarge(
                "the 32-bit BARs need more than the 992 MiB there are below 4 GiB; make them 64-bit",
            ));
        }
        let window = |base: u64, end: u64| {
            if end > base { Window { base, limit: end - 1 } } else { Window::CLOSED }
        };
        Ok(BridgeRegisters {
            primary,
            secondary,
            subordinate: (self.next_bus - 1) as u8,
            memory: window(low, self.low),
            prefetchable: window(high, self.high),
            io: Window::CLOSED,
        })
    }

    fn switch(&mut self, node: usize, bus: u8) -> Result<(), BuildError> {
        self.firmware.ids[node] = bdf(bus, 0)?;
        let internal = self.bus()?;
        let (low, high) = (self.low, self.high);
        let ports: Vec<_> = self.layout.ports_of(node).collect();
        for &port in &ports[1..] {
            self.bridge(port, internal)?;
        }
        self.firmware.bridges[ports[0]] = Some(self.registers(bus, internal, low, high)?);
        Ok(())
    }

    fn end_point(&mut self, node: usize, bus: u8) -> Result<(), BuildError> {
        let id = bdf(bus, 0)?;
        self.firmware.ids[node] = id;
        let name = &self.layout.nodes[node];
        let identity = &self.identities[name];
        let mut bars = [None; 6];
        for bar in &identity.bars {
            let cursor = if bar.is_64_bit { &mut self.high } else { &mut self.low };
            let base = cursor.next_multiple_of(bar.size);
            *cursor = base + bar.size;
            bars[usize::from(bar.index)] = Some((base, bar.size));
        }
        let ids = (identity.vendor, identity.device);
        self.firmware.devices.push(DeviceInfo { name: name.clone(), id, ids, bars });
        Ok(())
    }

    fn bus(&mut self) -> Result<u8, BuildError> {
        let bus = u8::try_from(self.next_bus)
            .map_err(|_| BuildError::TooLarge("a machine has at most 256 buses; use fewer bridges"))?;
        self.next_bus += 1;
        Ok(bus)
    }
}

fn bdf(bus: u8, device: u8) -> Result<Bdf, BuildError> {
    Bdf::new(bus, device, 0).ok_or(BuildError::TooLarge("a bus has at most 32 devices"))
}
