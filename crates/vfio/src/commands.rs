//! Commands of the client, and what each answers.

use crate::error::{ProtocolError, Refused};
use crate::host::{Host, Irq};
use crate::maps::DmaRange;
use crate::message::{Command, Fields, Header, MAX_DESCRIPTORS, MAX_TRANSFER, words};
use crate::port::Port;
use tlplab_cfgspace::{BarWindow, Reset};
use tlplab_units::Time;

/// Regions: BARs 0 to 5, the ROM, configuration space, VGA.
const REGIONS: u32 = 9;
const CONFIG: u32 = 7;
const CONFIG_BYTES: u64 = 4096;
/// Kinds of interrupts: INTx, MSI, MSI-X, errors, a request to let the device go.
const IRQS: u32 = 5;

/// The result of a command: a reply with its payload, a reply later, or a reply that refuses it.
type Answer = Result<Option<Vec<u8>>, Refused>;

impl Port {
    pub(crate) fn command(
        &mut self,
        now: Time,
        header: &Header,
        payload: &[u8],
        descriptors: usize,
        host: &mut impl Host,
    ) -> Result<Answer, ProtocolError> {
        Ok(match Command::new(header.command) {
            Some(Command::Version) => return self.agree(payload).map(|reply| Ok(Some(reply))),
            Some(Command::DmaMap) => self.map(payload, descriptors, host),
            Some(Command::DmaUnmap) => self.unmap(payload, host),
            // Whether it can be reset; a PCI function.
            Some(Command::GetInfo) => {
                Ok(Some(words(&[16, 0b10 | u32::from(self.can_be_reset()), REGIONS, IRQS])))
            }
            Some(Command::GetRegionInfo) => self.region_info(payload),
            Some(Command::GetIrqInfo) => self.irq_info(payload),
            Some(Command::SetIrqs) => self.set_irqs(payload, descriptors, host),
            Some(Command::RegionRead) => self.read_region(now, header, payload),
            Some(Command::RegionWrite) => self.write_region(now, header, payload),
            Some(Command::Reset) if self.can_be_reset() => {
                self.reset(Reset::FunctionLevel);
                Ok(Some(Vec::new()))
            }
            Some(Command::Reset) => Err(Refused::Unsupported),
            // Migration and dirty pages among them.
            Some(Command::DmaRead | Command::DmaWrite) | None => Err(Refused::Unsupported),
        })
    }

    /// The lower of both versions. Capabilities that are not named have the values of the protocol.
    fn agree(&mut self, payload: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        let number =
            |at: usize| payload.get(at..at + 2).map_or(u16::MAX, |two| u16::from_le_bytes([two[0], two[1]]));
        let (major, minor) = (number(0), number(2));
        if major != 0 || minor == u16::MAX {
            return Err(ProtocolError::Version(major, minor));
        }
        let text = payload.get(4..).unwrap_or(&[]);
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        let said: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
        if let Some(bytes) = said["capabilities"]["max_data_xfer_size"].as_u64() {
            self.dma.max_transfer = u32::try_from(bytes).unwrap_or(MAX_TRANSFER).clamp(4096, MAX_TRANSFER);
        }
        self.agreed = true;
        let own = serde_json::json!({ "capabilities": {
            "max_msg_fds": MAX_DESCRIPTORS, "max_data_xfer_size": MAX_TRANSFER,
        } });
        // QEMU wants its own minor number back.
        Ok([&0_u16.to_le_bytes()[..], &minor.to_le_bytes(), own.to_string().as_bytes(), &[0]].concat())
    }

    fn map(&mut self, payload: &[u8], descriptors: usize, host: &mut impl Host) -> Answer {
        let (flags, offset, address, bytes) = map_fields(payload).ok_or(Refused::Invalid)?;
        let mapped = descriptors > 0;
        let range =
            DmaRange { address, bytes, offset, readable: flags & 1 != 0, writable: flags & 2 != 0, mapped };
        if !self.dma.maps.is_free(address, bytes) {
            return Err(Refused::Overlaps);
        }
        if mapped && !host.map(&range, 0) {
            return Err(Refused::Invalid);
        }
        self.dma.maps.insert(range);
        Ok(Some(Vec::new()))
    }

    fn unmap(&mut self, payload: &[u8], host: &mut impl Host) -> Answer {
        let (flags, address, bytes) = unmap_fields(payload).ok_or(Refused::Invalid)?;
        let gone = match flags {
            0 => self.dma.maps.remove(address, bytes).ok_or(Refused::NotThere)?,
            2 if address == 0 && bytes == 0 => self.dma.maps.clear(),
            // The pages that the device has written are not kept account of.
            _ => return Err(Refused::Unsupported),
        };
        gone.iter().for_each(|range| host.unmap(range));
        Ok(Some(payload.to_vec()))
    }

    fn region_info(&self, payload: &[u8]) -> Answer {
        let mut fields = Fields(payload);
        let index = fields.u32().and(fields.u32()).and(fields.u32()).ok_or(Refused::Invalid)?;
        let bytes = match index {
            0..REGIONS => self.region_bytes(index).unwrap_or(0),
            _ => return Err(Refused::Invalid),
        };
        let flags = if bytes == 0 { 0 } else { 0b11 };
        let mut reply = words(&[32, flags, index, 0]);
        reply.extend_from_slice(&bytes.to_le_bytes());
        reply.extend_from_slice(&(u64::from(index) << 40).to_le_bytes());
        Ok(Some(reply))
    }

    /// The size of a region; none, if the function does not have it.
    fn region_bytes(&self, index: u32) -> Option<u64> {
        match index {
            CONFIG => Some(CONFIG_BYTES),
            _ => self.bar(index).map(|bar| bar.size),
        }
    }

    fn bar(&self, index: u32) -> Option<BarWindow> {
        self.space.base_addresses().get(index as usize).copied().flatten()
    }

    fn irq_info(&self, payload: &[u8]) -> Answer {
        let mut fields = Fields(payload);
        let index = fields.u32().and(fields.u32()).and(fields.u32()).ok_or(Refused::Invalid)?;
        if index >= IRQS {
            return Err(Refused::Invalid);
        }
        let count = self.vectors(index);
        // By eventfd; the legacy interrupt can be masked, and is when it comes; of messages the number does not change.
        let flags = match index {
            0 => 0b0111,
            _ => 0b1001,
        };
        Ok(Some(words(&[16, flags, index, count])))
    }

    fn vectors(&self, index: u32) -> u32 {
        match Irq::new(index) {
            Some(Irq::Intx) => u32::from(self.space.bytes()[0x3D] != 0),
            Some(Irq::Msi) => self.space.msi_vectors().into(),
            Some(Irq::Msix) => self.msix.as_ref().map_or(0, |memory| memory.table.vectors().into()),
            Some(Irq::Error) => 1,
            None => 0,
        }
    }

    fn set_irqs(&mut self, payload: &[u8], descriptors: usize, host: &mut impl Host) -> Answer {
        const NONE: u32 = 1;
        const BOOLEANS: u32 = 2;
        const EVENTS: u32 = 4;
        const MASK: u32 = 8;
        const UNMASK: u32 = 16;
        const TRIGGER: u32 = 32;
        let (flags, index, start, count) = irq_fields(payload).ok_or(Refused::Invalid)?;
        let irq = Irq::new(index).ok_or(Refused::Invalid)?;
        let end =
            start.checked_add(count).filter(|end| *end <= self.vectors(index)).ok_or(Refused::Invalid)?;
        let (data, action) = (flags & (NONE | BOOLEANS | EVENTS), flags & (MASK | UNMASK | TRIGGER));
        match (data, action) {
            (EVENTS, TRIGGER) if descriptors <= count as usize => {
                for (file, vector) in (start..end).enumerate() {
                    host.set_trigger(irq, vector, (file < descriptors).then_some(file));
                }
            }
            // All of them go.
            (NONE, TRIGGER) if count == 0 => {
                (0..self.vectors(index)).for_each(|vector| host.set_trigger(irq, vector, None));
            }
            (NONE, TRIGGER) => (start..end).for_each(|vector| self.dma.interrupt(irq, vector)),
            (NONE, MASK | UNMASK) if irq == Irq::Intx => self.mask_intx(action == MASK),
            // Messages are masked in the table.
            (NONE, MASK | UNMASK) => {}
            _ => return Err(Refused::Unsupported),
        }
        Ok(Some(Vec::new()))
    }

    fn read_region(&mut self, now: Time, header: &Header, payload: &[u8]) -> Answer {
        let access = Access::new(self, payload)?;
        let Access { place, region, offset, bytes, .. } = access;
        let data = match region {
            CONFIG if self.elsewhere => {
                self.read_config_elsewhere(now, header, place, offset as u16, bytes as u16);
                return Ok(None);
            }
            CONFIG => {
                if let Some(tlps) = &mut self.dma.tlps {
                    tlps.configure(&self.space, offset as u16, bytes as u16, None);
                }
                self.space.shown_bytes()[offset as usize..][..bytes as usize].to_vec()
            }
            _ => match &self.msix {
                Some(memory) if memory.claims(region as u8, offset) => {
                    memory.read(region as u8, offset, bytes)
                }
                _ => {
                    self.read_bar(now, header, place, region as u8, offset, bytes);
                    return Ok(None);
                }
            },
        };
        Ok(Some([&place[..], &data].concat()))
    }

    fn write_region(&mut self, now: Time, header: &Header, payload: &[u8]) -> Answer {
        let Access { place, region, offset, data, .. } = Access::new(self, payload)?;
        let bytes = u32::from_le_bytes([place[12], place[13], place[14], place[15]]);
        if data.len() != bytes as usize {
            return Err(Refused::Invalid);
        }
        match (region, &mut self.msix) {
            (CONFIG, _) => {
                let resets = self.write_config(offset as u16, data);
                // A reset is the owner's to carry out.
                if self.elsewhere && !resets {
                    self.write_config_elsewhere(now, header, place, offset as u16, data);
                    return Ok(None);
                }
            }
            (_, Some(memory)) if memory.claims(region as u8, offset) => {
                memory.write(region as u8, offset, data)
            }
            _ => self.write_bar(region as u8, offset, data),
        }
        Ok(Some(place.to_vec()))
    }

    /// Without registers of its own it can if it has function-level reset.
    fn can_be_reset(&self) -> bool {
        !self.elsewhere || self.space.reset_register().is_some()
    }

    /// Writes bytes of configuration space, doubleword by doubleword. True if that resets the function.
    fn write_config(&mut self, offset: u16, data: &[u8]) -> bool {
        if let Some(tlps) = &mut self.dma.tlps {
            tlps.configure(&self.space, offset, data.len() as u16, Some(data));
        }
        let (mut at, mut left, mut resets) = (offset, data, false);
        while !left.is_empty() {
            let first = usize::from(at % 4);
            let (now, later) = left.split_at(left.len().min(4 - first));
            let mut value = [0; 4];
            value[first..first + now.len()].copy_from_slice(now);
            let enables = ((1_u8 << now.len()) - 1) << first;
            let written = self.space.write(at, enables, u32::from_le_bytes(value));
            if written.function_level_reset {
                self.reset(Reset::FunctionLevel);
                resets = true;
            }
            at += now.len() as u16;
            left = later;
        }
        self.signal_intx();
        resets
    }
}

/// An access of a region that has all the bytes.
struct Access<'a> {
    place: [u8; 16],
    region: u32,
    offset: u64,
    bytes: u32,
    data: &'a [u8],
}

impl<'a> Access<'a> {
    fn new(port: &Port, payload: &'a [u8]) -> Result<Self, Refused> {
        let (place, data) = payload.split_first_chunk::<16>().ok_or(Refused::Invalid)?;
        let mut fields = Fields(place);
        let of = |value: Option<u32>| value.ok_or(Refused::Invalid);
        let offset = fields.u64().ok_or(Refused::Invalid)?;
        let (region, bytes) = (of(fields.u32())?, of(fields.u32())?);
        let end = offset.checked_add(u64::from(bytes)).ok_or(Refused::Invalid)?;
        let limit = port.region_bytes(region).ok_or(Refused::Invalid)?;
        if end > limit || bytes == 0 || bytes > MAX_TRANSFER {
            return Err(Refused::Invalid);
        }
        Ok(Self { place: *place, region, offset, bytes, data })
    }
}

/// Flags, offset in the file, address, size.
fn map_fields(payload: &[u8]) -> Option<(u32, u64, u64, u64)> {
    let mut fields = Fields(payload);
    fields.u32()?;
    Some((fields.u32()?, fields.u64()?, fields.u64()?, fields.u64()?))
}

/// Flags, address, size.
fn unmap_fields(payload: &[u8]) -> Option<(u32, u64, u64)> {
    let mut fields = Fields(payload);
    fields.u32()?;
    Some((fields.u32()?, fields.u64()?, fields.u64()?))
}

/// Flags, kind of interrupts, first vector, number of vectors.
fn irq_fields(payload: &[u8]) -> Option<(u32, u32, u32, u32)> {
    let mut fields = Fields(payload);
    fields.u32()?;
    Some((fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?))
}
