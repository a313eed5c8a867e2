//! The parts of a host before its memory: a last-level cache, another node, an IOMMU, jitter.

use crate::choices::choices;
use crate::error::{Error, Problem};
use crate::keys::Word;
use crate::tables::{CACHE, IOMMU, STALL};
use crate::view::View;
use tlplab_fabric::config::{CacheConfig, HostMemoryError, IommuConfig, JitterConfig, StallConfig, WHOLE};
use tlplab_units::{Duration, quantity};

/// `"99.9% 60ns"`
pub(crate) static QUANTILE: Word = Word {
    what: "a quantile such as \"99.9% 60ns\"",
    pattern: r"^\s*\d+(\.\d{1,4})?\s*%\s*\d[\d_]*(\.\d+)?\s*(fs|ps|ns|us|µs|ms|s)\s*$",
    check: |text| quantile(text).map(drop),
};

/// The addresses that an IOMMU translates.
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
        return Err(Problem::new(format!("{percent}% is above 100%")).hint("the last quantile is at 100%"));
    }
    let time = quantity::time(time.trim()).map_err(|error| Problem::new(error.to_string()))?;
    Ok((rank, time))
}

/// `host.cache`
pub(crate) fn cache(view: &View<'_>) -> Result<CacheConfig, Error> {
    let config = CACHE.read_into(view, CacheConfig::default())?;
    config.check().map_err(|error| {
        let key = if matches!(error, HostMemoryError::DeviceWays { .. }) { "ddio_ways" } else { "size" };
        view.at(key).error(error.to_string())
    })?;
    Ok(config)
}

/// `host.iommu`; its figures may stand there, and be wrong, while it is off.
pub(crate) fn iommu(view: &View<'_>) -> Result<Option<IommuConfig>, Error> {
    if let Some(Pages::None) = view.get("mode").map(|mode| mode.chosen()).transpose()? {
        return Ok(None);
    }
    let config = IOMMU.read_into(view, IommuConfig::default())?;
    if config.tables.is_none() {
        view.require(&IOMMU, "walk")?;
    }
    Ok(Some(config))
}

/// Bytes that a translation covers. (One that is off covers none, and none is read.)
pub(crate) fn page(view: &View<'_>) -> Result<u64, Error> {
    Ok(match view.chosen()? {
        Pages::None => 0,
        Pages::Large => 2 << 20,
        Pages::Small => 4 << 10,
    })
}

/// `host.stall`
pub(crate) fn stall(view: &View<'_>) -> Result<StallConfig, Error> {
    let config = STALL.read_into(view, StallConfig::default())?;
    config.check().map_err(|error| view.at("every").error(error.to_string()))?;
    Ok(config)
}

/// A list of quantiles, which rise.
pub(crate) fn quantiles(list: &View<'_>) -> Result<Vec<(u32, Duration)>, Error> {
    let config = JitterConfig { quantiles: list.words(quantile)?, ..JitterConfig::default() };
    config.check().map_err(|error| list.error(error.to_string()))?;
    Ok(config.quantiles)
}
