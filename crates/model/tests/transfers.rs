//! Transfers of any size from any place, against the transaction layer's own cutting and arithmetic by hand.

use tlplab_model::*;
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
fn cuts_are_those_of_the_transaction_layer() {
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
                assert_eq!((cost.up, cost.down), (bytes_up as f64, 0.0), "{what}");
                let credits: u64 = payloads.map(|dwords| dwords.div_ceil(4)).sum();
                assert_eq!(ours.write_credits(transfer), credits, "credits: {what}");
                let cost = ours.cost(Party::Device, Access::Read, transfer);
                let bytes_down: u64 = answers.iter().map(|dwords| 20 + 4 * dwords).sum();
                assert_eq!((cost.up, cost.down), (24.0 * reads.len() as f64, bytes_down as f64), "{what}");
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
    assert_eq!(gigabits(&x8, Operation::Write, 0, 256), "56.89"); // · 256/280
    assert_eq!(gigabits(&x8, Operation::Read, 0, 512), "57.72"); // · 512/552
    assert_eq!(gigabits(&x8, Operation::ReadWrite, 0, 512), "54.56"); // · 512/(560 + 24)
    // A line that starts 32 bytes into another is one TLP; one that passes 4 KiB is two: 62.2269 · 64/112.
    assert_eq!(gigabits(&x8, Operation::Write, 32, 64), "45.26");
    assert_eq!(gigabits(&x8, Operation::Write, 4064, 64), "35.56");
    // With the RCB policy each line has a completion of its own: · 512/(8 · 84).
    let by_rcb = Connection { completions: Completions::Rcb, ..x8 };
    assert_eq!(gigabits(&by_rcb, Operation::Read, 0, 512), "47.41");
    // 32-bit addresses and ECRC: · 256/(20 + 4 + 256).
    let narrow = Connection { wide_addresses: false, ..x8 };
    assert_eq!(gigabits(&narrow, Operation::Write, 0, 256), "57.72");
    assert_eq!(gigabits(&Connection { ecrc: true, ..narrow }, Operation::Write, 0, 256), "56.89");
    // Flits: 1024 · 236/256 = 944 Gb/s for TLPs without framing, · 256/272.
    let x16 = connection(6, 16, 256, 512);
    assert_eq!(format!("{:.0}", x16.capacity() * 8.0 / 1e9), "944");
    assert_eq!(gigabits(&x16, Operation::Write, 0, 256), "888.47");
}

/// What has been measured: an H100 on gen5 x16 writes lines of 128 B at 52.8 GB/s; copy engines move 55.2 to 55.5, of 57.1 and 58.0.
#[test]
fn measured_links_are_below_it_but_not_by_much() {
    let x16 = connection(5, 16, 256, 512);
    let gigabytes = |operation, bytes| bandwidth(&x16, operation, Span::new(0, bytes)).payload / 8e9;
    assert!((gigabytes(Operation::Write, 128) / 52.6 - 1.0).abs() < 0.005);
    assert!((gigabytes(Operation::Write, 256) / 57.1 - 1.0).abs() < 0.005);
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
