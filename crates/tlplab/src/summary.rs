//! A summary of a run: throughput of each flow, and the share of each cause in its latency.

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
    /// Transactions that failed.
    pub failed: u64,
    /// Mean latency of those that ended well; none, if none did.
    pub mean_latency: Option<Duration>,
    /// The share of each cause in that latency, the largest first; they sum to 1.
    pub causes: Vec<(Cause, f64)>,
}

/// The flows with at least one transaction so far, in the order of their numbers.
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

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// 100 writes of 256 B, and 100 reads without an answer because they are beyond memory.
    #[test]
    fn a_summary_counts_finished_transactions_only() {
        let mut builder = Builder::default();
        for (name, op, port) in [("nic", LoadOp::Write, "host.rp0"), ("ssd", LoadOp::Read, "host.rp1")] {
            let target = Target::Address(if op == LoadOp::Read { 1 << 50 } else { 1 << 32 });
            let load = LoadConfig { op, target, count: Some(100), ..LoadConfig::default() };
            let link = LinkConfig::new(port, Generation::Gen3, Width::X8);
            builder
                .attach(DeviceConfig::new(name, link), Box::new(Load::new(load, 1, name).unwrap()))
                .finishes();
        }
        let mut fabric = builder.build().unwrap();
        while fabric.run_events(1000, Time::NEVER) {}
        fabric.run_until(Time::ZERO + Duration::from_us(100));
        let [nic, ssd] = &flows(&fabric)[..] else { panic!("the host did nothing") };
        assert_eq!((nic.transactions, nic.failed, ssd.transactions, ssd.failed), (100, 0, 0, 100));
        assert_eq!(nic.bits_per_second, 25_600.0 * 8.0 / 100e-6);
        let sum: f64 = nic.causes.iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert!(nic.causes.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(nic.to_string().starts_with("nic: 2.05 Gb/s, "), "{nic}");
        assert_eq!((ssd.mean_latency, ssd.to_string()), (None, "ssd: 0.00 Gb/s".into()));
    }
}
