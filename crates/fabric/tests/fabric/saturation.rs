//! Saturated writes, reads and both, over every generation, width and MPS, against the closed forms of `tlplab-analytic`, which share no
//! code with the simulator: they know the specification and the policy parameters (Ack latency, credit batches, ordered sets) only.

use crate::bench::Bench;
use tlplab_analytic::{
    Connection, Link, Operation, Receiver, Setup, Span, Throughput, Traffic, Turnaround, bandwidth,
};
use tlplab_device::{LoadConfig, LoadOp};
use tlplab_fabric::config::Fidelity;
use tlplab_units::{Duration, Generation, LinkMode, Mps, Mrrs, Time, Width};

/// Bytes of a DMA read; completions are cut at the smaller of this and MPS.
const READ: f64 = 512.0;
const TOLERANCE: f64 = 1e-3;
/// Two of the 882 points, where an Ack falls due within a nanosecond of the TLP it could also cover: one Ack more or less per read is
/// the difference, and the closed form takes the other side. At gen2 x2 a read takes 552 ns and an Ack is due after 536 ns plus the
/// rest of the unit on the wire; the simulator sends one Ack per read: 512 / (552 + 8 + 0.3) B/ns = 7.29 Gb/s, as it measures.
const TIES: [(&str, f64); 2] = [("gen2 x2 MPS 256 Reads", 0.8e-2), ("gen1 x1 MPS 512 Both", 0.2e-2)];

#[derive(Clone, Copy)]
struct Point {
    generation: Generation,
    width: Width,
    mps: Mps,
    traffic: Traffic,
    /// Flit mode, in which Gen6 and Gen7 are in any case.
    flit: bool,
}

impl Point {
    fn op(self) -> LoadOp {
        match self.traffic {
            Traffic::Writes => LoadOp::Write,
            Traffic::Reads => LoadOp::Read,
            Traffic::Both => LoadOp::Both,
        }
    }

    /// Payload in bits per second towards the root complex and away from it.
    fn simulated(self) -> (f64, f64) {
        let longest = (f64::from(self.mps.bytes()).max(READ) + 24.0)
            / Link::new(self.generation, self.width).capacity();
        let span = |seconds: f64| Duration::from_fs((seconds * 1e15) as u64);
        // Long enough for the rarest thing that costs anything: an ordered set every 6 µs at Gen1 and Gen3, none from Gen6 on.
        let (settled, least) = match self.generation.number() {
            1..=3 => (20e-6, 120e-6),
            4..=5 => (10e-6, 60e-6),
            _ => (5e-6, 10e-6),
        };
        let (warmup, window) = (span((200.0 * longest).max(settled)), span((4000.0 * longest).max(least)));
        let mut bench = Bench::new();
        bench.config.fidelity = Fidelity::LengthOnly;
        bench.warmup(warmup);
        let size = if self.traffic == Traffic::Writes { 4096 } else { READ as u64 };
        let load =
            LoadConfig { op: self.op(), size, outstanding: 64, window: 1 << 24, ..LoadConfig::default() };
        let (mps, flit) = (self.mps, self.flit);
        bench
            .device("dev", "host.rp0", self.generation.number(), self.width.lanes())
            .config(|device| {
                device.link.mps = mps;
                if flit {
                    device.link.mode = LinkMode::Flit;
                }
            })
            .load(load);
        let mut fabric = bench.build();
        fabric.run_until(Time::ZERO + warmup + window);
        let rate = |name: &str| crate::bench::flow(&fabric, name).bytes as f64 * 8e15 / window.as_fs() as f64;
        match self.traffic {
            Traffic::Writes => (rate("dev"), 0.0),
            Traffic::Reads => (0.0, rate("dev")),
            Traffic::Both => (rate("dev.write"), rate("dev.read")),
        }
    }

    fn predicted(self) -> Throughput {
        let link = Link::new(self.generation, self.width);
        // The default receive buffers: all that can be advertised unscaled, four times that from 16 GT/s on; completions without limit.
        let (headers, data) =
            if self.generation >= Generation::Gen4 { (508.0, 8188.0) } else { (127.0, 2047.0) };
        let receiver = Receiver::new(&link, self.mps, headers, data, true);
        let payload = f64::from(self.mps.bytes());
        let cut = payload.min(READ);
        Setup {
            link,
            write_header: 16.0,
            write: if self.traffic == Traffic::Writes { payload } else { cut },
            read_header: 16.0,
            read: READ,
            completion: cut,
            read_group: 1.0,
            turnaround: Some(Turnaround { device: 0.0, host: 0.0 }),
            upper: receiver,
            lower: receiver,
        }
        .saturated(self.traffic)
    }

    fn name(self) -> String {
        format!("{} {} MPS {} {:?}", self.generation, self.width, self.mps.bytes(), self.traffic)
    }

    /// The larger relative error of the two directions, and both rates.
    fn error(self) -> (f64, String) {
        let (up, down) = self.simulated();
        let expected = self.predicted();
        let error = |got: f64, wanted: f64| if wanted == 0.0 { 0.0 } else { (got / wanted - 1.0).abs() };
        let worst = error(up, expected.up.payload).max(error(down, expected.down.payload));
        let text = format!(
            "{}: up {:.4} against {:.4}, down {:.4} against {:.4} Gb/s",
            self.name(),
            up / 1e9,
            expected.up.payload / 1e9,
            down / 1e9,
            expected.down.payload / 1e9
        );
        (worst, text)
    }
}

/// True where all points of a grid are asked for, and not those of every day.
pub(super) fn whole_grid() -> bool {
    std::env::var_os("TLPLAB_WHOLE_GRID").is_some()
}

/// All points, or every 37th: each generation, width and MPS is among them.
fn grid(traffic: Traffic) -> impl Iterator<Item = Point> {
    let step = if whole_grid() { 1 } else { 37 };
    let points = Generation::ALL.into_iter().flat_map(move |generation| {
        Width::ALL.into_iter().flat_map(move |width| {
            Mps::ALL.iter().map(move |&mps| Point { generation, width, mps, traffic, flit: false })
        })
    });
    points.step_by(step)
}

fn check(traffic: Traffic) {
    let (mut misses, mut points) = (Vec::new(), 0);
    for point in grid(traffic) {
        points += 1;
        let (error, text) = point.error();
        let name = point.name();
        let tolerance = TIES.iter().find(|(tie, _)| *tie == name).map_or(TOLERANCE, |(_, limit)| *limit);
        if error > tolerance {
            misses.push(format!("{:.3} %  {text}", error * 100.0));
        }
    }
    assert!(
        misses.is_empty(),
        "{} of {points} miss by more than 0.1 %:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

/// What `tlplab model bw` says of writes, which knows no receivers: what it leaves out are the UpdateFCs of every 30 µs, for two classes:
/// 16 of 7500 B at gen1 x1.
#[test]
fn writes_of_any_receiver() {
    for (generation, lanes, mps, flit) in [
        (1, 1, 128, false),
        (1, 1, 256, false),
        (2, 4, 128, false),
        (3, 8, 256, false),
        (5, 16, 128, false),
        (5, 16, 256, true),
    ] {
        let (generation, width) = (Generation::new(generation).unwrap(), Width::new(lanes).unwrap());
        let mps = Mps::new(mps).unwrap();
        let point = Point { generation, width, mps, traffic: Traffic::Writes, flit };
        let mut connection = Connection::new(Link::new(generation, width), mps, Mrrs::ALL[2]);
        if flit {
            connection.link.mode = LinkMode::Flit;
        }
        let expected = bandwidth(&connection, Operation::Write, Span::new(0, mps.bytes().into())).payload;
        let refreshes = 16.0 / (30e-6 * connection.raw());
        let ratio = point.simulated().0 / expected;
        let name = point.name();
        assert!(ratio < 1.0 + TOLERANCE && ratio > 1.0 - refreshes - TOLERANCE, "{name}: {ratio}");
    }
}

#[test]
fn saturated_writes() {
    check(Traffic::Writes);
}

#[test]
fn saturated_reads() {
    check(Traffic::Reads);
}

#[test]
fn saturated_reads_and_writes() {
    check(Traffic::Both);
}
