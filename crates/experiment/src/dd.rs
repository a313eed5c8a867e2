//! Loads with `op = "dd-read"` or `"dd-write"`: blocks between a storage device and the host.

use crate::device_models::ModelSpec;
use crate::error::{Error, Problem};
use crate::load::{Parties, Said};
use crate::tables;
use crate::transfer;
use crate::view::View;
use tlplab_device::DdLoad;
use tlplab_device::storage::SECTOR;
use tlplab_units::Duration;

/// Keys of a load that only dd has.
pub(crate) const OWN_KEYS: [&str; 4] = ["request", "host_cost", "host_ahead", "page_list"];
/// Keys of a load that dd has no use for.
pub(crate) const NOT_WITH_DD: [&str; 10] =
    ["outstanding", "rate", "pattern", "align", "offset", "window", "address", "cache", "node", "timing"];

/// A dd of one block that is not told of which. Its requests are as large as Linux makes them for an IDE disk where nobody says otherwise
/// (`max_sectors_kb`).
pub(crate) const BLANK: DdLoad = DdLoad {
    write: false,
    block: 0,
    count: 1,
    request: 128 << 10,
    cost: Duration::ZERO,
    ahead: Duration::ZERO,
    page_list: false,
    start: Duration::ZERO,
};

/// Reads a dd.
pub(crate) fn read(
    view: &View<'_>,
    said: &Said,
    parties: &Parties<'_>,
    write: bool,
) -> Result<DdLoad, Error> {
    let op = view.require(&tables::LOAD, "op")?;
    let Parties { device, target, spec } = *parties;
    if device != "host" {
        let problem = Problem::new(format!("{} is done by the host, not by \"{device}\"", op.text()));
        return Err(op.problem(problem.hint(format!("add device = \"host\" and target = \"{device}\""))));
    }
    for key in NOT_WITH_DD.into_iter().chain(transfer::OWN_KEYS) {
        if let Some(extra) = view.get(key) {
            let problem = Problem::new(format!("dd has no {key}"));
            return Err(
                extra.key_error(problem.hint("it moves size bytes, request by request, one at a time"))
            );
        }
    }
    if let Some(other) = spec.filter(|d| !matches!(d.model, ModelSpec::Storage(_))) {
        let problem = Problem::new(format!("\"{target}\" is a {}, which has no sectors", other.model.name()));
        let at = view.at("target");
        return Err(at.problem(problem.hint("name a device with model = \"storage\"")));
    }
    check_sectors(&view.require(&tables::LOAD, "size")?, said.size)?;
    if let Some(at) = view.get("request") {
        check_sectors(&at, said.dd.request)?;
    }
    let count = said.count.unwrap_or(said.dd.count);
    Ok(DdLoad { write, block: said.size, count, start: said.delay(), ..said.dd })
}

/// Bytes have to be sectors.
fn check_sectors(at: &View<'_>, bytes: u64) -> Result<(), Error> {
    if bytes > 0 && bytes.is_multiple_of(SECTOR) {
        return Ok(());
    }
    let problem = Problem::new(format!("a storage device moves sectors of {SECTOR} B, not {bytes} B"));
    Err(at.problem(problem.hint("use a multiple of 4KiB")))
}
