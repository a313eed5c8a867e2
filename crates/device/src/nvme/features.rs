//! Features: what Set Features stores and Get Features tells (NVMe 1.4 §5.21).

use super::config::NvmeConfig;
use super::status::Status;
use tlplab_units::{Duration, Time};

pub(super) const ARBITRATION: u8 = 0x01;
pub(super) const POWER: u8 = 0x02;
pub(super) const TEMPERATURE: u8 = 0x04;
pub(super) const ERROR_RECOVERY: u8 = 0x05;
pub(super) const WRITE_CACHE: u8 = 0x06;
pub(super) const QUEUES: u8 = 0x07;
pub(super) const COALESCING: u8 = 0x08;
pub(super) const VECTOR: u8 = 0x09;
pub(super) const ATOMICITY: u8 = 0x0A;
pub(super) const EVENTS: u8 = 0x0B;
pub(super) const TIMESTAMP: u8 = 0x0E;
pub(super) const HOST_ID: u8 = 0x81;

/// The recommended arbitration burst: 2^3 commands.
pub(super) const BURST: u32 = 3;
/// Kelvins above which the drive warns, until software says otherwise.
pub(super) const WARM: u16 = 343;

/// The values.
#[derive(Clone, Debug)]
pub(super) struct Features {
    pub(super) arbitration: u32,
    /// Thresholds of the composite temperature, in kelvins: over, under.
    pub(super) thresholds: [u16; 2],
    error_recovery: u32,
    pub(super) cached: bool,
    coalescing: u32,
    /// Vectors whose interrupts are not coalesced.
    uncoalesced: Vec<bool>,
    atomicity: u32,
    pub(super) events: u32,
    /// Milliseconds since 1970, and when they were so; whether software said so.
    timestamp: (u64, Time, bool),
    host: [u8; 16],
    queues: u32,
    has_cache: bool,
}

impl Features {
    pub(super) fn new(config: &NvmeConfig) -> Self {
        let queues = u32::from(config.queues) - 1;
        Self {
            arbitration: BURST,
            thresholds: [WARM, 0],
            error_recovery: 0,
            cached: config.cache > 0,
            coalescing: 0,
            uncoalesced: vec![false; usize::from(config.vectors)],
            atomicity: 0,
            events: 0,
            timestamp: (0, Time::ZERO, false),
            host: [0; 16],
            queues: queues << 16 | queues,
            has_cache: config.cache > 0,
        }
    }

    /// The value of a feature as dword 0 of a completion tells it; `word` is command dword 11.
    pub(super) fn get(&self, id: u8, word: u32) -> Result<u32, Status> {
        Ok(match id {
            ARBITRATION => self.arbitration,
            POWER | HOST_ID | TIMESTAMP => 0,
            TEMPERATURE => u32::from(self.thresholds[threshold(word)?]),
            ERROR_RECOVERY => self.error_recovery,
            WRITE_CACHE if self.has_cache => u32::from(self.cached),
            QUEUES => self.queues,
            COALESCING => self.coalescing,
            VECTOR => {
                let vector = word & 0xFFFF;
                let uncoalesced = self.uncoalesced.get(vector as usize).ok_or(Status::INVALID_FIELD)?;
                vector | u32::from(*uncoalesced) << 16
            }
            ATOMICITY => self.atomicity,
            EVENTS => self.events,
            _ => return Err(Status::INVALID_FIELD),
        })
    }

    /// Sets a feature to command dword 11. Those with data, and the cache, are set otherwise.
    pub(super) fn set(&mut self, id: u8, word: u32) -> Result<(), Status> {
        match id {
            ARBITRATION => self.arbitration = word & 0xFFFF_FF07,
            // There is one power state.
            POWER if word & 0x1F != 0 => return Err(Status::INVALID_FIELD),
            POWER => {}
            TEMPERATURE => self.thresholds[threshold(word)?] = word as u16,
            ERROR_RECOVERY if word >> 16 & 1 != 0 => return Err(Status::INVALID_FIELD),
            ERROR_RECOVERY => self.error_recovery = word & 0xFFFF,
            QUEUES if word & 0xFFFF == 0xFFFF || word >> 16 == 0xFFFF => return Err(Status::INVALID_FIELD),
            QUEUES => {}
            COALESCING => self.coalescing = word & 0xFFFF,
            VECTOR => {
                let vector = (word & 0xFFFF) as usize;
                *self.uncoalesced.get_mut(vector).ok_or(Status::INVALID_FIELD)? = word >> 16 & 1 == 1;
            }
            ATOMICITY => self.atomicity = word & 1,
            EVENTS => self.events = word & 0x1FF,
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(())
    }

    /// Bytes of a feature that is set by data.
    pub(super) fn data_bytes(id: u8, word: u32) -> Option<u64> {
        match id {
            TIMESTAMP => Some(8),
            HOST_ID => Some(if word & 1 == 1 { 16 } else { 8 }),
            _ => None,
        }
    }

    /// The value of such a feature.
    pub(super) fn get_data(&self, now: Time, id: u8, word: u32) -> Option<Vec<u8>> {
        let bytes = Self::data_bytes(id, word)? as usize;
        if id == HOST_ID {
            return Some(self.host[..bytes].to_vec());
        }
        let (base, since, told) = self.timestamp;
        let passed = now.saturating_since(since).as_fs() / Duration::from_ms(1).as_fs();
        let mut data = (base.wrapping_add(passed) & 0xFFFF_FFFF_FFFF).to_le_bytes().to_vec();
        data[6] = u8::from(told) << 1;
        Some(data)
    }

    /// Sets such a feature.
    pub(super) fn set_data(&mut self, now: Time, id: u8, data: &[u8]) {
        if id == HOST_ID {
            self.host = [0; 16];
            self.host[..data.len()].copy_from_slice(data);
        } else if let Ok(bytes) = data.try_into() {
            self.timestamp = (u64::from_le_bytes(bytes) & 0xFFFF_FFFF_FFFF, now, true);
        }
    }

    /// Commands that are taken from a submission queue before the next has its turn.
    pub(super) fn burst(&self) -> u32 {
        match self.arbitration & 7 {
            7 => u32::MAX,
            power => 1 << power,
        }
    }

    /// Completions that make an interrupt of `vector`, and how long it waits for them; `None` if each interrupts.
    pub(super) fn coalescing(&self, vector: u16) -> Option<(u32, Duration)> {
        let (threshold, time) = (self.coalescing & 0xFF, self.coalescing >> 8 & 0xFF);
        let off = self.uncoalesced.get(usize::from(vector)).copied().unwrap_or(true);
        let on = threshold > 0 && time > 0 && !off;
        on.then(|| (threshold + 1, Duration::from_us(100) * u64::from(time)))
    }

    pub(super) fn rebase(&mut self, by: Duration) {
        let (base, since, told) = self.timestamp;
        let passed = Time::ZERO + by;
        let lost = passed.saturating_since(since).as_fs() / Duration::from_ms(1).as_fs();
        self.timestamp = (base.wrapping_add(lost), since.earlier(by), told);
    }
}

/// The threshold that command dword 11 names: there is only the composite temperature.
fn threshold(word: u32) -> Result<usize, Status> {
    match (word >> 16 & 0xF, word >> 20 & 3) {
        (0 | 0xF, kind @ (0 | 1)) => Ok(kind as usize),
        _ => Err(Status::INVALID_FIELD),
    }
}
