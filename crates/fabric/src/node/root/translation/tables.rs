//! The present content of the tables of the IOMMU, by function.

use crate::config::{HostConfig, MapConfig, MapTarget};
use crate::kernel::ids::NodeId;
use std::collections::BTreeMap;
use tlplab_device::DeviceInfo;
use tlplab_units::Time;

/// The reason that an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultReason {
    /// Nothing is mapped there.
    NotMapped,
    /// It may not be read.
    NoRead,
    /// It may not be written.
    NoWrite,
    /// The address is said to be translated, by a function that may not translate.
    Translated,
    /// A translation was asked for by a function that may not ask.
    Asked,
}

impl FaultReason {
    /// Its name in documents.
    pub const fn token(self) -> &'static str {
        match self {
            Self::NotMapped => "not-mapped",
            Self::NoRead => "no-read",
            Self::NoWrite => "no-write",
            Self::Translated => "translated",
            Self::Asked => "translation-request",
        }
    }
}

/// A range of addresses and what it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) to: u64,
    pub(super) page: u64,
    pub(super) read: bool,
    pub(super) write: bool,
}

/// A page, as the tables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The translated address.
    pub(super) address: u64,
    /// The size that one translation covers.
    pub(super) page: u64,
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Found {
    pub(super) fn allows(&self, write: bool) -> Result<u64, FaultReason> {
        match write {
            true if !self.write => Err(FaultReason::NoWrite),
            false if !self.read => Err(FaultReason::NoRead),
            _ => Ok(self.address),
        }
    }
}

/// A mapping comes or goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) at: Time,
    /// The index of the mapping.
    pub(super) map: usize,
    pub(super) comes: bool,
}

/// The tables.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    maps: Vec<MapConfig>,
    /// By mapping: the functions that it is for.
    functions: Vec<Vec<NodeId>>,
    /// Functions of which some mapping speaks, at whatever time.
    translated: Vec<NodeId>,
    /// The present mappings, by function and address; none overlap.
    pieces: BTreeMap<(NodeId, u64), Piece>,
    pub(super) changes: Vec<Change>,
}

impl Tables {
    /// The tables of a host with these end points.
    pub(super) fn new(host: &HostConfig, end_points: &[(&str, NodeId)]) -> Self {
        let maps = host.maps.clone();
        let functions: Vec<Vec<NodeId>> = maps
            .iter()
            .map(|map| {
                let is_meant = |name: &str| map.device.as_deref().is_none_or(|device| device == name);
                end_points.iter().filter(|(name, _)| is_meant(name)).map(|(_, node)| *node).collect()
            })
            .collect();
        let mut translated: Vec<NodeId> = functions.iter().flatten().copied().collect();
        translated.sort_unstable();
        translated.dedup();
        let mut changes = Vec::new();
        for (index, map) in maps.iter().enumerate() {
            changes.push(Change { at: map.since, map: index, comes: true });
            changes.extend(map.until.map(|at| Change { at, map: index, comes: false }));
        }
        // What goes makes room for what comes at the same time.
        changes.sort_by_key(|change| (change.at, change.comes, change.map));
        Self { maps, functions, translated, pieces: BTreeMap::new(), changes }
    }

    /// True if the addresses of a function are translated.
    pub(super) fn translates(&self, function: NodeId) -> bool {
        self.translated.contains(&function)
    }

    /// The translation of an address of a function that is translated, if there is one.
    pub(super) fn find(&self, function: NodeId, address: u64) -> Option<Found> {
        let (_, piece) = self.pieces.range((function, 0)..=(function, address)).next_back()?;
        let offset = address - piece.from;
        (offset < piece.bytes).then(|| Found {
            address: piece.to + offset,
            page: piece.page,
            read: piece.read,
            write: piece.write,
        })
    }

    /// A change happens. The functions that it concerns, and the range that they see.
    pub(super) fn apply(&mut self, change: Change, devices: &[DeviceInfo]) -> (Vec<NodeId>, Piece) {
        let Change { map: index, comes, .. } = change;
        let map = &self.maps[index];
        let base = match &map.to {
            MapTarget::Address(address) => *address,
            MapTarget::Bar { device, offset } => {
                let info = devices.iter().find(|info| info.name == *device);
                let bar = info.and_then(|info| info.bars.iter().flatten().next());
                // A BAR without an address is nowhere; nothing claims the top of the address space.
                bar.map_or(u64::MAX - map.bytes + 1, |(base, _)| base + offset)
            }
        };
        let page = if base.is_multiple_of(map.page) { map.page } else { 4096 };
        let MapConfig { from, bytes, read, write, .. } = *map;
        let piece = Piece { from, bytes, to: base, page, read, write };
        let functions = self.functions[index].clone();
        for function in &functions {
            if comes {
                self.pieces.insert((*function, from), piece);
            } else {
                self.pieces.remove(&(*function, from));
            }
        }
        (functions, piece)
    }
}
