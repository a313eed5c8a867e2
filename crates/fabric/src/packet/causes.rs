//! The causes of latency: one table, from which the enum, the names in documents, sentences and colours come.

/// Kinds of causes; each has its range of hues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseGroup {
    /// Work that has to be done: cool colours.
    Work,
    /// Waiting for somebody else: warm colours.
    Wait,
    /// Upkeep of a link, and repair of errors: wine and grey.
    Repair,
    /// The work of a parallel bus: violet to cyan.
    Bus,
}

impl CauseGroup {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Wait => "wait",
            Self::Repair => "repair",
            Self::Bus => "bus",
        }
    }
}

/// Declares [`Cause`]. A row: variant, name in documents, group, colour on a light and on a dark ground, what it is.
macro_rules! causes {
    ($($cause:ident $name:literal $group:ident $light:literal $dark:literal: $about:literal;)*) => {
        /// The cause of time that passes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $(#[doc = $about] $cause,)*
        }

        impl Cause {
            /// The number of causes.
            pub const COUNT: usize = [$($name),*].len();
            /// All of them, by discriminant.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$cause),*];

            /// The name that result documents use.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$cause => $name,)* }
            }

            /// Its description, in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$cause => $about,)* }
            }

            /// Its group.
            pub const fn group(self) -> CauseGroup {
                match self { $(Self::$cause => CauseGroup::$group,)* }
            }

            /// Its colours on a light and on a dark ground, as CSS writes them.
            pub const fn colours(self) -> [&'static str; 2] {
                match self { $(Self::$cause => [$light, $dark],)* }
            }
        }
    };
}

// A new cause goes to the end: documents count by place.
causes! {
    Processing "processing" Work "#7b8794" "#7f8b99": "A switch, root complex or device works on the TLP.";
    Serialisation "serialisation" Work "#2a69b0" "#4c90dd": "The bytes of the TLP go over the wire.";
    Flight "flight" Work "#9fc4e8" "#a9cdf0": "The signal travels.";
    Queueing "queueing" Wait "#d55e00" "#f27a2c": "Another TLP occupies the egress.";
    CreditWait "credit wait" Wait "#eda21f" "#f4b64a": "The receiver has no room: no credits.";
    TagWait "tag wait" Wait "#f2d656" "#f7e27d": "The requester has no free tag.";
    ReplayBufferWait "replay buffer wait" Wait "#8a5a1c" "#b07a36": "The transmitter may not send before older TLPs are acknowledged.";
    Replay "replay" Repair "#8f2457" "#d4548f": "A copy was lost or damaged and had to be sent again.";
    DataLink "data link" Repair "#d48fb8" "#e5aecd": "DLLPs and ordered sets occupy the wire.";
    Completer "completer" Work "#169a78" "#34bd98": "Host memory or the addressed device prepares the answer.";
    LinkDown "link down" Repair "#33383f" "#dfe3e8": "The link is down or in recovery.";
    Arbitration "arbitration" Wait "#f49b6c" "#ffb48c": "Another master has the parallel bus.";
    Address "address" Bus "#5b4aa6" "#8a78e0": "Address and attributes are on the parallel bus.";
    DeviceSelect "device select" Bus "#a79ae0" "#c9c0f7": "The target decodes them, until it claims the transaction.";
    WaitState "wait states" Wait "#cda878" "#d6b88f": "The bus waits until the target is ready.";
    DataPhase "data phases" Bus "#129cbf" "#30b8da": "Data are on the parallel bus, or the target's response that they follow later.";
    Turnaround "turnaround" Bus "#c2ccd6" "#566270": "The lines of the bus change their driver.";
    Retry "retry" Repair "#bd4f7c" "#e27ba3": "The target on the bus has no room, or no data yet: the master has to retry.";
    NoAnswer "no answer" Repair "#5b5560" "#a79fae": "The requester waits for a completion that never arrives, or arrives too late.";
    TranslationWait "translation wait" Wait "#d9822b" "#f0a35a": "The requester has no translation of the address.";
}
