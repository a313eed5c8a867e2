//! Loads with `op = "to-card"` or `"from-card"`: transfers between the host and a card of the kind tlpdma, through its driver.

use crate::choices::choices;
use crate::dd;
use crate::device_models::ModelSpec;
use crate::error::{Error, Problem};
use crate::load::{Parties, Said};
use crate::tables;
use crate::topology::DeviceSpec;
use crate::view::View;
use tlplab_device::TransferLoad;
use tlplab_device::tlpdma::driver::{Descriptors, PageSize, Verify, Wait};

/// Keys of a load that only transfers have.
pub(crate) const OWN_KEYS: [&str; 9] = [
    "card_offset",
    "pages",
    "descriptors",
    "entries",
    "store_interval",
    "wait",
    "interrupt_delay",
    "call_cost",
    "verify",
];
/// Keys of a load that transfers have no use for.
pub(crate) const NOT_WITH_TRANSFERS: [&str; 8] =
    ["rate", "pattern", "align", "window", "address", "cache", "node", "timing"];
/// The ring of the driver where nobody says otherwise, and the largest: 1 MiB.
pub(crate) const ENTRIES: u32 = 65_536;

/// Reads transfers.
pub(crate) fn read(
    view: &View<'_>,
    said: &Said,
    parties: &Parties<'_>,
    to_card: bool,
) -> Result<TransferLoad, Error> {
    check(view, said, parties)?;
    let size = view.require(&tables::LOAD, "size")?;
    if said.size == 0 {
        return Err(size.error("a transfer of 0 B moves nothing"));
    }
    Ok(TransferLoad {
        to_card,
        bytes: said.size,
        count: said.count.unwrap_or(said.transfer.count),
        outstanding: said.outstanding.map_or(said.transfer.outstanding, u64::from),
        offset: said.offset,
        descriptors: match said.descriptors {
            Fetched::ByStores => Descriptors::Pio { interval: said.store_interval },
            Fetched::FromRing => Descriptors::Ring { log2: entries(view, said.entries)? },
        },
        wait: match said.wait {
            Heard::ByLooking => Wait::Poll,
            Heard::ByInterrupt => Wait::Interrupt { delay: said.interrupt_delay },
        },
        start: said.delay(),
        ..said.transfer
    })
}

fn check(view: &View<'_>, said: &Said, parties: &Parties<'_>) -> Result<(), Error> {
    let op = view.require(&tables::LOAD, "op")?;
    let Parties { device, target, spec } = *parties;
    if device != "host" {
        let problem = Problem::new(format!("{} is done by the host, not by \"{device}\"", op.text()));
        return Err(op.problem(problem.hint(format!("add device = \"host\" and target = \"{device}\""))));
    }
    for key in NOT_WITH_TRANSFERS.iter().chain(&dd::OWN_KEYS) {
        if let Some(extra) = view.get(key) {
            let problem = Problem::new(format!("a transfer has no {key}"));
            return Err(
                extra.key_error(problem.hint("its data lie in buffers of its own on the host and the card"))
            );
        }
    }
    let interrupts = matches!(said.wait, Heard::ByInterrupt);
    let ring = matches!(said.descriptors, Fetched::FromRing);
    for (key, key_of, needs, is) in [
        ("interrupt_delay", "wait", "interrupt", interrupts),
        ("store_interval", "descriptors", "pio", !ring),
        ("entries", "descriptors", "ring", ring),
    ] {
        if let Some(extra) = view.get(key).filter(|_| !is) {
            let problem = Problem::new(format!("{key} belongs to {key_of} = \"{needs}\""));
            return Err(extra.key_error(problem));
        }
    }
    let card = |spec: &&DeviceSpec| {
        matches!(
            spec.model,
            ModelSpec::Tlpdma { .. } | ModelSpec::Python { .. } | ModelSpec::Library(_) | ModelSpec::Rtl(_)
        )
    };
    if let Some(other) = spec.filter(|spec| !card(spec)) {
        let problem = Problem::new(format!(
            "\"{target}\" is a {}, which this driver does not support",
            other.model.name()
        ));
        let at = view.at("target");
        return Err(at.problem(problem.hint("name a device with model = \"tlpdma\", or the core in RTL")));
    }
    Ok(())
}

/// The source of a card's descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fetched {
    /// It fetches them.
    FromRing,
    /// The processor stores them.
    ByStores,
}

/// The way in which software learns that a transfer is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// By an interrupt.
    ByInterrupt,
    /// It looks.
    ByLooking,
}

choices! {
    PageSize { "4KiB" => Self::Small, "2MiB" => Self::Large, }
    Fetched { "ring" => Self::FromRing, "pio" => Self::ByStores, }
    Heard { "interrupt" => Self::ByInterrupt, "poll" => Self::ByLooking, }
    Verify { "all" => Self::All, "ends" => Self::Ends, "none" => Self::None, }
}

/// log2 of the ring's descriptors.
fn entries(view: &View<'_>, entries: u32) -> Result<u32, Error> {
    if (16..=ENTRIES).contains(&entries) && entries.is_power_of_two() {
        return Ok(entries.trailing_zeros());
    }
    let at = view.at("entries");
    let problem = Problem::new(format!("a ring of {entries} descriptors is not supported"));
    Err(at.problem(problem.hint("use a power of two from 16 to 65536")))
}

/// One program drives a card: two loads in the same direction cannot be.
pub(crate) fn one_each_way<'a>(
    view: &View<'_>,
    load: &TransferLoad,
    target: &str,
    others: impl Iterator<Item = (&'a str, &'a str, &'a TransferLoad)>,
) -> Result<(), Error> {
    for (name, card, other) in others {
        if card == target && other.to_card == load.to_card {
            let way = if load.to_card { "to-card" } else { "from-card" };
            let problem = Problem::new(format!("\"{name}\" is also {way} on \"{target}\""));
            return Err(
                view.key_error(problem.hint("a card has one channel each way: use outstanding or count"))
            );
        }
    }
    Ok(())
}
