//! Levels over time: tags in use, credits taken, TLPs that wait.

use super::timeline::{BINS, Gauge, Timeline};
use crate::kernel::ids::LinkId;
use tlplab_units::{Duration, FcClass, Time};

/// Something of which a run has more or less over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Tags in use.
    Tags,
    /// TLPs that wait at an egress.
    Queue,
    /// TLPs in the replay buffer.
    ReplayBuffer,
    /// Header credits taken.
    Headers(FcClass),
    /// Data credits taken, of 16 bytes.
    Data(FcClass),
}

impl Level {
    /// In words: "tags in use".
    pub fn name(self) -> &'static str {
        match self {
            Self::Tags => "tags in use",
            Self::Queue => "TLPs queued",
            Self::ReplayBuffer => "TLPs in the replay buffer",
            Self::Headers(FcClass::Posted) => "posted header credits taken",
            Self::Headers(FcClass::NonPosted) => "non-posted header credits taken",
            Self::Headers(FcClass::Completion) => "completion header credits taken",
            Self::Data(FcClass::Posted) => "posted data credits taken",
            Self::Data(FcClass::NonPosted) => "non-posted data credits taken",
            Self::Data(FcClass::Completion) => "completion data credits taken",
        }
    }
}

/// A level over time.
#[derive(Clone)]
pub struct LevelResult {
    /// The resource.
    pub of: Level,
    /// The component or direction.
    pub place: String,
    /// The link and direction, if it belongs to one.
    pub link: Option<(LinkId, u8)>,
    /// The most it can be, if that is known.
    pub capacity: Option<u64>,
    /// Mean per bin.
    pub mean: Vec<f64>,
    /// Maximum per bin.
    pub max: Vec<u64>,
}

impl Timeline {
    /// Width of the bins, and how many of them a run has filled until `now`.
    pub(crate) fn filled_bins(&self, now: Time) -> (Duration, usize) {
        let width = self.bin_width();
        (width, now.as_fs().div_ceil(width.as_fs()).min(BINS as u64) as usize)
    }

    /// A gauge until `now`, as a level.
    pub(crate) fn level(
        &mut self,
        of: Level,
        place: String,
        link: Option<(LinkId, u8)>,
        capacity: Option<u64>,
        gauge: &mut Gauge,
        now: Time,
    ) -> LevelResult {
        let (mean, max) = self.mean_and_max(gauge, now);
        LevelResult { of, place, link, capacity, mean, max }
    }

    /// Mean and maximum of a gauge in each bin until `now`.
    pub(crate) fn mean_and_max(&mut self, gauge: &mut Gauge, now: Time) -> (Vec<f64>, Vec<u64>) {
        self.flush(gauge, now);
        let (width, filled) = self.filled_bins(now);
        let (integral, max) = self.gauge_bins(gauge);
        let mean = integral[..filled].iter().enumerate().map(|(i, &sum)| {
            let span = (now.as_fs() - i as u64 * width.as_fs()).min(width.as_fs());
            sum as f64 / span as f64
        });
        (mean.collect(), max[..filled].to_vec())
    }
}
