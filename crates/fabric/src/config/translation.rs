//! Translation of addresses: what the tables of the IOMMU say, and what devices keep of it.

use super::{HostConfig, MMIO_LOW};
use tlplab_units::{Duration, Time};

/// A piece of the tables of the IOMMU. A function of which some piece speaks may only access what such pieces map; the addresses of all others stay
/// as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapConfig {
    /// The device that it is for; `None`: every one.
    pub device: Option<String>,
    /// Its start, as the device sees it.
    pub from: u64,
    /// Its size.
    pub bytes: u64,
    /// Its destination.
    pub to: MapTarget,
    /// The size that one entry of the tables covers: 4 KiB, 2 MiB or 1 GiB.
    pub page: u64,
    /// The device may read it.
    pub read: bool,
    /// The device may write it.
    pub write: bool,
    /// From this time on.
    pub since: Time,
    /// Until this time, when software takes it from the tables and has all forget it that keep it. `None`: to the end.
    pub until: Option<Time>,
}

/// The destination of a piece of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapTarget {
    /// Addresses of the host, from this one on.
    Address(u64),
    /// The first BAR of a device, from an offset on.
    Bar {
        /// The device.
        device: String,
        /// The offset.
        offset: u64,
    },
}

/// The largest address that tables of five levels know, and one.
pub const TRANSLATED_ADDRESSES: u64 = 1 << 57;
/// Bits of an address below the tables: a page of 4 KiB; each level adds as many as a table of 512 entries needs.
const PAGE_BITS: u8 = 12;
const LEVEL_BITS: u8 = 9;

/// Page tables, where the time of a walk follows from the entries that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TablesConfig {
    /// Levels of tables, 3 to 5: four for addresses of 48 bits.
    pub levels: u8,
    /// Levels of the second stage, which translates the addresses of these tables, too, and what they say; 0: there is no second stage.
    pub nested: u8,
    /// Time of reading one entry.
    pub step: Duration,
    /// Entries of each level above the last that are kept.
    pub entries: u16,
    /// Translations of the second stage that are kept.
    pub nested_entries: u16,
}

/// Address translation services of a device: it asks for translations, keeps them, and sends requests with translated addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtsConfig {
    /// Translations that it keeps, of which the least recently used makes room.
    pub entries: u16,
    /// Translations that it asks for at once, at most as many as it keeps.
    pub outstanding: u16,
}

/// Impossible mappings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A piece of an impossible size or place.
    #[error("{what} {value:#x} is not a multiple of the page size, {page:#x}")]
    Alignment {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The page.
        page: u64,
    },
    /// A page that tables cannot have.
    #[error("a page of {0} B is not supported; expected 4 KiB, 2 MiB or 1 GiB")]
    Page(u64),
    /// Nothing is mapped.
    #[error("the size of a mapping is 0; expected at least one page")]
    Empty,
    /// Beyond the tables.
    #[error("{0:#x} has more than 57 bits, the limit of five-level tables")]
    TooHigh(u64),
    /// Beyond the tables of this IOMMU.
    #[error("{address:#x} has more than {bits} bits, the limit of tables of {levels} levels")]
    Levels {
        /// The last address of the mapping.
        address: u64,
        /// Bits of the addresses that the tables translate.
        bits: u8,
        /// Their levels.
        levels: u8,
    },
    /// Host memory is smaller.
    #[error("the mapping leads to {last:#x}, and host memory ends at {end:#x}")]
    BeyondMemory {
        /// The last address that it leads to.
        last: u64,
        /// The first address behind host memory.
        end: u64,
    },
    /// Host memory has a hole there.
    #[error("{at:#x} is not memory: from {MMIO_LOW:#x} to {last:#x} there are registers of devices", last = u32::MAX)]
    Registers {
        /// The first address in the hole.
        at: u64,
    },
    /// Writes there are interrupts.
    #[error("{at:#x} is in the range of interrupts, {first:#x} to {last:#x}, which no IOMMU translates")]
    Interrupts {
        /// The first address of the mapping that is in it.
        at: u64,
        /// The first address of the range.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// It ends before it begins.
    #[error("it ends at {until} and begins at {since}")]
    Times {
        /// Its beginning.
        since: Time,
        /// Its end.
        until: Time,
    },
    /// Two pieces say different things of one address.
    #[error("{0:#x} is mapped already at that time")]
    Twice(u64),
    /// A device that is not there, or has no BAR.
    #[error("no device {0:?} has memory behind a BAR")]
    NoDevice(String),
    /// There is nothing that would use them.
    #[error("mappings need an IOMMU")]
    NoIommu,
    /// A device keeps no translation, or asks for more than it keeps.
    #[error(
        "a device keeps {entries} translations and requests {outstanding} at once; expected at least one of each, and no more requested than kept"
    )]
    Entries {
        /// Translations kept.
        entries: u16,
        /// Asked for.
        outstanding: u16,
    },
    /// A device whose requests are not the fabric's.
    #[error("{0}: a device that makes its own TLPs must request translations itself")]
    OwnTlps(String),
}

impl MapConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), MapError> {
        let Self { from, bytes, page, since, until, .. } = *self;
        if !matches!(page, 0x1000 | 0x20_0000 | 0x4000_0000) {
            return Err(MapError::Page(page));
        }
        if bytes == 0 {
            return Err(MapError::Empty);
        }
        let to = match self.to {
            MapTarget::Address(to) => ("to", to),
            MapTarget::Bar { offset, .. } => ("offset", offset),
        };
        for (what, value) in [("from", from), ("size", bytes), to] {
            if !value.is_multiple_of(page) {
                return Err(MapError::Alignment { what, value, page });
            }
        }
        if from.checked_add(bytes).is_none_or(|end| end > TRANSLATED_ADDRESSES) {
            return Err(MapError::TooHigh(from.saturating_add(bytes - 1)));
        }
        if to.1.checked_add(bytes).is_none() {
            return Err(MapError::TooHigh(u64::MAX));
        }
        match until {
            Some(until) if until <= since => Err(MapError::Times { since, until }),
            _ => Ok(()),
        }
    }

    /// Checks the addresses against those of a host, and says which field is wrong: `"from"` or `"to"`. What leads to a BAR has no place yet.
    ///
    /// # Errors
    /// The field, and the address that is out of range.
    pub fn check_in(&self, host: &HostConfig) -> Result<(), (&'static str, MapError)> {
        let interrupts = &host.addresses.interrupts;
        let clear_of_interrupts = |from: u64| {
            let at = from.max(interrupts.start);
            let (first, last) = (interrupts.start, interrupts.end - 1);
            let meets = at < interrupts.end.min(from + self.bytes);
            if meets { Err(MapError::Interrupts { at, first, last }) } else { Ok(()) }
        };
        if let Some(tables) = host.iommu.and_then(|iommu| iommu.tables)
            && self.from + self.bytes > tables.addresses()
        {
            let (bits, levels) = (tables.bits(), tables.levels);
            return Err(("from", MapError::Levels { address: self.from + self.bytes - 1, bits, levels }));
        }
        clear_of_interrupts(self.from).map_err(|error| ("from", error))?;
        let MapTarget::Address(to) = self.to else { return Ok(()) };
        let wrong = |error| Err(("to", error));
        clear_of_interrupts(to).map_err(|error| ("to", error))?;
        if to < 1 << 32 && to + self.bytes > MMIO_LOW {
            return wrong(MapError::Registers { at: to.max(MMIO_LOW) });
        }
        if to + self.bytes > host.memory.size {
            return wrong(MapError::BeyondMemory { last: to + self.bytes - 1, end: host.memory.size });
        }
        Ok(())
    }

    /// An address that both map at the same time.
    pub fn clash(&self, other: &Self) -> Option<u64> {
        let same = self.device.is_none() || other.device.is_none() || self.device == other.device;
        let ends = |map: &Self| map.until.unwrap_or(Time::NEVER);
        let at_once = self.since < ends(other) && other.since < ends(self);
        let first = self.from.max(other.from);
        (same && at_once && first < (self.from + self.bytes).min(other.from + other.bytes)).then_some(first)
    }
}

impl TablesConfig {
    /// Bits of the addresses that they translate: 39 with three levels, 48 with four, 57 with five.
    pub const fn bits(&self) -> u8 {
        PAGE_BITS + LEVEL_BITS * self.levels
    }

    /// The largest address that they translate, and one.
    pub const fn addresses(&self) -> u64 {
        1 << self.bits()
    }
}

impl AtsConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The parameter that is out of range.
    pub fn check(&self) -> Result<(), MapError> {
        let Self { entries, outstanding } = *self;
        if outstanding == 0 || outstanding > entries {
            return Err(MapError::Entries { entries, outstanding });
        }
        Ok(())
    }
}
