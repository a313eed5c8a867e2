//! A driver on a simulated machine and its device in another place, with UDP between them.

use super::memory::Ends;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};
use tlplab_device::{Device, Dma, Refusal};
use tlplab_experiment::run::{Inputs, Run};
use tlplab_experiment::{Experiment, Options};
use tlplab_fabric::Driven;
use tlplab_netio::{Apis, End, Lag, LiveFabric, Loop, ServeError, Stop, Udp, Wait, drive};
use tlplab_nettlp::EndpointConfig;
use tlplab_nettlp::adapter::Adapter;
use tlplab_nettlp::adapter::host::{Answer, Host, HostRead, HostReadId};
use tlplab_nettlp::server::{BarMap, DevicePort, DeviceServer, Vectors};
use tlplab_units::{Bdf, Duration as Span, Time};
use tlplab_wire::nettlp::{DEVICE_PORTS, HOST_PORTS, config_api, message_api};

/// The copier's driver compares every copy with what it copied.
const COPIES: &str = "title = \"Copies\"\n[device.dma]\nunder = \"host.rp0\"\nlink = \"gen2 x4\"\n\
    model = \"copier\"\ntransfer = \"5000B\"\nrequests = 20\n";

fn run(text: &str, served: &[String]) -> Run {
    let read = |_: &str| Ok(text.to_owned());
    let experiment =
        Experiment::parse_with(&read, "copies.toml", &Options::default()).expect("an experiment");
    let inputs = Inputs { served: served.iter().cloned().collect(), ..Inputs::default() };
    Run::new(experiment, inputs).expect("a run")
}

/// What host memory holds in the end, from where programs are given memory.
fn memory(run: &mut Run) -> Vec<u8> {
    let ram = run.host_memory();
    let begin = ram.alloc(64, 64).expect("there is room");
    let mut bytes = vec![0; 1 << 16];
    ram.read(begin.saturating_sub(1 << 15), &mut bytes);
    bytes
}

/// The device's side: what `tlplab device` does.
fn device(local: Ipv4Addr, adapter: Ipv4Addr, device: impl Device, stop: &Stop) -> u64 {
    let apis = Apis { local, adapter };
    let layout = device.layout();
    let bases = std::array::from_fn(|bar| {
        let base = apis.config_read(0x10 + 4 * bar as u16).expect("an answer");
        (base & !0xF != 0).then_some(u64::from(base & !0xF))
    });
    let mut config = EndpointConfig::new(adapter, apis.device_id().expect("an answer"));
    config.tags = 0..=31;
    let table = apis.msix_table().expect("an answer");
    let vectors =
        table.iter().map(|entry| tlplab_cfgspace::MessageWrite { address: entry.address, data: entry.data });
    let port =
        DevicePort::new(config.clone(), BarMap::own(&layout, bases), Vectors::Given(vectors.collect()));
    let transport = Udp::open(local, config.ports(), Some(adapter)).expect("ports");
    let mut server = DeviceServer::new(device, port);
    server.start(tlplab_units::Time::ZERO);
    let server = drive(server, transport, Wait::Sleep, stop).expect("a network");
    server.port().interrupts()
}

/// The machine's side: what `tlplab adapter` does.
fn machine(mut adapter: Loop<Adapter<LiveFabric>, Udp>) -> (Run, String, Lag) {
    let give_up = Instant::now() + Duration::from_secs(20);
    while adapter.engine.host().ended().is_none() && Instant::now() < give_up {
        adapter.turn(None).expect("a network");
        let soon = Instant::now() + Duration::from_millis(20);
        let until = adapter.deadline().map_or(soon, |deadline| deadline.min(soon));
        adapter.poller().clone().wait(&mut Default::default(), Some(until)).expect("a poller");
    }
    let host = adapter.engine.host_mut();
    let (lag, ended) = (host.lag(), host.ended().map_or("nothing".into(), End::to_string));
    let replacement = run(COPIES, &[]);
    (std::mem::replace(host.run(), replacement), ended, lag)
}

#[test]
fn a_copier_elsewhere_copies_as_a_simulated_one_does() {
    let (local, peer) = (Ipv4Addr::new(127, 21, 5, 1), Ipv4Addr::new(127, 21, 5, 2));
    let mut simulated = run(COPIES, &[]);
    simulated.finish().expect("it ends");
    let served = ["dma".to_owned()];
    let live = LiveFabric::new(run(COPIES, &served), &served, Box::new(())).expect("it can be served");
    let config = live.adapter_config(local, &[peer]);
    let ports = DEVICE_PORTS.chain(HOST_PORTS).chain([config_api::PORT, message_api::PORT]);
    let transport = Udp::open(local, ports, None).expect("ports");
    let adapter = Loop::new(Adapter::new(config, live).expect("an adapter"), transport);
    let stop = Stop::default();
    let (mut served, interrupts) = thread::scope(|scope| {
        let stop = &stop;
        let device = scope.spawn(move || device(peer, local, Dma::new(), stop));
        let ends = Ends(|| stop.stop());
        let (run, ended, lag) = machine(adapter);
        drop(ends);
        assert!(ended.contains("ended"), "{ended}, {lag:?}");
        (run, device.join().expect("the device ends"))
    });
    assert_eq!(interrupts, 20);
    assert!(memory(&mut served) == memory(&mut simulated), "the same is in memory");
    let document = served.document();
    let flow = document.flows.iter().find(|flow| flow.bytes > 0).expect("something moved");
    assert_eq!(flow.errors, Default::default());
    // Every transaction took simulated time, and the machine as much as the wall clock said.
    assert!(document.end_fs > 1_000_000_000_000, "{} fs for 20 copies over UDP", document.end_fs);
}

#[test]
fn unservable_devices_are_refused() {
    let refused = |text: &str, taken: &[&str], served: &str| {
        let taken: Vec<String> = taken.iter().map(|&name| name.to_owned()).collect();
        LiveFabric::new(run(text, &taken), &[served.to_owned()], Box::new(())).err()
    };
    assert_eq!(refused(COPIES, &["dma"], "dam"), Some(ServeError::NoDevice("dam".into())));
    assert_eq!(refused(COPIES, &[], "dma"), Some(ServeError::NotOutside("dma".into())));
    let without_bytes = COPIES.replace("\n[", "\nfidelity = \"length-only\"\n[");
    assert_eq!(refused(&without_bytes, &["dma"], "dma"), Some(ServeError::LengthOnly));
    let later = COPIES.replace("\n[", "\n[host]\nenumeration = \"simulated\"\n[");
    assert_eq!(refused(&later, &["dma"], "dma"), Some(ServeError::NotEnumerated("dma".into())));
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Span::from_ms(1000 * seconds)
}

/// A machine whose device has appeared, so that time goes on, and nothing happens in it: the driver waits for an answer.
fn waiting() -> LiveFabric {
    let served = ["dma".to_owned()];
    let mut live = LiveFabric::new(run(COPIES, &served), &served, Box::new(())).expect("it can be served");
    assert_eq!(live.absent().collect::<Vec<_>>(), ["dma"]);
    assert!(live.poll(at(1)).is_none(), "time has not begun");
    live.device_appears(at(1), 0);
    live
}

#[test]
fn the_wall_clock_s_origin_moves_and_simulated_time_goes_on() {
    let mut live = waiting();
    while live.poll(at(2)).is_some() {}
    let before = live.run().progress().now;
    assert!(before > at(0) && before < at(1), "{before}: time began a moment after the device appeared");
    // Here the origin of the wall clock moves by half a second after the device has appeared, and so does what it says now.
    let mut moved = waiting();
    moved.rebase(Span::from_ms(500));
    while moved.poll(Time::ZERO + Span::from_ms(1500)).is_some() {}
    assert_eq!(moved.run().progress().now, before);
}

#[test]
fn a_machine_ends_when_its_clock_is_full() {
    let mut live = waiting();
    while live.poll(at(2)).is_some() {}
    assert!(live.ended().is_none());
    for hour in 1..=6 {
        live.rebase(Span::from_ms(3_600_000));
        while live.poll(at(2)).is_some() {}
        assert_eq!(matches!(live.ended(), Some(End::TooOld)), hour >= 5, "after {hour} hours");
        if live.ended().is_some() {
            break;
        }
    }
    let said = live.ended().map(End::to_string).expect("it has ended");
    assert!(said.contains("5 hours") && said.contains("restart it"), "{said}");
    // What is asked then is refused at once.
    let read = HostRead { id: HostReadId(1), device: 0, requester: Bdf(0x100), address: 0, bytes: 4 };
    assert_eq!(live.read(at(2), read), Answer::Now(Err(Refusal::CompleterAbort)));
    assert_eq!(live.deadline(), None);
}

/// A machine with so much to do that it lags, which needs two milliseconds each way for a read of memory.
#[test]
fn a_read_that_finds_the_machine_behind_is_answered_no_sooner_than_the_machine_answers() {
    let busy = "title = \"Busy\"\nstop = \"1s\"\n[host]\nlatency = \"2ms\"\n[device.card]\nunder = \"host.rp0\"\nlink = \"gen2 x4\"\nmodel = \"dma\"\n\
        [device.writer]\nunder = \"host.rp1\"\nlink = \"gen2 x4\"\nmodel = \"dma\"\n\
        [load]\nwriter = { op = \"write\", size = \"64B\", outstanding = 8 }\n";
    let served = ["card".to_owned()];
    let mut live = LiveFabric::new(run(busy, &served), &served, Box::new(())).expect("it can be served");
    live.device_appears(at(1), 0);
    let begin = Time::ZERO + Span::from_ms(1250);
    assert!(live.poll(begin).is_none());
    let behind = live.lag().now;
    assert!(behind > Span::from_ms(10), "it is behind by {behind}");
    let ask = |live: &mut LiveFabric, id| {
        let read = HostRead { id: HostReadId(id), device: 0, requester: Bdf(0x100), address: 0, bytes: 4 };
        assert_eq!(live.read(begin, read), Answer::Later);
    };
    ask(&mut live, 1);
    while live.lag().now > Span::from_ms(3) {
        assert_eq!(live.poll(begin), None);
    }
    ask(&mut live, 2);
    while live.lag().now > Span::from_ms(0) {
        assert_eq!(live.poll(begin), None);
    }
    let answered = |live: &mut LiveFabric, after| {
        let soon = begin + Span::from_us(after);
        std::iter::from_fn(|| live.poll(soon)).count()
    };
    assert_eq!(answered(&mut live, 3_990), 0);
    // A look has room for 20 000 events.
    let both: usize = (0..100).map(|_| answered(&mut live, 4_100)).sum();
    assert_eq!(both, 2);
}
