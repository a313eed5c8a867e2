//! Rows of the tables: a key, and where its value goes in the configuration.
//!
//! A [`row`] says all of a key: its name, what it may hold, its default, an example, what it means, and a setter, such as
//! `Set::Time(|switch, it| switch.latency = it)`. A setter for another kind of value does not compile. [`Section::read`] goes through the
//! rows, and puts what the table says, or else the row's default, so that nobody who reads a table names its keys or knows defaults.

use crate::error::{At, Error};
use crate::keys::{Extra, Form, Key, Keys, Kind, key};
use crate::tree::Node;
use crate::view::View;
use std::fmt;
use tlplab_units::{Duration, Time};

/// A table of an experiment file whose values go into a `T`.
pub(crate) struct Section<T: 'static> {
    /// Its subject, with its article: `a switch`.
    pub(crate) title: &'static str,
    /// Its keys, in the order in which they are explained and read.
    pub(crate) rows: &'static [Row<T>],
    /// Further keys that depend on what the table's `model` says; `None` where there are none.
    pub(crate) extra: Option<fn(&str) -> Extra>,
}

/// A key, and where its value goes in a `T`.
pub(crate) struct Row<T> {
    key: Key,
    set: Set<T>,
}

/// Puts the value of a key into a `T`.
pub(crate) enum Set<T> {
    Time(fn(&mut T, Duration)),
    Instant(fn(&mut T, Time)),
    Bytes(fn(&mut T, u64)),
    Rate(fn(&mut T, u64)),
    Address(fn(&mut T, u64)),
    U8(fn(&mut T, u8)),
    U16(fn(&mut T, u16)),
    U32(fn(&mut T, u32)),
    U64(fn(&mut T, u64)),
    Number(fn(&mut T, f64)),
    Boolean(fn(&mut T, bool)),
    Text(fn(&mut T, String)),
    Texts(fn(&mut T, Vec<String>)),
    /// A path becomes one that is relative to the file that says it.
    File(fn(&mut T, String)),
    Files(fn(&mut T, Vec<String>)),
    /// A choice, a table, a string with a form of its own: the setter reads it.
    Read(fn(&mut T, &View<'_>) -> Result<(), Error>),
    /// It takes more than the table to know what it means, or it belongs elsewhere: whoever reads the table reads it besides.
    Context,
}

/// A row of a table of keys.
pub(crate) const fn row<T>(form: Form, doc: &'static str, set: Set<T>) -> Row<T> {
    key(form, doc).row(set)
}

impl Key {
    /// The row of a key that stands in several tables.
    pub(crate) const fn row<T>(self, set: Set<T>) -> Row<T> {
        assert!(set.takes(&self.kind), "this is no setter for a key of this kind");
        Row { key: self, set }
    }
}

impl<T> Set<T> {
    const fn takes(&self, kind: &Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Time(_) | Self::Instant(_), Kind::Time)
                | (Self::Bytes(_), Kind::Size)
                | (Self::Rate(_), Kind::Rate)
                | (Self::Address(_), Kind::Address)
                | (Self::U8(_), Kind::Integer { min: 0.., max: ..=0xFF })
                | (Self::U16(_), Kind::Integer { min: 0.., max: ..=0xFFFF })
                | (Self::U32(_), Kind::Integer { min: 0.., max: ..=0xFFFF_FFFF })
                | (Self::U64(_), Kind::Integer { min: 0.., .. })
                | (Self::Number(_), Kind::Probability)
                | (Self::Boolean(_), Kind::Boolean)
                | (Self::Text(_) | Self::File(_), Kind::Text)
                | (Self::Texts(_) | Self::Files(_), Kind::List(Kind::Text))
                | (Self::Read(_) | Self::Context, _)
        )
    }
}

impl<T> Row<T> {
    fn put(&self, to: &mut T, value: &View<'_>) -> Result<(), Error> {
        match self.set {
            Set::Time(set) => set(to, value.time()?),
            Set::Instant(set) => set(to, Time::ZERO + value.time()?),
            Set::Bytes(set) => set(to, value.bytes()?),
            Set::Rate(set) => set(to, value.rate()?),
            Set::Address(set) => set(to, value.address()?),
            Set::U8(set) => set(to, value.whole()?),
            Set::U16(set) => set(to, value.whole()?),
            Set::U32(set) => set(to, value.whole()?),
            Set::U64(set) => set(to, value.whole()?),
            Set::Number(set) => set(to, value.number()?),
            Set::Boolean(set) => set(to, value.boolean()?),
            Set::Text(set) => set(to, value.text().to_owned()),
            Set::Texts(set) => set(to, value.texts()),
            Set::File(set) => set(to, value.file()),
            Set::Files(set) => set(to, value.items().iter().map(View::file).collect()),
            Set::Read(set) => return set(to, value),
            Set::Context => {}
        }
        Ok(())
    }
}

impl<T> Section<T> {
    /// Puts into `to` what a checked table says and, of what it leaves out, the defaults. What is required comes first.
    pub(crate) fn read(&self, table: &View<'_>, to: &mut T) -> Result<(), Error> {
        for Row { key, .. } in self.rows.iter().filter(|row| row.key.is_required()) {
            table.require(self, key.name)?;
        }
        self.put(table, to)
    }

    fn put(&self, table: &View<'_>, to: &mut T) -> Result<(), Error> {
        for row in self.rows {
            if let Some(value) = table.get(row.key.name) {
                row.put(to, &value)?;
            } else if let Some(default) = row.key.default(table.sources)? {
                row.put(to, &table.default(row.key.name, &default))?;
            }
        }
        Ok(())
    }

    /// Reads a table into a blank `T`.
    pub(crate) fn read_into(&self, table: &View<'_>, mut blank: T) -> Result<T, Error> {
        self.read(table, &mut blank)?;
        Ok(blank)
    }

    /// As [`Section::read_into`], of the table under a key of `parent`; without it, of an empty one.
    pub(crate) fn read_under(&self, parent: &View<'_>, key: &str, blank: T) -> Result<T, Error> {
        match parent.get(key) {
            Some(table) => self.read_into(&table, blank),
            None => self.read_into(&parent.default(key, &Node::table(At::DEFAULT)), blank),
        }
    }
}

impl<T> Keys for Section<T> {
    fn title(&self) -> &'static str {
        self.title
    }
    fn keys(&self) -> Vec<&'static Key> {
        self.rows.iter().map(|row| &row.key).collect()
    }
    fn extra(&self) -> Option<fn(&str) -> Extra> {
        self.extra
    }
}

impl<T> fmt::Debug for Section<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Choice;
    use crate::error::Sources;
    use crate::guest::GuestSpec;
    use crate::nvme::{NVME, NvmeSpec};
    use crate::stop::Stop;
    use crate::tables;
    use crate::{dd, fault, load, transfer};
    use std::fmt::Debug;
    use tlplab_fabric::config::{
        BridgeConfig, Buffers, BusConfig, BusDevice, BusMode, DeviceConfig, DomainConfig, FabricConfig,
        HostConfig, HostStageConfig, LinkConfig, MemoryConfig, SwitchConfig, SwitchCoreConfig,
    };
    use tlplab_units::{Generation, Width};

    /// The defaults of a configuration's constructor are the defaults of the rows.
    fn same<T: Clone + Debug>(section: &Section<T>, blank: T) {
        let sources = Sources::default();
        let mut read = blank.clone();
        section.put(&View::root(&sources, &Node::table(At::DEFAULT)), &mut read).unwrap();
        assert_eq!(format!("{read:?}"), format!("{blank:?}"), "{section:?}");
    }

    #[test]
    fn constructors_know_the_defaults_of_rows() {
        let link = || LinkConfig::new("host.rp0", Generation::Gen3, Width::ALL[2]);
        same(&tables::EXPERIMENT, FabricConfig::new());
        same(&tables::HOST, HostConfig::default());
        same(&tables::MEMORY, MemoryConfig::default());
        same(&tables::HOST_STAGE, HostStageConfig::default());
        same(&tables::DOMAIN, DomainConfig::new("q0"));
        same(&tables::SWITCH, SwitchConfig::new("sw0", link()));
        same(&tables::SWITCH_CORE, SwitchCoreConfig::default());
        same(&tables::BUS, BusConfig::new("pci", link(), BusMode::PciX133));
        same(&tables::BRIDGE, BridgeConfig::default());
        same(&tables::DEVICE, DeviceConfig::new("ssd", link()));
        let bus = Some(BusDevice::default());
        same(&tables::DEVICE, DeviceConfig { bus, ..DeviceConfig::new("ssd", link()) });
        same(&tables::LINK, link());
        same(&tables::BUFFERS, Buffers::default());
        same(&tables::STOP, Stop::default());
        same(&tables::GUEST, GuestSpec::default());
        same(&tables::CPU, GuestSpec::default());
        same(&NVME, NvmeSpec { config: tlplab_device::nvme::NvmeConfig::default(), file: None });
    }
    /// Lists of keys, such as of those that go together, name existing keys.
    #[test]
    fn lists_of_keys_name_keys() {
        let of_load = [&load::NOT_WITH_REPLAY[..], &dd::OWN_KEYS, &dd::NOT_WITH_DD, &transfer::OWN_KEYS];
        let of_load = [of_load.concat(), transfer::NOT_WITH_TRANSFERS.to_vec()].concat();
        let lists: [(&dyn Keys, Vec<&str>); 4] = [
            (&tables::LOAD, of_load),
            (&tables::DEVICE, tables::ONLY_ON_BUS.to_vec()),
            (&tables::FAULT, fault::OF_UNITS.to_vec()),
            (&tables::FAULT, fault::Of::NAMES.to_vec()),
        ];
        for (section, names) in lists {
            let known: Vec<&str> = section.keys().iter().map(|key| key.name).collect();
            assert!(names.iter().all(|name| known.contains(name)), "{names:?} of {known:?}");
        }
    }
}
