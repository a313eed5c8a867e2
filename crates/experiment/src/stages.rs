//! `[link.NAME.upper.stages]` and `lower.stages`: delays in clocks become times.

use crate::choices::choices;
use crate::error::{Error, Problem};
use crate::keys::Word;
use crate::link::End;
use crate::tables::STAGES;
use crate::tree::Value;
use crate::view::View;
use tlplab_fabric::config::StagesConfig;
use tlplab_units::{Duration, LinkRate, quantity};

/// `tx_transaction = "10.5 clocks"`
pub(crate) static DELAY: Word = Word {
    what: "clocks such as \"10.5 clocks\", or a time such as \"72ns\"",
    pattern: r"^[0-9_]+(\.[0-9]+)? ?(clocks?|fs|ps|ns|us|µs|ms|s)$",
    check: |text| delay(text).map(drop),
};

/// The delay of a stage.
enum Delay {
    /// Millionths of a clock.
    Clocks(u64),
    Time(Duration),
}

fn delay(text: &str) -> Result<Delay, Problem> {
    quantity::clocks(text).map(Delay::Clocks).or_else(|_| {
        quantity::time(text).map(Delay::Time).map_err(|error| {
            Problem::new(error.to_string()).hint("or a number of clocks such as 33 or \"10.5 clocks\"")
        })
    })
}

/// `clock = "link"`
pub(crate) static CLOCK: Word = Word {
    what: "\"link\", or a frequency such as \"250MHz\"",
    pattern: r"^(link|[0-9_]+(\.[0-9]+)? ?(Hz|kHz|MHz|GHz))$",
    check: |text| clock(text).map(drop),
};

/// The clock of stages.
pub(crate) enum Clock {
    /// One in the time in which the link brings a word of the data path.
    Link,
    /// Time of a thousand.
    Thousand(Duration),
}

pub(crate) fn clock(text: &str) -> Result<Clock, Problem> {
    if text == "link" {
        return Ok(Clock::Link);
    }
    match quantity::frequency(text) {
        Ok(0) => Err(Problem::new("a clock of 0 Hz is not supported").hint("for example \"250MHz\"")),
        Ok(hertz) => Ok(Clock::Thousand(Duration::from_fs(1_000_000_000_000_000_000_u64.div_ceil(hertz)))),
        Err(error) => Err(Problem::new(error.to_string()).hint("or \"link\"")),
    }
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

/// The stages of one end of a link, as its table says.
pub(crate) struct Stages {
    pub(crate) clock: Clock,
    pub(crate) data_path: DataPath,
    pub(crate) config: StagesConfig,
    rate: LinkRate,
    upper: bool,
}

/// The stages of an end, whose table they are in.
pub(crate) fn config(view: &View<'_>, end: &End) -> Result<StagesConfig, Error> {
    let blank = Stages {
        clock: Clock::Link,
        data_path: DataPath(64),
        config: StagesConfig::default(),
        rate: LinkRate::new(end.generation, end.width),
        upper: end.upper,
    };
    Ok(STAGES.read_into(view, blank)?.config)
}

impl Stages {
    /// The delay of a stage.
    pub(crate) fn delay(&self, view: &View<'_>) -> Result<Duration, Error> {
        let delay = match view.node.value {
            Value::Integer(_) => view.whole::<u64>()?.checked_mul(1_000_000).map(Delay::Clocks),
            _ => Some(view.word(delay)?),
        };
        let time = match delay {
            Some(Delay::Clocks(millionths)) => self.of_clocks(millionths),
            Some(Delay::Time(time)) => Some(time),
            None => None,
        };
        time.filter(|time| *time < LONGEST)
            .ok_or_else(|| view.error("a stage of a link takes less than 1 ms"))
    }

    /// The delay of an access to a register; at the upper end there are none.
    pub(crate) fn response(&self, view: &View<'_>) -> Result<Duration, Error> {
        if self.upper {
            let problem = Problem::new("registers are behind the lower end of a link");
            return Err(view.key_error(problem.hint(format!("write {} in lower.stages", view.name()))));
        }
        self.delay(view)
    }

    fn of_clocks(&self, millionths: u64) -> Option<Duration> {
        let thousand = match self.clock {
            Clock::Link => self.rate.time_of(1000 * self.data_path.0 / 8),
            Clock::Thousand(time) => time,
        };
        let fs = (u128::from(millionths) * u128::from(thousand.as_fs())).div_ceil(1_000_000_000);
        u64::try_from(fs).ok().map(Duration::from_fs)
    }
}

/// Far more than any pipeline has, and far less than timers wait.
const LONGEST: Duration = Duration::from_ms(1);
