//! The use of the host's cache and IOMMU, and of devices with translations.

use super::words::{Access, RefusalReason};
use schemars::JsonSchema;
use serde::Serialize;

/// Use of the host's cache and IOMMU by requests of devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HostUse {
    /// The last-level cache; null if there is none.
    pub cache: Option<CacheUse>,
    /// The IOMMU; null if there is none.
    pub iommu: Option<IommuUse>,
}

/// Lines that requests of devices looked for in the last-level cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CacheUse {
    /// Lines that were there.
    pub hits: u64,
    /// Lines that were not.
    pub misses: u64,
    /// Hits as a fraction of both.
    pub hit_rate: f64,
}

/// Translations of requests of devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct IommuUse {
    /// Requests whose translation was in the IO-TLB or on its way there.
    pub hits: u64,
    /// Page walks: the other requests.
    pub walks: u64,
    /// Hits as a fraction of both.
    pub hit_rate: f64,
    /// Total time that walks waited for others.
    pub waited_ns: f64,
    /// Page walks as a fraction of the possible ones.
    pub busy: f64,
    /// Accesses that were refused, by function and reason, the warm-up included.
    pub faults: Vec<TranslationFault>,
    /// Translations that devices requested, the warm-up included; null where no device can request any and all addresses stay as they are.
    pub answered: Option<AnsweredTranslations>,
}

/// Accesses of a function that the IOMMU refused for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TranslationFault {
    /// The device, or the ID of a function that none has.
    pub device: String,
    /// The requester's ID: `03:00.0`.
    pub requester: String,
    /// Reason of the refusal.
    pub reason: RefusalReason,
    /// Operation of the first.
    pub operation: Access,
    /// The address of the first, hexadecimal.
    pub address: String,
    /// Their number.
    pub count: u64,
    /// Time of the first refusal.
    pub first_fs: u64,
}

/// Translations that devices asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredTranslations {
    /// Answers with a translation.
    pub given: u64,
    /// Answers without a translation.
    pub denied: u64,
    /// Invalidations that were sent to devices.
    pub invalidations: u64,
    /// Invalidations that were completed.
    pub invalidated: u64,
    /// From the change of the tables until the completion, on average.
    pub invalidation_mean_ns: f64,
    /// The longest.
    pub invalidation_max_ns: f64,
}

/// Translations of a device, the warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceTranslations {
    /// The device.
    pub device: String,
    /// Requests whose translation was kept when their turn came.
    pub hits: u64,
    /// Requests that waited for their translation.
    #[schemars(extend("x-revision" = 2))]
    pub waited: u64,
    /// Translations that it asked for.
    pub asked: u64,
    /// Of these, translations that did not exist, or requests for them that were not answered.
    pub denied: u64,
    /// Translations that made room for others.
    pub evicted: u64,
    /// Invalidations that it completed.
    pub invalidations: u64,
    /// Translations that these took away.
    pub invalidated: u64,
}
