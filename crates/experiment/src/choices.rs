//! Words that choose one of a few things. Each list is written once: the tables show its words, and who reads a word gets the value
//! beside it, so that a word without a value cannot be.

use crate::keys::Kind;
use tlplab_fabric::Writer;
use tlplab_fabric::config::{
    AcsControls, BusCompletion, BusMode, BusWidth, DeviceSelect, EnumerationTime, Fidelity, FlowControl,
    Forwarding, InterruptPolicy, MpsPolicy, SkpPolicy, UpdateFcPolicy,
};
use tlplab_transaction::{CompletionPolicy, RequestPolicy};
use tlplab_units::{LinkMode, Mps};

/// Something that words choose.
pub(crate) trait Choice: Copy + 'static {
    /// Every word, with what it stands for.
    const WORDS: &'static [(&'static str, Self)];
    /// The words.
    const NAMES: &'static [&'static str];
}

/// A key that takes the words of a choice.
pub(crate) const fn choice<T: Choice>() -> Kind {
    Kind::Choice(T::NAMES)
}

macro_rules! choices {
    ($($chosen:ty { $($word:literal => $value:expr,)+ })+) => {
        $(impl $crate::choices::Choice for $chosen {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),+];
            const NAMES: &'static [&'static str] = &[$($word),+];
        })+
    };
}
pub(crate) use choices;

/// The sharing of its egresses by a switch that names no weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundRobin;

/// Controls of access that are turned on together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcsPreset(pub(crate) AcsControls);

choices! {
    RequestPolicy { "aligned" => Self::Aligned, "packed" => Self::Packed, }
    UpdateFcPolicy {
        "each" => Self::EACH_TLP,
        "eighth" => Self::EIGHTHS,
        "quarter" => Self::QUARTERS,
        "half" => Self::HALVES,
        "specification" => Self::SPECIFICATION,
    }
    Fidelity { "payload" => Self::Payload, "length-only" => Self::LengthOnly, }
    Forwarding {
        "cut-through" => Self::CutThrough,
        "cut-through-unless-faster" => Self::CutThroughUnlessFaster,
        "store-and-forward" => Self::StoreAndForward,
        "header-checked" => Self::HeaderChecked,
    }
    RoundRobin { "round-robin" => Self, }
    LinkMode { "non-flit" => Self::NonFlit, "flit" => Self::Flit, }
    FlowControl {
        "credits" => Self::Credits,
        "drop-and-replay" => Self::DropAndReplay,
        "drop-and-replay-slipping" => Self::DropAndReplaySlipping,
    }
    SkpPolicy { "standard" => Self::Standard, "off" => Self::Off, }
    CompletionPolicy {
        "max" => Self::Max,
        "rcb" => Self::Rcb,
        "split-head" => Self::SplitHead,
        "split-ends" => Self::SplitEnds,
    }
    EnumerationTime { "before" => Self::Before, "simulated" => Self::Simulated, }
    InterruptPolicy { "msi-x" => Self::MsiX, "msi" => Self::Msi, "intx" => Self::Intx, }
    MpsPolicy {
        "common" => Self::Common(Mps::ALL[5]),
        "upward" => Self::Upward,
        "smallest" => Self::Smallest,
    }
    AcsControls {
        "source-validation" => Self::SOURCE_VALIDATION,
        "translation-blocking" => Self::TRANSLATION_BLOCKING,
        "request-redirect" => Self::REQUEST_REDIRECT,
        "completion-redirect" => Self::COMPLETION_REDIRECT,
        "upstream-forwarding" => Self::UPSTREAM_FORWARDING,
        "egress-control" => Self::EGRESS_CONTROL,
        "direct-translated" => Self::DIRECT_TRANSLATED,
    }
    AcsPreset { "off" => Self(AcsControls::NONE), "isolation" => Self(AcsControls::ISOLATION), }
    BusMode {
        "pci 33" => Self::Pci33,
        "pci 66" => Self::Pci66,
        "pci-x 66" => Self::PciX66,
        "pci-x 100" => Self::PciX100,
        "pci-x 133" => Self::PciX133,
    }
    BusWidth { "32b" => Self::Bits32, "64b" => Self::Bits64, }
    DeviceSelect { "fast" => Self::Fast, "medium" => Self::Medium, "slow" => Self::Slow, }
    BusCompletion { "immediate" => Self::Immediate, "delayed" => Self::Delayed, "split" => Self::Split, }
    Option<Writer> {
        "cold" => None,
        "host-warm" => Some(Writer::Processor),
        "device-warm" => Some(Writer::Device),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Sources;
    use crate::tree::parse;
    use crate::view::View;
    use tlplab_fabric::Writer;
    use tlplab_units::LinkMode;

    /// A word that the tables let pass by mistake is refused where it is read, not taken for the default.
    #[test]
    fn a_word_without_a_value_is_refused() {
        let mut sources = Sources::default();
        let text = "a = \"flit\"\nb = \"flits\"\nc = \"cold\"\n";
        let file = sources.add("t.toml", text);
        let node = parse(&sources, file, text).unwrap();
        let view = View::root(&sources, &node);
        let word = |key: &str| view.get(key).unwrap();
        assert_eq!(word("a").chosen(), Ok(LinkMode::Flit));
        assert_eq!(word("b").choice::<LinkMode>(), None);
        assert_eq!(word("c").chosen::<Option<Writer>>(), Ok(None));
        let refused = word("b").chosen::<LinkMode>().unwrap_err().to_string();
        assert_eq!(
            refused,
            "t.toml:2: b: \"flits\" is not one of \"non-flit\", \"flit\"; did you mean \"flit\"?"
        );
    }
}
