//! Loads with `op = "to-card"` or `"from-card"`: transfers between the host and a card of the kind tlpdma, through its driver.

use crate::choices::choices;
use crate::dd;
use crate::device_models::ModelSpec;
use crate::error::{Error, Problem};
use crate::load::Operation;
use crate::tables;
use crate::topology::DeviceSpec;
use crate::view::View;
use tlplab_device::TransferLoad;
use tlplab_device::tlpdma::driver::{Descriptors, PageSize, Verify, Wait};
use tlplab_units::{Duration, Time};

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
const NOT_WITH_TRANSFERS: [&str; 8] =
    ["rate", "pattern", "align", "window", "address", "cache", "node", "timing"];
/// The ring of the driver where nobody says otherwise: 1 MiB.
const ENTRIES: i64 = 65_536;

/// Whether this load is one of transfers.
pub(crate) fn is_transfer(view: &View<'_>) -> bool {
    matches!(view.choice("op"), Ok(Some(Operation::Transfer { .. })))
}

/// Reads it; `own` is the load as it was written, `view` with its defaults.
pub(crate) fn read(
    own: &View<'_>,
    view: &View<'_>,
    device: &str,
    target: &str,
    devices: &[DeviceSpec],
) -> Result<TransferLoad, Error> {
    check(own, view, device, target, devices)?;
    let size = view.require(&tables::LOAD, "size")?;
    let bytes = view.size("size").filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or_else(|| size.error("a transfer of 0 B moves nothing"))?;
    let time = |key| view.instant(key).unwrap_or(Time::ZERO).saturating_since(Time::ZERO);
    let (start, call_cost, delay, interval): (Duration, Duration, Duration, Duration) =
        (time("start"), time("call_cost"), time("interrupt_delay"), time("store_interval"));
    Ok(TransferLoad {
        to_card: matches!(view.choice("op")?, Some(Operation::Transfer { to_card: true })),
        bytes,
        count: view.integer("count").unwrap_or(1),
        outstanding: own.integer("outstanding").unwrap_or(1),
        offset: view.size("offset").unwrap_or_default(),
        card_offset: view.size("card_offset").unwrap_or_default(),
        pages: view.choice("pages")?.unwrap_or(PageSize::Small),
        descriptors: match view.choice("descriptors")?.unwrap_or(Fetched::FromRing) {
            Fetched::ByStores => Descriptors::Pio { interval },
            Fetched::FromRing => Descriptors::Ring { log2: entries(view)? },
        },
        wait: match view.choice("wait")?.unwrap_or(Heard::ByInterrupt) {
            Heard::ByLooking => Wait::Poll,
            Heard::ByInterrupt => Wait::Interrupt { delay },
        },
        call_cost,
        start,
        verify: view.choice("verify")?.unwrap_or(Verify::All),
    })
}

fn check(
    own: &View<'_>,
    view: &View<'_>,
    device: &str,
    target: &str,
    devices: &[DeviceSpec],
) -> Result<(), Error> {
    let op = view.require(&tables::LOAD, "op")?;
    if device != "host" {
        let problem = Problem::new(format!("{} is done by the host, not by \"{device}\"", op.text()));
        return Err(op.problem(problem.hint(format!("add device = \"host\" and target = \"{device}\""))));
    }
    for key in NOT_WITH_TRANSFERS.iter().chain(&dd::OWN_KEYS) {
        if let Some(extra) = own.get(key) {
            let problem = Problem::new(format!("a transfer has no {key}"));
            return Err(
                extra.key_error(problem.hint("its data lie in buffers of its own on the host and the card"))
            );
        }
    }
    let interrupts = matches!(view.choice("wait")?, Some(Heard::ByInterrupt) | None);
    let ring = matches!(view.choice("descriptors")?, Some(Fetched::FromRing) | None);
    for (key, key_of, needs, is) in [
        ("interrupt_delay", "wait", "interrupt", interrupts),
        ("store_interval", "descriptors", "pio", !ring),
        ("entries", "descriptors", "ring", ring),
    ] {
        if let Some(extra) = own.get(key).filter(|_| !is) {
            let problem = Problem::new(format!("{key} belongs to {key_of} = \"{needs}\""));
            return Err(extra.key_error(problem));
        }
    }
    let spec = devices.iter().find(|d| d.name == target);
    let card = |spec: &&DeviceSpec| {
        matches!(
            spec.model,
            ModelSpec::Tlpdma { .. } | ModelSpec::Python { .. } | ModelSpec::Library(_) | ModelSpec::Rtl(_)
        )
    };
    if let Some(other) = spec.filter(|spec| !card(spec)) {
        let problem =
            Problem::new(format!("\"{target}\" is a {}, which has another driver", other.model.name()));
        let at = view.get("target").unwrap_or_else(|| view.clone());
        return Err(
            at.problem(problem.hint("a device with model = \"tlpdma\", or the core in RTL, has this one"))
        );
    }
    Ok(())
}

/// How a card gets its descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fetched {
    /// It fetches them.
    FromRing,
    /// The processor stores them.
    ByStores,
}

/// How software hears that a transfer is over.
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
fn entries(view: &View<'_>) -> Result<u32, Error> {
    let entries: i64 = view.integer("entries").map_or(ENTRIES, |n| n as i64);
    if (16..=ENTRIES).contains(&entries) && entries.count_ones() == 1 {
        return Ok(entries.trailing_zeros());
    }
    let at = view.get("entries").unwrap_or_else(|| view.clone());
    let problem = Problem::new(format!("there is no ring of {entries} descriptors"));
    Err(at.problem(problem.hint("it is a power of two from 16 to 65536")))
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
            let problem = Problem::new(format!("\"{name}\" is {way} on \"{target}\", too"));
            return Err(
                view.key_error(problem.hint("a card has one channel each way: use outstanding or count"))
            );
        }
    }
    Ok(())
}
