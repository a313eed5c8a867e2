//! The NICs of pcie-bench's Figure 1: where they meet 40 Gb/s Ethernet, and what a NIC's file may hold; Little's law and Figure 2.

use tlplab_analytic::ethernet::{FCS, frames, packet};
use tlplab_analytic::in_flight::{Delays, Limit, Resource, in_flight};
use tlplab_analytic::loopback::Loopback;
use tlplab_analytic::*;
use tlplab_units::{Generation, Mps, Mrrs, Width};

fn gen3_x8(mistakes: Mistakes) -> Connection {
    let link = Link::new(Generation::Gen3, Width::new(8).unwrap());
    Connection { mistakes, ..Connection::new(link, Mps::new(256).unwrap(), Mrrs::new(512).unwrap()) }
}

fn nic(wanted: &str) -> Nic {
    let (name, text) = NICS.into_iter().find(|(name, _)| *name == wanted).unwrap();
    Nic::parse(name, text).unwrap()
}

/// The first frame at which 40 Gb/s is met, and the last at which it is not.
fn crossing(nic: &Nic, mistakes: Mistakes) -> (u64, u64) {
    let connection = gen3_x8(mistakes);
    let met = |frame: &u64| {
        nic.packets(&connection, Ways::Both, Span::new(0, packet(*frame))) >= frames(40e9, *frame, mistakes)
    };
    let first = (64..1519).find(met).unwrap();
    (first, (64..1519).rev().find(|frame| !met(frame)).unwrap_or(63))
}

#[test]
fn line_rate_is_met_where_the_public_model_has_it_and_where_it_is_right() {
    let one_mended = Mistakes { lost_requests: false, ..Mistakes::PCIE_MODEL };
    let found = ["simple", "kernel", "dpdk"].map(nic).map(|nic| {
        [Mistakes::PCIE_MODEL, one_mended, Mistakes::NONE].map(|mistakes| crossing(&nic, mistakes))
    });
    assert_eq!(found[0][0], (477, 583));
    assert_eq!(found[0][1], (638, 637));
    assert_eq!(found[1][0], (246, 299));
    assert_eq!(found[1][1].0, 353);
    assert_eq!(found[2][0], (182, 181));
    assert_eq!(found[2][1], (235, 288));
}

/// Requests cost 24 bytes, completions 20 and writes 24 beside their doublewords.
#[test]
fn a_packet_by_hand() {
    let text = "title = \"t\"\n\
        [[transmit]]\nwhat = \"a\"\nby = \"host\"\nop = \"read\"\nsize = \"4B\"\nbatch = 2\n\
        [[transmit]]\nwhat = \"b\"\nby = \"device\"\nop = \"read\"\nsize = \"packet\"\n\
        [[receive]]\nwhat = \"c\"\nby = \"device\"\nop = \"read\"\nsize = \"16B\"\n\
        [[receive]]\nwhat = \"d\"\nby = \"device\"\nop = \"write\"\nsize = \"packet\"\noffset = \"2B\"\n";
    let nic = Nic::parse("t.toml", text).unwrap();
    let bytes = |cost: Cost| [cost.up.bytes, cost.down.bytes];
    let cost = |mistakes, ways| bytes(nic.cost(&gen3_x8(mistakes), ways, Span::new(0, 64)));
    // The answer of 4 bytes and half of it; a request each: (20 + 4)/2 + 24 up, 24/2 + 20 + 64 down.
    assert_eq!(cost(Mistakes::NONE, Ways::Transmit), [36.0, 96.0]);
    // A request, and 64 bytes that touch 17 doublewords: 24 + 24 + 68 up.
    assert_eq!(cost(Mistakes::NONE, Ways::Receive), [116.0, 36.0]);
    assert_eq!(cost(Mistakes::NONE, Ways::Both), [152.0, 132.0]);
    // A buffer that ends a page makes two writes, and two completions, of the packets.
    let at_the_end = nic.cost(&gen3_x8(Mistakes::NONE), Ways::Both, Span::new(4064, 64));
    assert_eq!(bytes(at_the_end), [152.0 + 24.0 + 24.0, 132.0 + 20.0]);
    let lost = Mistakes { lost_requests: true, ..Mistakes::NONE };
    assert_eq!(cost(lost, Ways::Both), [128.0, 132.0]);
}

#[test]
fn mistakes_in_a_file_are_reported_with_their_place() {
    let step = |what: &str| format!("title = \"t\"\n[[receive]]\nwhat = \"x\"\n{what}\n");
    let rest = "by = \"device\"\nop = \"write\"\nsize = \"packet\"";
    for (text, wanted) in [
        ("title = ".to_owned(), "n.toml:1:9: "),
        (
            step(&rest.replace("device", "nic")),
            "n.toml:4:6: receive[1].by: unknown value \"nic\"; expected \"device\" or \"host\"",
        ),
        (
            step(&rest.replace("write", "wrote")),
            "n.toml:5:6: receive[1].op: unknown value \"wrote\"; expected \"read\" or \"write\"",
        ),
        (step(&rest.replace("packet", "16")), "n.toml:6:8: receive[1].size: \"16\" is not a size"),
        (step(&rest.replace("packet", "0B")), "n.toml:6:8: receive[1].size: 0 bytes at once; expected 1 to"),
        (
            step(&format!("{rest}\nbatch = 0")),
            "n.toml:7:9: receive[1].batch: 0 packets to a transaction; expected 1 or more",
        ),
        (step(&format!("{rest}\nbatchs = 8")), "n.toml:7:1: unknown field `batchs`, expected one of"),
        (step("by = \"host\""), "missing field `op`"),
        (step(rest), "n.toml:1:1: transmit: no [[transmit]] moves the packet"),
    ] {
        let told = Nic::parse("n.toml", &text).unwrap_err().to_string();
        assert!(told.contains(wanted), "{told}\nis not\n{wanted}");
    }
}

const DELAYS: Delays = Delays { latency: 900e-9, flight: 5e-9, drain: 100e-9 };

/// "The NIC has to handle at least 30 concurrent DMAs in each direction": 900 ns of frames of 128 bytes, one each 29.6 ns.
#[test]
fn thirty_transfers_under_way() {
    let line_rate = frames(40e9, 128, Mistakes::NONE);
    let connection = gen3_x8(Mistakes::NONE);
    let transfer = Span::new(0, 128 - FCS);
    for operation in [Operation::Read, Operation::Write] {
        let found = in_flight(&connection, operation, transfer, Some(line_rate), DELAYS, [None; 6]);
        assert_eq!(found.uses[0].resource, Resource::Transfers);
        assert_eq!(format!("{:.1}", found.uses[0].needed), "30.4");
        assert_eq!((found.limit, found.reached), (Limit::Demand, line_rate));
    }
    // With 16 tags it is 16 for each 900 ns, 53 % of the line rate.
    let tags = [None, Some(16.0), None, None, None, None];
    let found = in_flight(&connection, Operation::Read, transfer, Some(line_rate), DELAYS, tags);
    assert_eq!(found.limit, Limit::Resource(Resource::Tags));
    assert!((found.reached - 16.0 / 900e-9).abs() < 1.0);
}

/// Gen3 x8, MPS 256. A write of 512 bytes is 2 TLPs, 2 headers and 32 units; each TLP's 280 bytes take 35.5 ns of 63.015 Gb/s; the
/// UpdateFC 203 symbols of 1.0156 ns and 8 bytes; so the credits are away for 35.5 + 5 + 100 + 206.2 + 1.0 + 5 ns.
#[test]
fn each_resource_by_hand() {
    let connection = gen3_x8(Mistakes::NONE);
    let supply = [None, None, None, Some(16.0), Some(100.0), Some(4096.0)];
    let found = in_flight(&connection, Operation::Write, Span::new(0, 512), None, DELAYS, supply);
    let told: Vec<String> =
        found.uses.iter().map(|u| format!("{} {} {:.1}", u.resource.name(), u.each, u.held * 1e9)).collect();
    let wanted =
        ["transfers 1 900.0", "posted headers 2 352.7", "posted data 32 352.7", "replay buffer 560 252.7"];
    assert_eq!(told, wanted);
    // 100 units for 32 · 352.7 ns: 8.86 M/s, less than 16 headers, 4096 bytes or the link (14.0 M/s) allow.
    assert_eq!(found.limit, Limit::Resource(Resource::PostedData));
    assert_eq!(format!("{:.2}", found.reached / 1e6), "8.86");
    assert_eq!(format!("{:.2}", found.link / 1e6), "14.03");
    let lines = in_flight(&connection, Operation::Write, Span::new(0, 512), None, DELAYS, [None; 6]);
    assert_eq!((lines.limit, lines.reached), (Limit::Link, lines.link));
    assert!((lines.uses[2].needed - lines.link * 32.0 * 352.7e-9).abs() < 0.1);
}

/// Figure 2: PCIe's share falls with the packet's length because Ethernet is slower than the link.
#[test]
fn loop_back_latency_is_the_sum_of_its_parts() {
    let nic =
        Loopback { connection: gen3_x8(Mistakes::NONE), ethernet: 40e9, store: 64, pcie: 0.0, nic: 0.0 };
    let bare = nic.latency(128);
    // Two stores of 64 bytes and a write of 128, 2 · 88 + 152 bytes at 62.227 Gb/s; 140 bytes at 40 Gb/s.
    assert!((bare.pcie - 328.0 * 8.0 / 62.227e9).abs() < 1e-13, "{bare:?}");
    assert!((bare.nic - 28e-9).abs() < 1e-15);
    let fitted = Loopback { pcie: 900e-9 - bare.pcie, nic: 100e-9 - bare.nic, ..nic };
    assert!((fitted.latency(128).total() - 1000e-9).abs() < 1e-15);
    assert!((fitted.latency(128).pcie_share() - 0.9).abs() < 1e-9);
    let shares: Vec<f64> = [64, 128, 512, 1500].map(|size| fitted.latency(size).pcie_share()).into();
    assert!(shares.is_sorted_by(|one, next| one > next), "{shares:?}");
}
