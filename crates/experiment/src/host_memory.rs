//! What a host has before its memory: a last-level cache, another node, an IOMMU, jitter.

use crate::choices::choices;
use crate::error::{Error, Problem};
use crate::keys::{Section, Word};
use crate::tables::{CACHE, IOMMU, NUMA, SLEEP, STALL};
use crate::translation;
use crate::view::View;
use tlplab_fabric::config::{
    CacheConfig, HostMemoryError, IommuConfig, JitterConfig, NumaConfig, SleepConfig, StallConfig, WHOLE,
};
use tlplab_units::{Duration, quantity};

/// `"99.9% 60ns"`
pub(crate) static QUANTILE: Word = Word {
    what: "a quantile such as \"99.9% 60ns\"",
    pattern: r"^\s*\d+(\.\d{1,4})?\s*%\s*\d[\d_]*(\.\d+)?\s*(fs|ps|ns|us|ms|s)\s*$",
    check: |text| quantile(text).map(drop),
};

/// What an IOMMU translates.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pages {
    /// Nothing: it is off.
    None,
    /// Pages of 2 MiB.
    Large,
    /// Pages of 4 KiB.
    Small,
}

choices! {
    Pages { "off" => Self::None, "superpages" => Self::Large, "4KiB" => Self::Small, }
}

/// A rank in millionths and its time.
fn quantile(text: &str) -> Result<(u32, Duration), Problem> {
    let wrong = || {
        Problem::new(format!("\"{text}\" is not {}", QUANTILE.what))
            .hint("write a percentage of at most four decimals, and a time")
    };
    let (percent, time) = text.split_once('%').ok_or_else(wrong)?;
    let (whole, part) = percent.trim().split_once('.').unwrap_or((percent.trim(), "0"));
    let digits = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let rank = number(whole)? * 10_000 + number(&format!("{part:0<4}"))?;
    if rank > WHOLE {
        return Err(Problem::new(format!("{percent}% is more than all")).hint("the last quantile is at 100%"));
    }
    let time = quantity::time(time.trim()).map_err(|error| Problem::new(error.to_string()))?;
    Ok((rank, time))
}

/// `host.cache` of a host.
pub(crate) fn cache(host: &View<'_>) -> Result<Option<CacheConfig>, Error> {
    let Some((view, filled)) = part(host, "cache", &CACHE, &["size", "ways", "ddio_ways", "hit"])? else {
        return Ok(None);
    };
    let table = view.with(&filled);
    let time = |key| table.duration(key).unwrap_or_default();
    let config = CacheConfig {
        size: table.size("size").unwrap_or_default(),
        ways: table.integer("ways").unwrap_or_default() as u16,
        ddio_ways: table.integer("ddio_ways").unwrap_or_default() as u16,
        hit: time("hit"),
        snoop: time("snoop"),
        write_allocate: time("write_allocate"),
    };
    config.check().map_err(|error| {
        let key = if matches!(error, HostMemoryError::DeviceWays { .. }) { "ddio_ways" } else { "size" };
        view.get(key).unwrap_or_else(|| view.clone()).error(error.to_string())
    })?;
    Ok(Some(config))
}

/// `host.numa` of a host.
pub(crate) fn numa(host: &View<'_>) -> Result<Option<NumaConfig>, Error> {
    let Some((view, _)) = part(host, "numa", &NUMA, &["hop"])? else { return Ok(None) };
    let hop = view.duration("hop").unwrap_or_default();
    Ok(Some(NumaConfig { hop, write_allocate: view.duration("write_allocate") }))
}

/// `host.iommu` of a host; its figures may stand there while it is off.
pub(crate) fn iommu(host: &View<'_>) -> Result<Option<IommuConfig>, Error> {
    if let Some(Pages::None) = host.get("iommu").map(|iommu| iommu.choice("mode")).transpose()?.flatten() {
        return Ok(None);
    }
    let Some((view, filled)) = part(host, "iommu", &IOMMU, &["entries"])? else { return Ok(None) };
    let table = view.with(&filled);
    let page = match table.choice("mode")? {
        Some(Pages::None) => return Ok(None),
        Some(Pages::Large) => 2 << 20,
        Some(Pages::Small) | None => 4096,
    };
    let tables = translation::tables(&view)?;
    if tables.is_none() {
        view.require(&IOMMU, "walk")?;
    }
    Ok(Some(IommuConfig {
        page,
        entries: table.integer("entries").unwrap_or(1) as u16,
        walk: table.duration("walk").unwrap_or_default(),
        walkers: table.integer("walkers").map(|n| n as u16),
        interval: table.duration("interval").unwrap_or_default(),
        tables,
        ats: table.boolean("ats").unwrap_or(true),
    }))
}

/// `host.jitter` of a host.
pub(crate) fn jitter(host: &View<'_>) -> Result<Option<JitterConfig>, Error> {
    let Some(view) = host.get("jitter") else { return Ok(None) };
    Ok(Some(JitterConfig { quantiles: quantiles(&view, "quantiles")?, memory: quantiles(&view, "memory")? }))
}

/// `host.sleep` of a host.
pub(crate) fn sleep(host: &View<'_>) -> Result<Option<SleepConfig>, Error> {
    let Some((view, _)) = part(host, "sleep", &SLEEP, &["after", "wake"])? else { return Ok(None) };
    let time = |key| view.duration(key).unwrap_or_default();
    Ok(Some(SleepConfig {
        after: time("after"),
        wake: quantiles(&view, "wake")?,
        doze_after: time("doze_after"),
        doze: quantiles(&view, "doze")?,
    }))
}

/// `host.stall` of a host.
pub(crate) fn stall(host: &View<'_>) -> Result<Option<StallConfig>, Error> {
    let Some((view, _)) = part(host, "stall", &STALL, &["every", "lasts"])? else { return Ok(None) };
    let time = |key| view.duration(key).unwrap_or_default();
    let config = StallConfig { every: time("every"), lasts: time("lasts") };
    config
        .check()
        .map_err(|error| view.get("every").unwrap_or_else(|| view.clone()).error(error.to_string()))?;
    Ok(Some(config))
}

/// A list of quantiles, which rise.
fn quantiles(view: &View<'_>, key: &str) -> Result<Vec<(u32, Duration)>, Error> {
    let Some(list) = view.get(key) else { return Ok(Vec::new()) };
    let items = list.items();
    let of = |item: &View<'_>| quantile(item.text()).map_err(|problem| item.problem(problem));
    let quantiles = items.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let config = JitterConfig { quantiles, ..JitterConfig::default() };
    config.check().map_err(|error| list.error(error.to_string()))?;
    Ok(config.quantiles)
}

/// A part of the host that has keys which must be there, and the same with its defaults.
fn part<'a>(
    host: &View<'a>,
    name: &str,
    section: &Section,
    required: &[&str],
) -> Result<Option<(View<'a>, crate::tree::Node)>, Error> {
    let Some(view) = host.get(name) else { return Ok(None) };
    for key in required {
        view.require(section, key)?;
    }
    let filled = view.filled(section)?;
    Ok(Some((view, filled)))
}
