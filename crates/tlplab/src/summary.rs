//! What a run came to, in few words: throughput, and the share of each cause in the latency.

use core::fmt;
use tlplab_fabric::Fabric;
use tlplab_fabric::attribution::Cause;
use tlplab_units::Duration;

/// A flow of a run, after its warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Payload that arrived, over the time since the warm-up.
    pub bits_per_second: f64,
    /// Transactions that ended well.
    pub transactions: u64,
    /// Transactions that ended otherwise, in whatever way.
    pub failed: u64,
    /// Mean latency of those that ended well; none, if none did.
    pub mean_latency: Option<Duration>,
    /// The share of each cause in that latency, the largest first; they sum to 1.
    pub causes: Vec<(Cause, f64)>,
}

/// The flows of a run so far that had anything to do, in the order of their numbers.
pub fn flows(fabric: &Fabric) -> Vec<Flow> {
    let span = fabric.now().saturating_since(fabric.warmup());
    let seconds = span.as_fs().max(1) as f64 / 1e15;
    let flow = |id: tlplab_fabric::FlowId| {
        let statistics = fabric.flow_results(id);
        let whole = statistics.latency_sum_fs;
        let mut sums = [0u128; Cause::COUNT];
        statistics.attribution().for_each(|(interval, fs)| sums[interval.cause() as usize] += fs);
        let used = Cause::ALL.into_iter().zip(sums).filter(|(_, fs)| *fs > 0);
        let mut causes: Vec<_> = used.map(|(cause, fs)| (cause, fs as f64 / whole as f64)).collect();
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        Flow {
            name: fabric.topology().flows[id.index()].name.clone(),
            bits_per_second: statistics.bytes as f64 * 8.0 / seconds,
            transactions: statistics.transactions,
            failed: statistics.failed.iter().map(|failures| failures.count).sum(),
            mean_latency: whole
                .checked_div(statistics.transactions.into())
                .map(|fs| Duration::from_fs(fs as u64)),
            causes,
        }
    };
    let used = |flow: &Flow| flow.transactions + flow.failed > 0;
    fabric.flow_ids().map(flow).filter(used).collect()
}

impl fmt::Display for Flow {
    /// `nic: 25.61 Gb/s, 318 ns: queueing 62.1 %, serialisation 30.2 %, …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.2} Gb/s", self.name, self.bits_per_second / 1e9)?;
        if let Some(latency) = self.mean_latency {
            write!(f, ", {:.0} ns", latency.as_fs() as f64 / 1e6)?;
        }
        for (n, (cause, share)) in self.causes.iter().enumerate() {
            let before = if n == 0 { ":" } else { "," };
            write!(f, "{before} {} {:.1} %", cause.name(), share * 100.0)?;
        }
        Ok(())
    }
}
