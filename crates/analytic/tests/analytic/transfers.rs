//! Transfers of any size from any place, against the transaction layer's own cutting and arithmetic by hand.

use tlplab_analytic::*;
use tlplab_transaction::split::{CompletionPolicy, RequestPolicy, split_completion, split_request};
use tlplab_units::{Generation, LinkMode, Mps, Mrrs, Rcb, Width};

fn connection(generation: u8, lanes: u8, mps: u32, mrrs: u32) -> Connection {
    let link = Link::new(Generation::new(generation).unwrap(), Width::new(lanes).unwrap());
    Connection::new(link, Mps::new(mps).unwrap(), Mrrs::new(mrrs).unwrap())
}

fn gigabits(connection: &Connection, operation: Operation, start: u64, bytes: u64) -> String {
    format!("{:.2}", bandwidth(connection, operation, Span::new(start, bytes)).payload / 1e9)
}

/// Payload doublewords, as TLPs carry them.
fn span(address: u64, bytes: u64) -> u64 {
    (address + bytes).div_ceil(4) - address / 4
}

#[test]
fn transfers_split_as_in_the_transaction_layer() {
    let starts =
        [0, 1, 2, 3, 4, 60, 61, 64, 100, 127, 128, 130, 255, 256, 300, 1022, 2048, 3000, 4032, 4090, 4095];
    let sizes = [
        1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 200, 256, 257, 511, 512, 513, 1500, 4096, 4097, 9000,
        20_001,
    ];
    let policies = [
        (Requests::Aligned, RequestPolicy::Aligned, Completions::Rcb, CompletionPolicy::Rcb),
        (Requests::Packed, RequestPolicy::Packed, Completions::Max, CompletionPolicy::Max),
        (Requests::Packed, RequestPolicy::Packed, Completions::Rcb, CompletionPolicy::Rcb),
        (Requests::Aligned, RequestPolicy::Aligned, Completions::Max, CompletionPolicy::Max),
    ];
    let limits = [(128, 128), (128, 512), (256, 128), (256, 4096), (512, 256), (4096, 4096)];
    for ((requests, request, completions, completion), (mps, mrrs)) in
        policies.into_iter().flat_map(|policy| limits.map(|limit| (policy, limit)))
    {
        for rcb in Rcb::ALL {
            let base = connection(3, 8, mps, mrrs);
            let ours = Connection { requests, completions, rcb: rcb.bytes().into(), ..base };
            for (start, bytes) in starts.into_iter().flat_map(|start| sizes.map(|size| (start, size))) {
                let transfer = Span::new(start, bytes);
                let what = format!(
                    "{bytes} B at {start}, MPS {mps}, MRRS {mrrs}, RCB {rcb}, {requests:?} {completions:?}"
                );
                let writes: Vec<_> = split_request(start, bytes, mps, request).collect();
                let reads: Vec<_> = split_request(start, bytes, mrrs, request).collect();
                let answers: Vec<_> = reads
                    .iter()
                    .flat_map(|r| {
                        split_completion(r.address, r.bytes, *rcb, base.mps, completion)
                            .map(|c| span(r.address + u64::from(c.offset), c.bytes.into()))
                    })
                    .collect();
                assert_eq!(ours.writes(transfer), writes.len() as u64, "writes: {what}");
                assert_eq!(ours.reads(transfer), reads.len() as u64, "reads: {what}");
                assert_eq!(ours.completions(transfer), answers.len() as u64, "completions: {what}");
                let payloads = writes.iter().map(|w| span(w.address, w.bytes.into()));
                let cost = ours.cost(Party::Device, Access::Write, transfer);
                let bytes_up: u64 = payloads.clone().map(|dwords| 24 + 4 * dwords).sum();
                let up = Way { tlps: writes.len() as f64, bytes: bytes_up as f64 };
                assert_eq!((cost.up, cost.down), (up, Way::default()), "{what}");
                let credits: u64 = payloads.map(|dwords| dwords.div_ceil(4)).sum();
                assert_eq!(ours.write_credits(transfer), credits, "credits: {what}");
                let cost = ours.cost(Party::Device, Access::Read, transfer);
                let bytes_down: u64 = answers.iter().map(|dwords| 20 + 4 * dwords).sum();
                let up = Way { tlps: reads.len() as f64, bytes: 24.0 * reads.len() as f64 };
                let down = Way { tlps: answers.len() as f64, bytes: bytes_down as f64 };
                assert_eq!((cost.up, cost.down), (up, down), "{what}");
            }
        }
    }
}

/// Raw rate · (1 − 2 · 8/(limit · lanes) − skips) · payload / cost, limits from tables 3-7 to 3-9 of PCIe 5.0.
#[test]
fn by_hand() {
    // Limit 203 symbols: 63.0154 · (1 − 16/1624 − 1/376) = 62.2269
    let x8 = connection(3, 8, 256, 512);
    assert_eq!(format!("{:.2}", x8.raw() * 8.0 / 1e9), "63.02");
    assert_eq!(format!("{:.2}", x8.capacity() * 8.0 / 1e9), "62.23");
    // Nothing that comes down is to be answered: 63.0154 · (1 − 1/376) · 256/280 = 57.4625
    assert_eq!(gigabits(&x8, Operation::Write, 0, 256), "57.46");
    assert_eq!(gigabits(&x8, Operation::Read, 0, 512), "57.72"); // · 512/552
    assert_eq!(gigabits(&x8, Operation::ReadWrite, 0, 512), "54.56"); // · 512/(560 + 24)
    // A line that starts 32 bytes into another is one TLP; one that passes 4 KiB is two: 62.8478 · 64/112.
    assert_eq!(gigabits(&x8, Operation::Write, 32, 64), "45.71");
    assert_eq!(gigabits(&x8, Operation::Write, 4064, 64), "35.91");
    // With the RCB policy each line has a completion of its own: · 512/(8 · 84).
    let by_rcb = Connection { completions: Completions::Rcb, ..x8 };
    assert_eq!(gigabits(&by_rcb, Operation::Read, 0, 512), "47.41");
    // 32-bit addresses and ECRC: · 256/(20 + 4 + 256).
    let narrow = Connection { wide_addresses: false, ..x8 };
    assert_eq!(gigabits(&narrow, Operation::Write, 0, 256), "58.29");
    assert_eq!(gigabits(&Connection { ecrc: true, ..narrow }, Operation::Write, 0, 256), "57.46");
    // Flits: 1024 · 236/256 = 944 Gb/s for TLPs without framing, · 256/272.
    let x16 = connection(6, 16, 256, 512);
    assert_eq!(format!("{:.0}", x16.capacity() * 8.0 / 1e9), "944");
    assert_eq!(gigabits(&x16, Operation::Write, 0, 256), "888.47");
    // The same at 32 GT/s, where there are line coding and skips: 504.123 · (1 − 1/376) · 236/256 · 256/272.
    let mut flits = connection(5, 16, 256, 512);
    flits.link.mode = LinkMode::Flit;
    assert_eq!(gigabits(&flits, Operation::Write, 0, 256), "436.24");
}

/// At 2.5 GT/s x1 a DLLP takes two per cent of the interval between two: the direction of the answered TLPs matters. A lane has 0.25 B/ns, less 4 of 1538 symbols.
#[test]
fn dllps_answer_the_tlps_of_the_other_direction() {
    let x1 = connection(1, 1, 128, 128);
    // 152 B for 128, and nothing to answer: 2 · (1 − 4/1538) · 128/152 Gb/s.
    assert_eq!(gigabits(&x1, Operation::Write, 0, 128), "1.68");
    let write = bandwidth(&x1, Operation::Write, Span::new(0, 128)).payload;
    assert!((write / 1.679_830e9 - 1.0).abs() < 1e-6, "{write}");
    // Limit 237 symbols; a completion of 148 B answers a request, which is not answered more than once itself: 148 + 2 · 8 B for each
    // would be more often than every 237 B. So 1994.80 Mb/s · (1 − 16/237 …) holds: 0.25 · (1 − 4/1538 − 16/237) · 128/148 B/ns.
    let read = bandwidth(&x1, Operation::Read, Span::new(0, 128)).payload;
    assert!(
        (read / (2e9 * (1.0 - 4.0 / 1538.0 - 16.0 / 237.0) * 128.0 / 148.0) - 1.0).abs() < 1e-9,
        "{read}"
    );
    // One request for 512 B is rarer than the limit, and has an Ack and an UpdateFC of its own: 4 · 148 + 16 B for 512.
    let long = connection(1, 1, 128, 512);
    let read = bandwidth(&long, Operation::Read, Span::new(0, 512)).payload;
    assert!(
        (read / (2e9 * (1.0 - 4.0 / 1538.0) * 512.0 / (4.0 * 148.0 + 16.0)) - 1.0).abs() < 1e-9,
        "{read}"
    );
    // The public model takes both from each direction, whatever comes.
    let public = Connection { mistakes: Mistakes::NONE.and("both-ways").unwrap(), ..x1 };
    let write = bandwidth(&public, Operation::Write, Span::new(0, 128)).payload;
    assert_eq!(format!("{:.3}", write / 1e9), "1.566");
}

/// What has been measured: an H100 on gen5 x16 writes lines of 128 B at 52.8 GB/s; of 52.9;
/// copy engines move 55.2 to 55.5, of 57.5 and 58.0.
#[test]
fn measured_links_are_below_it_but_not_by_much() {
    let x16 = connection(5, 16, 256, 512);
    let gigabytes = |operation, bytes| bandwidth(&x16, operation, Span::new(0, bytes)).payload / 8e9;
    assert!((gigabytes(Operation::Write, 128) / 52.92 - 1.0).abs() < 0.005);
    assert!((gigabytes(Operation::Write, 256) / 57.46 - 1.0).abs() < 0.005);
    assert!((gigabytes(Operation::Read, 256) / 58.0 - 1.0).abs() < 0.005);
}

/// Every link: nothing is more than full, the public model is too low outside flits and, on x1, within a thousandth.
#[test]
fn no_link_is_overfull() {
    for generation in Generation::ALL {
        for width in Width::ALL {
            for mps in Mps::ALL {
                let ours = connection(generation.number(), width.lanes(), mps.bytes(), 512);
                let public = Connection { mistakes: Mistakes::PCIE_MODEL, ..ours };
                assert!(ours.capacity() < ours.raw() && ours.capacity() > 0.9 * ours.raw());
                if ours.link.mode == LinkMode::NonFlit {
                    let ratio = public.capacity() / ours.capacity();
                    assert!(ratio < 1.0001, "{generation} {width} {mps}: {ratio}");
                    assert!(width.lanes() > 1 || ratio > 0.9999, "{generation} {width} {mps}: {ratio}");
                }
                for operation in [Operation::Read, Operation::Write, Operation::ReadWrite] {
                    let found = bandwidth(&ours, operation, Span::new(7, 1500));
                    let fuller = found.utilization.up.max(found.utilization.down);
                    assert!((fuller - 1.0).abs() < 1e-12);
                    assert!(found.payload < ours.capacity() * 8.0);
                }
            }
        }
    }
}
