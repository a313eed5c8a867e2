//! Time-travel messages: 16 bytes, little-endian on the machines that run user-mode Linux (`include/uapi/linux/um_timetravel.h`).

use crate::error::ProtocolError;

/// Bytes of a message.
pub const BYTES: usize = 16;

/// The content of a message or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Answers any message, with its sequence number.
    Ack,
    /// The guest begins; the time is its ID.
    Start,
    /// The guest wants to run at a time. Only the latest request counts.
    Request,
    /// The guest waits for the time that it requested.
    Wait,
    /// The guest asks for the time; it is in the answer.
    Get,
    /// The guest says what time it has.
    Update,
    /// The calendar lets the guest run: it is this time now.
    Run,
    /// The calendar lets the guest pass time by itself until then. Never sent here: events of the fabric may come at any time.
    FreeUntil,
    /// The guest asks for the time of day, in nanoseconds since 1970.
    GetTimeOfDay,
    /// A number for all; the guest's come from programs that write to `/sys/kernel/um-ext-time/bc-message`.
    Broadcast,
}

impl Operation {
    const ALL: [Self; 10] = [
        Self::Ack,
        Self::Start,
        Self::Request,
        Self::Wait,
        Self::Get,
        Self::Update,
        Self::Run,
        Self::FreeUntil,
        Self::GetTimeOfDay,
        Self::Broadcast,
    ];
}

/// A message of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its operation.
    pub operation: Operation,
    /// The number that its answer has, too.
    pub sequence: u32,
    /// Nanoseconds, or whatever the operation says.
    pub time: u64,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// [`ProtocolError::Calendar`]
    pub fn parse(bytes: &[u8; BYTES]) -> Result<Self, ProtocolError> {
        let [a, b, c, d, e, f, g, h, time @ ..] = *bytes;
        let code = u32::from_le_bytes([a, b, c, d]);
        let operation = Operation::ALL.get(code as usize).ok_or(ProtocolError::Calendar(code))?;
        let sequence = u32::from_le_bytes([e, f, g, h]);
        Ok(Self { operation: *operation, sequence, time: u64::from_le_bytes(time) })
    }

    /// Its bytes.
    pub fn emit(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&(self.operation as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..].copy_from_slice(&self.time.to_le_bytes());
        bytes
    }

    /// Its answer, which carries `time`.
    pub fn ack(self, time: u64) -> Self {
        Self { operation: Operation::Ack, sequence: self.sequence, time }
    }
}
