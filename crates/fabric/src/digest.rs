//! One line for each fabric of a process, when it is dropped: hash and digests of all its results, for comparing two versions of the
//! simulator. The environment variable TLPLAB_TRACES names the file.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]
use crate::Fabric;
use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

thread_local! { static COUNT: Cell<u64> = const { Cell::new(0) }; }

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let Ok(path) = std::env::var("TLPLAB_TRACES") else { return };
        let n = COUNT.with(|count| {
            count.set(count.get() + 1);
            count.get()
        });
        let name = std::thread::current().name().unwrap_or("?").to_string();
        let mut flows = String::new();
        for id in self.flow_ids() {
            let f = self.flow_results(id);
            flows += &format!(
                "{} {} {:?} {:?} {} {:?}\n",
                f.transactions, f.bytes, f.latency_min, f.latency_max, f.latency_sum_fs, f.last_arrival
            );
            flows += &format!("{:?}", f.attribution().collect::<Vec<_>>());
            flows += &format!("{:?}", f.causes.steps().map(|(a, b, c)| (a, b, *c)).collect::<Vec<_>>());
            for x in &f.failed {
                flows += &format!(
                    "{:?} {} {} {:?}",
                    x.ending,
                    x.count,
                    x.latency_sum_fs,
                    x.attribution().collect::<Vec<_>>()
                );
            }
            flows += &format!(
                "{:?}",
                f.latency_ps
                    .iter_recorded()
                    .map(|v| (v.value_iterated_to(), v.count_at_value()))
                    .collect::<Vec<_>>()
            );
            flows += &format!("{:?}", self.flow_series(id));
        }
        let ports: Vec<_> = self.topology().links.iter().flat_map(|l| l.ports).collect();
        let mut directions = String::new();
        let mut series = String::new();
        for p in ports {
            directions += &format!(
                "{:?} {} {:?}\n",
                self.direction_result(p),
                self.replay_buffer(p),
                self.is_active(p)
            );
            series += &format!("{:?}", self.direction_series(p));
        }
        let levels: String = self
            .level_results()
            .iter()
            .map(|l| {
                format!("{:?} {} {:?} {:?} {:?} {:?}\n", l.of, l.place, l.link, l.capacity, l.mean, l.max)
            })
            .collect();
        let errors = format!(
            "{:?} {:?} {:?} {:?}",
            self.errors().collect::<Vec<_>>(),
            self.reported_errors().collect::<Vec<_>>(),
            self.outages(),
            self.protocol_errors().collect::<Vec<_>>()
        );
        let samples = format!("{:?}", self.samples());
        let other = format!(
            "{:?} {} {} {} {} {:?} {:?} {:?} {:?}",
            self.memory_busy(),
            self.interrupts(),
            self.refused(),
            self.unexpected_completions(),
            self.tlps_live(),
            self.fault(),
            self.enumerated_at(),
            self.bins(),
            self.topology()
        );
        let line = format!(
            "{name} {n} {:016x} {} {} {} flows {:016x} dirs {:016x} series {:016x} levels {:016x} errors {:016x} samples {:016x} other {:016x}\n",
            self.trace_hash(),
            self.now().as_fs(),
            self.tlp_hops(),
            self.transactions_ended(),
            digest(&flows),
            digest(&directions),
            digest(&series),
            digest(&levels),
            digest(&errors),
            digest(&samples),
            digest(&other)
        );
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}
