//! `[link.NAME.upper.stages]` and `lower.stages`: delays in clocks become times.

use crate::choices::choices;
use crate::error::{Error, Problem};
use crate::keys::Word;
use crate::tree::Value;
use crate::view::View;
use tlplab_fabric::config::StagesConfig;
use tlplab_units::{Duration, Generation, LinkRate, Width, quantity};

/// `tx_transaction = "10.5 clocks"`
pub(crate) static DELAY: Word = Word {
    what: "clocks such as \"10.5 clocks\", or a time such as \"72ns\"",
    pattern: r"^[0-9_]+(\.[0-9]+)? ?(clocks?|fs|ps|ns|us|ms|s)$",
    check: |text| match quantity::clocks(text) {
        Ok(_) => Ok(()),
        Err(_) => quantity::time(text).map(drop).map_err(|error| {
            Problem::new(error.to_string()).hint("or a number of clocks such as 33 or \"10.5 clocks\"")
        }),
    },
};

/// `clock = "link"`
pub(crate) static CLOCK: Word = Word {
    what: "\"link\", or a frequency such as \"250MHz\"",
    pattern: r"^(link|[0-9_]+(\.[0-9]+)? ?(Hz|kHz|MHz|GHz))$",
    check: |text| match text {
        "link" => Ok(()),
        _ => match quantity::frequency(text) {
            Ok(0) => Err(Problem::new("a clock of 0 Hz never ticks").hint("for example \"250MHz\"")),
            Ok(_) => Ok(()),
            Err(error) => Err(Problem::new(error.to_string()).hint("or \"link\"")),
        },
    },
};

/// Time of a thousand clocks: the link brings as many words of the data path, or the frequency says.
fn thousand_clocks(stages: &View<'_>, generation: Generation, width: Width) -> Result<Duration, Error> {
    if let Some(clock) = stages.get("clock").filter(|clock| clock.text() != "link") {
        return match quantity::frequency(clock.text()) {
            Ok(hertz @ 1..) => Ok(Duration::from_fs(1_000_000_000_000_000_000_u64.div_ceil(hertz))),
            _ => Err(clock.error(format!("\"{}\" is not {}", clock.text(), CLOCK.what))),
        };
    }
    let DataPath(bits) = stages.choice("data_path")?.unwrap_or(DataPath(64));
    Ok(LinkRate::new(generation, width).time_of(1000 * bits / 8))
}

/// Bits of a data path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPath(u64);

choices! {
    DataPath {
        "8b" => Self(8), "16b" => Self(16), "32b" => Self(32), "64b" => Self(64),
        "128b" => Self(128), "256b" => Self(256), "512b" => Self(512), "1024b" => Self(1024),
    }
}

/// The stages of one end of a link; `upper` answers no registers.
pub(crate) fn config(
    stages: &View<'_>,
    generation: Generation,
    width: Width,
    upper: bool,
) -> Result<StagesConfig, Error> {
    let thousand = u128::from(thousand_clocks(stages, generation, width)?.as_fs());
    let of_clocks = |millionths: u64| {
        let fs = (u128::from(millionths) * thousand).div_ceil(1_000_000_000);
        u64::try_from(fs).ok().filter(|fs| *fs < LONGEST.as_fs()).map(Duration::from_fs)
    };
    let delay = |key: &str| -> Result<Duration, Error> {
        let Some(view) = stages.get(key) else { return Ok(Duration::ZERO) };
        let delay = match &view.node.value {
            Value::Integer(clocks) => {
                u64::try_from(*clocks).ok().and_then(|n| n.checked_mul(1_000_000)).and_then(of_clocks)
            }
            _ => match quantity::clocks(view.text()) {
                Ok(millionths) => of_clocks(millionths),
                Err(_) => quantity::time(view.text()).ok().filter(|time| *time < LONGEST),
            },
        };
        delay.ok_or_else(|| view.problem(Problem::new("a stage of a link takes less than 1 ms")))
    };
    for key in ["register_response", "config_response"] {
        if upper && let Some(view) = stages.get(key) {
            let problem = Problem::new("registers are behind the lower end of a link");
            return Err(view.key_error(problem.hint(format!("write {key} in lower.stages"))));
        }
    }
    Ok(StagesConfig {
        tx_transaction: delay("tx_transaction")?,
        tx_data_link: delay("tx_data_link")?,
        tx_physical: delay("tx_physical")?,
        tx_transceiver: delay("tx_transceiver")?,
        rx_transceiver: delay("rx_transceiver")?,
        rx_physical: delay("rx_physical")?,
        rx_data_link: delay("rx_data_link")?,
        rx_transaction: delay("rx_transaction")?,
        register_response: delay("register_response")?,
        config_response: delay("config_response")?,
    })
}

/// Far more than any pipeline has, and far less than timers wait.
const LONGEST: Duration = Duration::from_ms(1);
