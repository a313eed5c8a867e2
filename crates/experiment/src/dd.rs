//! Loads with `op = "dd-read"` or `"dd-write"`: blocks between a storage device and the host.

use crate::device_models::ModelSpec;
use crate::error::{Error, Problem};
use crate::load::Operation;
use crate::tables;
use crate::topology::DeviceSpec;
use crate::transfer;
use crate::view::View;
use tlplab_device::DdLoad;
use tlplab_device::storage::SECTOR;
use tlplab_units::{Duration, Time};

/// Keys of a load that only dd has.
pub(crate) const OWN_KEYS: [&str; 4] = ["request", "host_cost", "host_ahead", "page_list"];
/// Keys of a load that dd has no use for.
const NOT_WITH_DD: [&str; 10] =
    ["outstanding", "rate", "pattern", "align", "offset", "window", "address", "cache", "node", "timing"];
/// Largest request of the block layer of Linux where nobody says otherwise (`max_sectors_kb` of an IDE disk).
const REQUEST: u64 = 128 << 10;

/// Whether this load is a dd.
pub(crate) fn is_dd(view: &View<'_>) -> bool {
    matches!(view.choice("op"), Ok(Some(Operation::Dd { .. })))
}

/// Reads a dd; `own` is the load as it was written, `view` with its defaults.
pub(crate) fn read(
    own: &View<'_>,
    view: &View<'_>,
    device: &str,
    target: &str,
    devices: &[DeviceSpec],
) -> Result<DdLoad, Error> {
    let op = view.require(&tables::LOAD, "op")?;
    if device != "host" {
        let problem = Problem::new(format!("{} is done by the host, not by \"{device}\"", op.text()));
        return Err(op.problem(problem.hint(format!("add device = \"host\" and target = \"{device}\""))));
    }
    for key in NOT_WITH_DD.into_iter().chain(transfer::OWN_KEYS) {
        if let Some(extra) = own.get(key) {
            let problem = Problem::new(format!("dd has no {key}"));
            return Err(
                extra.key_error(problem.hint("it moves size bytes, request by request, one at a time"))
            );
        }
    }
    let spec = devices.iter().find(|d| d.name == target);
    if let Some(other) = spec.filter(|d| !matches!(d.model, ModelSpec::Storage(_))) {
        let problem = Problem::new(format!("\"{target}\" is a {}, which has no sectors", other.model.name()));
        let at = view.get("target").unwrap_or_else(|| view.clone());
        return Err(at.problem(problem.hint("a device with model = \"storage\" has")));
    }
    let size = view.require(&tables::LOAD, "size")?;
    let block = sectors(&size, view.size("size").unwrap_or_default())?;
    let request = match view.get("request") {
        Some(at) => sectors(&at, view.size("request").unwrap_or_default())?,
        None => REQUEST,
    };
    let time = |key| view.instant(key).unwrap_or(Time::ZERO).saturating_since(Time::ZERO);
    let (cost, ahead, start): (Duration, Duration, Duration) =
        (time("host_cost"), time("host_ahead"), time("start"));
    let page_list = view.boolean("page_list").unwrap_or(false);
    let write = matches!(op.chosen()?, Operation::Dd { write: true });
    Ok(DdLoad {
        write,
        block,
        count: view.integer("count").unwrap_or(1),
        request,
        cost,
        ahead,
        page_list,
        start,
    })
}

/// Bytes that are sectors.
fn sectors(at: &View<'_>, bytes: u64) -> Result<u64, Error> {
    if bytes > 0 && bytes.is_multiple_of(SECTOR) {
        return Ok(bytes);
    }
    let problem = Problem::new(format!("a storage device moves sectors of {SECTOR} B, not {bytes} B"));
    Err(at.problem(problem.hint("it is a multiple of 4KiB")))
}
