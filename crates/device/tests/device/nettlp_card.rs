//! Devices behind the card do what they do without it, and what is lost is counted.

use crate::ideal::Ideal;
use tlplab_device::nettlp_card::WINDOW_BAR;
use tlplab_device::*;
use tlplab_units::{Duration, Time};

const MS: Duration = Duration::from_ms(1);

fn config() -> CardConfig {
    CardConfig {
        rate: 10_000_000_000,
        buffer: 64 << 10,
        cores: 16,
        send: Duration::from_ns(2500),
        receive: Duration::from_ns(2500),
        wake: Duration::from_us(6),
        queue: 256,
        timeout: MS,
        bar: 1 << 20,
        mps: 256,
        mrrs: 512,
        from: Time::ZERO,
        peers: Vec::new(),
    }
}

/// A card whose window is BAR 0, so that drivers find the software's registers where they look for them.
struct Behind(NettlpCard);

impl Device for Behind {
    fn identity(&self) -> Identity {
        Identity { bars: vec![BarSpec::memory(0, 1 << 20)], msix_vectors: 16, ..self.0.identity() }
    }
    fn handle(&mut self, cx: &mut Context<'_>, event: Event) {
        let bar = WINDOW_BAR;
        self.0.handle(
            cx,
            match event {
                Event::MmioRead { offset, bytes, reply, .. } => Event::MmioRead { bar, offset, bytes, reply },
                Event::MmioWrite { offset, data, .. } => Event::MmioWrite { bar, offset, data },
                event => event,
            },
        );
    }
}

/// The driver compares every copy when the interrupt comes: an interrupt that overtook data would be found out. 5000 B are 10 requests and 20
/// writes, each from a core of its own choice.
#[test]
fn a_copier_behind_the_card_copies() {
    let card = NettlpCard::new(config(), Box::new(Dma::new()));
    let mut world = Ideal::new(false).device("dma", Behind(card)).host(DmaDriver::new("dma", 5000, 20));
    world.run(Time::ZERO + MS * 100);
    assert_eq!((world.faults.as_slice(), world.finished, world.interrupts), (&[][..], 1, 20));
    let reads: Vec<u64> =
        world.log.iter().filter(|(_, what, ..)| *what == "read").map(|entry| entry.3).collect();
    assert!(reads.iter().all(|bytes| *bytes <= 512), "{reads:?}");
}

/// Reads that are longer than a completion, or cross the double words, come back whole.
#[test]
fn a_memory_behind_the_card_remembers() {
    let data: Vec<u8> = (0..200).map(|i| i as u8 ^ 0x5A).collect();
    let token = ReplyToken(7);
    let mut actions = Vec::new();
    let mut next_op = 0;
    let mut card = NettlpCard::new(config(), Box::new(Memory::new(1 << 20)));
    let mut pending = vec![
        (Time::ZERO, Event::MmioWrite { bar: WINDOW_BAR, offset: 0x7FD, data: data.as_slice().into() }),
        (Time::ZERO, Event::MmioRead { bar: WINDOW_BAR, offset: 0x7FD, bytes: 200, reply: token }),
    ];
    let mut answer = None;
    while let Some(index) = (0..pending.len()).min_by_key(|i| pending[*i].0) {
        let (now, event) = pending.remove(index);
        card.handle(&mut Context::new(now, &[], &mut next_op, &mut actions), event);
        for action in actions.drain(..) {
            match action {
                Action::Timer { at, id } => pending.push((at, Event::Timer { id })),
                Action::Reply { token: seven, data } if seven == token => answer = Some((now, data)),
                other => panic!("{other:?}"),
            }
        }
    }
    let (at, bytes) = answer.expect("it is answered");
    assert_eq!(bytes.bytes(), Some(data.as_slice()));
    // By hand at 0.8 ns a byte: two datagrams one behind the other, each with 72 B around its TLP (200 B lie in 51 double words); the
    // software wakes and receives, and a core of its own sends two completions, 3 B up to 0x800 and 197 B in 50 double words from there:
    // the second leaves 2.5 us after the first, which is then long with the card.
    let ns = |bytes: u64| Duration::from_ps(bytes * 800);
    let there = ns(12 + 204 + 72) + ns(12 + 72) + Duration::from_us(6) + Duration::from_ns(2500);
    let back = Duration::from_us(5) + ns(12 + 200 + 72);
    assert_eq!(at - Time::ZERO, there + back);
    let network = card.network().expect("a card has a network").to_card;
    assert_eq!((network.datagrams, network.data), (2, 200));
    assert_eq!(network.busy, ns(12 + 4 + 72) + ns(12 + 200 + 72));
}

fn reads(buffer: u64, cores: u16, outstanding: u32, count: u64) -> NetworkStatistics {
    let load = LoadConfig {
        op: LoadOp::Read,
        size: 512,
        outstanding,
        count: Some(count),
        target: Target::Address(0x10_0000),
        window: 1 << 20,
        ..LoadConfig::default()
    };
    let load = Load::new(load, 1, "load").expect("a possible load");
    let config = CardConfig { buffer, cores, ..config() };
    let mut world = Ideal::new(true).device("card", NettlpCard::new(config, Box::new(load)));
    world.run(Time::ZERO + MS * 10_000);
    assert_eq!(world.finished, 1, "every read ends, one way or the other");
    world.devices[0].network().expect("it has a network")
}

/// Sixty-four reads at once are answered at once, and the card's buffer holds a few completions only.
#[test]
fn lost_completions_are_failed_reads() {
    let roomy = reads(1 << 20, 64, 64, 640);
    assert_eq!((roomy.reads, roomy.failed_reads, roomy.to_software.dropped), (640, 0, 0));
    assert_eq!(roomy.to_software.data, 640 * 512);
    let tight = reads(1024, 64, 64, 640);
    assert_eq!(tight.reads + tight.failed_reads, 640);
    assert!(tight.failed_reads > 0 && tight.to_software.dropped >= tight.failed_reads, "{tight:?}");
    assert!(tight.reads > 0 && tight.latency.1 < MS, "those that were given up do not count as answered");
}

/// A read with one requester on a core takes as long however many cores there are, so throughput grows with them.
#[test]
fn cores_do_not_wait_for_each_other() {
    let (one, eight) = (reads(1 << 20, 1, 1, 64), reads(1 << 20, 8, 8, 512));
    let mean = |counted: &NetworkStatistics| counted.latency.2 / u128::from(counted.reads);
    assert!(mean(&eight) < mean(&one) * 11 / 10, "{} and {}", mean(&one), mean(&eight));
    // Eight on one core do.
    let crowded = reads(1 << 20, 1, 8, 512);
    assert!(mean(&crowded) > 4 * mean(&one), "{}", mean(&crowded));
}
