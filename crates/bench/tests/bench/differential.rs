//! The differential method on simulated topologies: what it recovers is what was configured, and it says what it cannot tell.

use std::fmt::Write;
use tlplab_bench::differential::simulator::{Sampled, Sampling, sample};
use tlplab_bench::differential::{LinkLatency, Verdict, attribute};
use tlplab_device::Random;
use tlplab_experiment::{Experiment, Options};
use tlplab_fabric::config::{FabricConfig, Forwarding, LinkConfig, PortConfig, StagesConfig};
use tlplab_units::{Duration, LinkMode, LinkRate};

const STEP: Duration = Duration::from_ns(3);

fn parse(text: &str) -> Experiment {
    Experiment::parse_with(
        &|_| Ok(text.to_owned()),
        "topology.toml",
        &Options { reader: true, ..Options::default() },
    )
    .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn measure(experiment: Experiment, samples: u64, step: Duration) -> (Sampled, Vec<LinkLatency>) {
    let sampled = sample(experiment, Sampling { samples, seed: 7, step }, &mut |_| true).unwrap();
    let links = attribute(&sampled.targets, &sampled.samples, &sampled.clock, None);
    (sampled, links)
}

/// A random topology: a chain of switches, each with an end point, and an end point below the last.
fn topology(random: &mut Random) -> String {
    let mut text = String::from("title = \"Random\"\n");
    let mut below = |most: u64| random.below(most);
    let _ = writeln!(text, "[host]\nlatency = \"{}ns\"", below(300));
    if below(2) == 0 {
        let _ = writeln!(text, "bridge = {{ latency = \"{}ns\" }}", below(100));
    }
    let depth = below(4);
    let mut under = "host.rp0".to_owned();
    for level in 0..=depth {
        let last = level == depth;
        let mut names = vec![format!("end{level}")];
        if !last {
            names.push(format!("switch{level}"));
        }
        // A root port has one link.
        for name in names.iter().skip(usize::from(level == 0 && !last)) {
            let kind = if name.starts_with("end") { "device" } else { "switch" };
            let _ = writeln!(text, "[{kind}.{name}]\nunder = \"{under}\"\nlatency = \"{}ns\"", below(200));
            if kind == "switch" {
                let way = ["cut-through", "store-and-forward"][below(2) as usize];
                let _ = writeln!(text, "forwarding = \"{way}\"");
            }
            let (generation, lanes) = (1 + below(7), 1 << below(5));
            let flit = if generation > 5 { " flit" } else { "" };
            let _ = writeln!(text, "link = \"gen{generation} x{lanes}{flit}\"");
            let _ = writeln!(text, "[link.{name}]\nflight = \"{}ps\"", below(20_000));
            for end in ["upper", "lower"] {
                if below(4) == 0 {
                    let _ = writeln!(text, "[link.{name}.{end}]\nlatency = \"{}ns\"", below(150));
                }
                stages(&mut text, name, end, &mut below);
            }
        }
        under = format!("switch{level}");
    }
    text
}

fn stages(text: &mut String, name: &str, end: &str, below: &mut impl FnMut(u64) -> u64) {
    let clock = ["\"link\"", "\"250MHz\"", "\"31.25MHz\""][below(3) as usize];
    let path = ["32b", "64b", "128b"][below(3) as usize];
    let _ = writeln!(text, "[link.{name}.{end}.stages]\nclock = {clock}\ndata_path = \"{path}\"");
    let layers = ["transaction", "data_link", "physical", "transceiver"];
    for stage in layers.iter().flat_map(|layer| ["tx", "rx"].map(|way| format!("{way}_{layer}"))) {
        let _ = match below(4) {
            0 => writeln!(text, "{stage} = {}", below(30)),
            1 => writeln!(text, "{stage} = \"{}.{} clocks\"", below(30), below(10)),
            2 => writeln!(text, "{stage} = \"{}ns\"", below(400)),
            _ => Ok(()),
        };
    }
    if end == "lower" {
        let _ = writeln!(text, "config_response = {}\nregister_response = {}", below(12), below(12));
    }
}

/// What a configuration says of the way of a read over the link above `name` and back, in ns: what a read of the component there takes
/// longer than one of what is above.
fn configured(fabric: &FabricConfig, name: &str) -> f64 {
    let switch = |name: &str| fabric.switches.iter().find(|switch| switch.name == name);
    let device = |name: &str| fabric.devices.iter().find(|device| device.name == name);
    let link = switch(name).map_or_else(|| &device(name).unwrap().link, |switch| &switch.uplink);
    let latency = switch(name).map_or_else(|| device(name).unwrap().latency, |switch| switch.latency);
    let above = switch(&link.under);
    let ns = |time: Duration| time.as_fs() as f64 / 1e6;
    let node_above = above.map_or(fabric.host.latency, |switch| switch.latency);
    let here =
        ns(link.lower.latency.unwrap_or(latency)) + ns(latency) + ns(link.lower.stages.config_response);
    // A root port answers for itself as it passes an answer on, but not out of a port's own latency.
    let passes = ns(link.upper.latency.unwrap_or(node_above));
    let answers = ns(node_above) + above.map_or(0.0, |switch| ns(switch.uplink.lower.stages.config_response));
    let overlap = above.map_or(0.0, |switch| cut_through(switch.forwarding, link, &switch.uplink));
    here + one_way(link, &link.upper, &link.lower, 20) + one_way(link, &link.lower, &link.upper, 24) + passes
        - answers
        - overlap
}

fn one_way(link: &LinkConfig, from: &PortConfig, to: &PortConfig, bytes: u64) -> f64 {
    let StagesConfig { tx_transaction, tx_data_link, tx_physical, tx_transceiver, .. } = from.stages;
    let StagesConfig { rx_transceiver, rx_physical, rx_data_link, rx_transaction, .. } = to.stages;
    let bytes = if link.mode == LinkMode::Flit { 256 } else { bytes };
    let parts = [
        tx_transaction,
        tx_data_link,
        tx_physical,
        tx_transceiver,
        LinkRate::new(link.generation, link.width).time_of(bytes),
        link.flight,
        rx_transceiver,
        rx_physical,
        rx_data_link,
        rx_transaction,
    ];
    parts.iter().map(|part| part.as_fs() as f64 / 1e6).sum()
}

/// A completion of 24 bytes goes on when its header is there (16 bytes with framing and sequence number), unless it would overtake itself.
fn cut_through(forwarding: Forwarding, from: &LinkConfig, to: &LinkConfig) -> f64 {
    let flits = [from.mode, to.mode].contains(&LinkMode::Flit);
    if forwarding != Forwarding::CutThrough || flits {
        return 0.0;
    }
    let time = |link: &LinkConfig, bytes| {
        LinkRate::new(link.generation, link.width).time_of(bytes).as_fs() as f64 / 1e6
    };
    (time(from, 24) - time(from, 16)).min(time(to, 24))
}

/// Every link's latency, as it is configured, is within the resolution that is stated.
fn recovers(seed: u64) -> (usize, usize, f64) {
    let text = topology(&mut Random::keyed(seed, "topology", ""));
    let experiment = parse(&text);
    let fabric = experiment.fabric.clone();
    let (sampled, links) = measure(experiment, 120, STEP);
    let (mut measured, mut coarsest) = (0, 0.0_f64);
    let of_components = |link: &&LinkLatency| !sampled.targets[link.far].name.contains(".bar");
    for link in links.iter().filter(of_components) {
        let (far, near) = (&sampled.targets[link.far], &sampled.targets[link.near]);
        let expected = configured(&fabric, &far.name);
        match link.latency_ns {
            Some(latency) => {
                let error = (latency - expected).abs();
                let (near, far) = (&near.name, &far.name);
                let resolution = link.resolution_ns;
                assert!(
                    error <= resolution + 1e-6,
                    "seed {seed}: {near} – {far}: {latency} ns, not {expected:.3} ± {resolution}\n{text}"
                );
                coarsest = coarsest.max(resolution);
            }
            None => assert!(expected < link.resolution_ns, "seed {seed}: {}: {}", far.name, link.note),
        }
        measured += usize::from(link.verdict == Verdict::Measured);
    }
    (measured, links.iter().filter(of_components).count(), coarsest)
}

#[test]
fn the_latency_of_every_link_is_recovered() {
    // TLPLAB_TOPOLOGIES=1000 for a longer look, some half a minute.
    let count = std::env::var("TLPLAB_TOPOLOGIES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let (mut measured, mut all, mut coarsest) = (0, 0, Vec::new());
    for seed in 0..count {
        let (some, of, resolution) = recovers(seed);
        (measured, all) = (measured + some, all + of);
        coarsest.push(resolution);
    }
    coarsest.sort_by(f64::total_cmp);
    let (median, worst) = (coarsest[count as usize / 2], coarsest[count as usize - 1]);
    println!(
        "{measured} of {all} links of {count} topologies; resolution {median:.1} ns, at worst {worst:.1} ns"
    );
    assert!(measured * 10 > all * 9, "{measured} of {all}");
}

#[test]
fn a_clock_that_is_too_coarse_reports_no_link() {
    let text = "title = \"Two links\"\n[device.card]\nunder = \"host.rp0\"\nlink = \"gen3 x8\"";
    for (step, verdict) in
        [(Duration::from_ns(1), Verdict::Measured), (Duration::from_us(1), Verdict::Unresolved)]
    {
        let (_, links) = measure(parse(text), 200, step);
        assert_eq!(links[0].verdict, verdict, "{links:?}");
    }
}

/// A card on a parallel bus below a bridge: 9 to 11 clocks by device select, 4 more for configuration on PCI-X (Miller et al., table 4).
#[test]
fn a_bus_is_recovered_too() {
    let modes = [("pci 33", 30.0), ("pci 66", 15.0), ("pci-x 66", 15.0), ("pci-x 133", 7.5)];
    let selects = [("fast", 9.0), ("medium", 10.0), ("slow", 11.0)];
    for (seed, (mode, cycle)) in modes.into_iter().enumerate() {
        let (select, clocks) = selects[seed % selects.len()];
        let text = format!(
            r#"
            title = "A bus"
            seed = {seed}
            [bus.pci]
            under = "host.rp0"
            link = "gen1 x8"
            mode = "{mode}"
            [device.card]
            under = "pci"
            model = "memory"
            devsel = "{select}"
            "#
        );
        let (sampled, links) = measure(parse(&text), 400, STEP);
        for (far, expected) in
            [("card", clocks + if mode.starts_with("pci-x") { 4.0 } else { 0.0 }), ("card.bar0", clocks)]
        {
            let link = links.iter().find(|link| sampled.targets[link.far].name == far).unwrap();
            assert_eq!(sampled.targets[link.near].name, "pci");
            let error = (link.latency_ns.unwrap() - expected * cycle).abs();
            assert!(error <= link.resolution_ns, "{mode} {far}: {link:?}, not {expected} clocks");
        }
    }
}
