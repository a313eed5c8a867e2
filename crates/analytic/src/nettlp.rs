//! NetTLP: what Ethernet carries of the data of TLPs, each of which is a UDP datagram (Kuga et al., NSDI 2020).

use tlplab_wire::nettlp::ETHERNET_OVERHEAD;

/// Header of a completion.
const COMPLETION: u64 = 12;

/// An Ethernet link that TLPs are cut for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetTlp {
    /// Bits per second, each way.
    pub ethernet: f64,
    /// Largest payload of a TLP.
    pub mps: u64,
    /// Largest read request.
    pub mrrs: u64,
    /// Header of a request: 12 bytes below 4 GiB, 16 above.
    pub header: u64,
}

impl NetTlp {
    /// Data per second, in bits, of writes of `bytes` bytes each.
    pub fn writes(&self, bytes: u64) -> f64 {
        let wire = self.on_the_wire(bytes, self.mps, self.header);
        self.ethernet * bytes as f64 / wire as f64
    }

    /// The same of reads. Their completions fill one direction, their requests the other.
    pub fn reads(&self, bytes: u64) -> f64 {
        let (whole, rest) = (bytes / self.mrrs, bytes % self.mrrs);
        let completions = whole * self.on_the_wire(self.mrrs, self.mps, COMPLETION)
            + if rest > 0 { self.on_the_wire(rest, self.mps, COMPLETION) } else { 0 };
        let requests = bytes.div_ceil(self.mrrs) * (ETHERNET_OVERHEAD + self.header);
        self.ethernet * bytes as f64 / completions.max(requests) as f64
    }

    /// Bytes that data take in TLPs of up to `limit` bytes of payload.
    fn on_the_wire(&self, bytes: u64, limit: u64, header: u64) -> u64 {
        bytes.div_ceil(limit) * (ETHERNET_OVERHEAD + header) + bytes.next_multiple_of(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: NetTlp = NetTlp { ethernet: 10e9, mps: 256, mrrs: 512, header: 12 };

    /// By hand: 10 * 256 / (12 + 256 + 72), 10 * 512 / (2 * 340), 10 * 528 / (340 * 2 + 12 + 16 + 72); for 4 B requests and completions take
    /// nearly the same: 84 B and 88 B.
    #[test]
    fn known_answers() {
        let near = |found: f64, gbps: f64| assert!((found / 1e9 - gbps).abs() < 5e-5, "{found}");
        near(CARD.writes(256), 7.5294);
        near(NetTlp { header: 16, ..CARD }.writes(256), 7.4419);
        near(CARD.writes(257), 10.0 * 257.0 / (340.0 + 12.0 + 4.0 + 72.0));
        near(CARD.reads(512), 7.5294);
        near(CARD.reads(528), 10.0 * 528.0 / 780.0);
        near(CARD.reads(4), 40.0 / 88.0);
        near(NetTlp { header: 16, ..CARD }.reads(1), 10.0 / 88.0);
    }
}
