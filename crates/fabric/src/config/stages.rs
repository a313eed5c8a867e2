//! The stages that a TLP passes at one end of a link.

use super::Duration;

/// Delays of one end of a link, by the layer that works on a TLP. They are a pipeline: a TLP is later by their sum, and the next one may follow
/// at once. DLLPs pass all of them but those of the transaction layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagesConfig {
    /// Transaction layer, before the TLP waits for credits and the wire.
    pub tx_transaction: Duration,
    /// Data link layer: sequence number, LCRC, replay buffer.
    pub tx_data_link: Duration,
    /// Logical sub-block of the physical layer: framing, scrambling, lanes.
    pub tx_physical: Duration,
    /// Serialiser and its line code; not the serialisation itself.
    pub tx_transceiver: Duration,
    /// Clock and data recovery, deserialiser, elastic buffer.
    pub rx_transceiver: Duration,
    /// Deskew, descrambling, frames.
    pub rx_physical: Duration,
    /// LCRC and sequence number are checked; Acks are made after it.
    pub rx_data_link: Duration,
    /// Transaction layer, up to the node's decision about the TLP.
    pub rx_transaction: Duration,
    /// From a read of a mapped register to its data, in the component at this end; for the lower end.
    pub register_response: Duration,
    /// From a configuration request to its answer, in the component at this end; for the lower end.
    pub config_response: Duration,
}

impl StagesConfig {
    /// Between the replay buffer and the wire.
    pub(crate) fn outgoing(&self) -> [(&'static str, Duration); 3] {
        [
            ("tx_data_link", self.tx_data_link),
            ("tx_physical", self.tx_physical),
            ("tx_transceiver", self.tx_transceiver),
        ]
    }

    /// Between the wire and the data link layer's Ack.
    pub(crate) fn incoming(&self) -> [(&'static str, Duration); 3] {
        [
            ("rx_transceiver", self.rx_transceiver),
            ("rx_physical", self.rx_physical),
            ("rx_data_link", self.rx_data_link),
        ]
    }

    /// The stages that both TLPs and DLLPs pass, both ways.
    pub(crate) fn below_transaction_layer(&self) -> Duration {
        let all = self.outgoing().into_iter().chain(self.incoming());
        all.fold(Duration::ZERO, |sum, (_, delay)| sum + delay)
    }
}
