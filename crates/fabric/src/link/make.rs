//! The ports of a fabric: engines, credits and replay buffers of the links that they end.

use crate::config::BuildError;
use crate::config::numbering::{LinkSlot, Numbering, PortSlot};
use crate::config::{
    Buffers, Direction, FabricConfig, FlowControl, HEADER_CHECK, LinkConfig, PortConfig, SkpPolicy,
};
use crate::kernel::ids::{LinkId, NodeId, PortId};
use crate::link::channel::{Channel, ordered_sets};
use crate::link::channel_model::{ChannelModel, CustomChannel};
use crate::link::egress::Egress;
use crate::link::fault::{Faults, Tampering};
use crate::link::lines::Lines;
use crate::link::port::{Port, PortSeries, WireCounters};
use crate::link::stages;
use crate::observe::timeline::Timeline;
use crate::observe::topology::NodeKind;
use crate::packet::attribution::Partition;
use crate::packet::slab::TlpHandle;
use crate::packet::wires::Wires;
use tlplab_datalink::{
    AckLatency, ClassBuffer, Config as LinkLayerConfig, ConfigError, CreditKind, Credits, Engine,
    ReceiveBuffers, RoundTrip,
};
use tlplab_device::Random;
use tlplab_units::{Duration, Generation, LinkMode, LinkRate, Mps, Time, Width};

pub(crate) fn make_port(
    config: &FabricConfig,
    numbering: &Numbering,
    index: usize,
    slot: &PortSlot,
    timeline: &mut Timeline,
) -> Result<Port, BuildError> {
    let link = &numbering.links[slot.link];
    let c = numbering.link_config(config, slot.link);
    let direction = if slot.direction == 0 { Direction::Up } else { Direction::Down };
    let purpose = if slot.direction == 0 { "errors up" } else { "errors down" };
    let of_direction = || c.faults.iter().enumerate().filter(|(_, f)| f.direction == direction);
    let faults = Faults::new(of_direction(), &Random::keyed(config.seed, &link.name, purpose));
    let (rate, skp) = (c.rate(), skp_policy(c));
    let engine = Engine::new(link_layer(config, numbering, index)?);
    let weights = numbering.sources(config, slot.node);
    Ok(Port {
        node: NodeId(slot.node as u16),
        index: slot.index,
        inside: numbering
            .sources_inside(config, index)
            .into_iter()
            .map(|(node, source)| (NodeId(node as u16), source))
            .collect(),
        peer: PortId(if slot.direction == 0 { link.upper } else { link.lower } as u16),
        link: LinkId(slot.link as u16),
        direction: slot.direction,
        mode: c.mode,
        word_mask: word_mask(c),
        header_check: 0,
        hits: Random::keyed(
            config.seed,
            &link.name,
            if slot.direction == 0 { "hits down" } else { "hits up" },
        ),
        latency: Duration::ZERO,
        requester: None,
        recovery: c.recovery,
        engine,
        stages: None,
        channel: Channel::new(rate, c.generation.encoding(), c.flight, skp, faults),
        tampering: Tampering::new(of_direction()),
        max_payload: slot.mps,
        payloads: Vec::new(),
        checks_digests: config.host.ecrc,
        missing: false,
        egress: Egress::new(weights.into_iter(), matches!(numbering.kind(slot.node), NodeKind::EndPoint)),
        lines: Lines::of(&config.host, numbering.kind(slot.node), numbering.ports_of(slot.node).count()),
        partition: Partition::new(),
        transmitting: false,
        transmits_until: Time::ZERO,
        updates_lost: 0,
        on_bus: on_bus(config, numbering, index),
        wire_up: c.trained && !on_bus(config, numbering, index),
        recovering: false,
        recovery_ends: Time::ZERO,
        wires_below: Wires::NONE,
        wires_told: Wires::NONE,
        wires_asserted: Vec::new(),
        held_down: 0,
        resets_below: false,
        peer_cuts_through: false,
        stores_for_faster: false,
        leaving: Vec::new(),
        discards: false,
        timer: Time::NEVER,
        later_timer: Time::NEVER,
        counters: WireCounters::default(),
        rates_before: Vec::new(),
        flit_flow: None,
        flit_debt: 0,
        series: PortSeries::new(timeline),
    })
}

fn skp_policy(c: &LinkConfig) -> SkpPolicy {
    if c.crossbar.is_some() { SkpPolicy::Off } else { c.skp }
}

/// The bytes of a word of the wire, a power of two, less one.
fn word_mask(c: &LinkConfig) -> u32 {
    c.tlp_alignment.next_power_of_two() - 1
}

/// True if it is a port of a parallel bus.
fn on_bus(config: &FabricConfig, numbering: &Numbering, port: usize) -> bool {
    let under = &numbering.link_config(config, numbering.ports[port].link).under;
    config.buses.iter().any(|bus| bus.name == *under)
}

/// Links that were trained before the run begins have exchanged their credits already.
pub(crate) fn establish(
    config: &FabricConfig,
    numbering: &Numbering,
    ports: &mut [Port],
) -> Result<(), BuildError> {
    for (i, link) in numbering.links.iter().enumerate() {
        if numbering.link_config(config, i).trained {
            let (lower, upper) =
                (link_layer(config, numbering, link.lower)?, link_layer(config, numbering, link.upper)?);
            (ports[link.lower].engine, ports[link.upper].engine) = Engine::established(lower, upper);
        }
    }
    for i in 0..ports.len() {
        let receiver = ports[ports[i].peer.index()].engine.config();
        let Some(buffers) = receiver.receive.vcs[0] else { continue };
        let finite = |credits| match credits {
            Credits::Infinite => None,
            Credits::Finite(credits) => Some(u32::from(credits)),
        };
        ports[i].series.headers.of = buffers.0.map(|class| finite(class.header));
        ports[i].series.data.of = buffers.0.map(|class| finite(class.data));
    }
    Ok(())
}

fn link_layer(
    config: &FabricConfig,
    numbering: &Numbering,
    port: usize,
) -> Result<LinkLayerConfig, BuildError> {
    let slot = &numbering.ports[port];
    let link = &numbering.links[slot.link];
    let c: &LinkConfig = numbering.link_config(config, slot.link);
    let (policy, peer, end) = match slot.direction {
        0 => (&c.lower, &c.upper, "lower"),
        _ => (&c.upper, &c.lower, "upper"),
    };
    let mut layer = LinkLayerConfig::new(c.generation, c.width, link.mps);
    (layer.mode, layer.flow_control) = (c.mode, c.flow_control);
    if c.crossbar.is_some() {
        layer.flow_control = FlowControl::Crossbar;
        if !c.faults.is_empty() {
            let (field, why) = ("faults".into(), "a crossbar has none".into());
            return Err(BuildError::Port {
                component: link.name.clone(),
                end,
                error: ConfigError { field, why },
            });
        }
    }
    let kind = numbering.kind(slot.node);
    let switch = matches!(kind, NodeKind::Switch | NodeKind::Bridge | NodeKind::Custom);
    let later = stages::acknowledged_later(c);
    layer.receive = match (policy.buffers, numbering.port_buffer(config, slot.node)) {
        (Some(buffers), _) => receive_buffers(buffers),
        (None, Some(tlps)) => port_buffer(tlps, slot.mps, kind),
        _ if switch => switch_buffers(c.generation, c.width, slot.mps, later + policy.stages.rx_transaction),
        _ => ReceiveBuffers::end_point(c.generation),
    };
    layer.ack.latency = ack_latency(policy);
    layer.ack.every = policy.ack_every;
    layer.fc = policy.update_fc;
    layer.replay.tlps = policy.replay_tlps;
    layer.replay.bytes = policy.replay_bytes;
    layer.replay_timer = policy.replay_timer;
    layer.round_trip = RoundTrip {
        flight: c.flight,
        stages: later,
        ack_latency: ack_latency(peer),
        padding: HEADER_CHECK + word_mask(c),
        ordered_sets: ordered_sets(c.rate(), c.generation.encoding(), skp_policy(c)),
    };
    let component = link.name.clone();
    layer.check().map_err(|error| BuildError::Port { component, end, error })?;
    Ok(layer)
}

fn ack_latency(policy: &PortConfig) -> AckLatency {
    match policy.ack_latency {
        None => AckLatency::Specification,
        Some(Duration::ZERO) => AckLatency::AtOnce,
        Some(time) => AckLatency::Fixed(time),
    }
}

/// The data that arrive in two microseconds at full rate, and no less than sixteen of the largest TLPs: round trips of several hundred
/// nanoseconds with credits returned by parts do not slow the link, and a congested switch holds no more than two microseconds' worth.
/// Stages make round trips longer, and the time with them.
fn switch_buffers(generation: Generation, width: Width, mps: Mps, stages: Duration) -> ReceiveBuffers {
    let span = u128::from((Duration::from_us(2) + stages).as_fs());
    let arriving = (u128::from(LinkRate::new(generation, width).bits_per_second() / 8) * span
        / 1_000_000_000_000_000) as u64;
    let bytes = arriving.max(16 * u64::from(mps.bytes()));
    // Ports of 16 GT/s and more can scale their credits by 16.
    let [most_headers, most_data] = [CreditKind::Header, CreditKind::Data]
        .map(|kind| u64::from(kind.most(generation >= Generation::Gen4)));
    let one =
        ClassBuffer::finite((bytes / 64).clamp(32, most_headers) as u16, (bytes / 16).min(most_data) as u16);
    ReceiveBuffers::vc0(one, one, one)
}

/// So many TLPs of each class; a root complex has room for all completions to its own requests.
fn port_buffer(tlps: u16, mps: Mps, kind: NodeKind) -> ReceiveBuffers {
    let one = ClassBuffer::finite(tlps, tlps.saturating_mul((mps.bytes() / 16) as u16));
    let completions = if kind == NodeKind::Switch { one } else { ClassBuffer::INFINITE };
    ReceiveBuffers::vc0(one, one, completions)
}

fn receive_buffers(buffers: Buffers) -> ReceiveBuffers {
    let credits = |n: u32| match n {
        0 => Credits::Infinite,
        n => Credits::Finite(u16::try_from(n).unwrap_or(u16::MAX)),
    };
    let class = |header, data| ClassBuffer { header: credits(header), data: credits(data) };
    ReceiveBuffers::vc0(
        class(buffers.posted_headers, buffers.posted_data),
        class(buffers.non_posted_headers, buffers.non_posted_data),
        class(buffers.completion_headers, buffers.completion_data),
    )
}

/// Makes a custom data link layer for a port.
pub(crate) type MakeLayer = Box<dyn FnMut(LinkLayerConfig) -> Engine<TlpHandle> + Send>;

/// Both ends of the link above `name` get a custom data link layer.
pub(crate) fn custom_layer(
    config: &FabricConfig,
    numbering: &Numbering,
    ports: &mut [Port],
    name: &str,
    mut make: MakeLayer,
) -> Result<(), BuildError> {
    let (link, trained) = custom_link(config, numbering, name)?;
    let ends = [link.lower, link.upper];
    let configs = ends.map(|end| ports[end].engine.config().clone());
    if configs[0].mode == LinkMode::Flit {
        return Err(custom_error(
            name,
            "a custom data link layer needs a framed link, and this link has flits",
        ));
    }
    for (end, at) in ends.into_iter().zip([0, 1]) {
        let mut engine = make(configs[at].clone());
        if trained {
            engine.activate_with(Time::ZERO, &configs[1 - at]);
        }
        ports[end].engine = engine;
    }
    Ok(())
}

/// One direction of the link above `name` gets a custom channel.
pub(crate) fn custom_channel(
    config: &FabricConfig,
    numbering: &Numbering,
    ports: &mut [Port],
    name: &str,
    direction: Direction,
    model: Box<dyn ChannelModel>,
) -> Result<(), BuildError> {
    let (link, _) = custom_link(config, numbering, name)?;
    let transmitter = match direction {
        Direction::Up => link.lower,
        Direction::Down => link.upper,
    };
    ports[transmitter].channel.own = Some(CustomChannel::new(model));
    Ok(())
}

/// The link above a component, if it can have custom parts, and whether it was trained before time 0.
fn custom_link<'n>(
    config: &FabricConfig,
    numbering: &'n Numbering,
    name: &str,
) -> Result<(&'n LinkSlot, bool), BuildError> {
    let Some(index) = numbering.links.iter().position(|link| link.name == name) else {
        return Err(custom_error(name, "it has no link above it for a custom channel or data link layer"));
    };
    let (link, c) = (&numbering.links[index], numbering.link_config(config, index));
    if c.crossbar.is_some() || on_bus(config, numbering, link.lower) {
        return Err(custom_error(
            name,
            "a crossbar or a parallel bus has neither channel nor data link layer, so it takes no custom ones",
        ));
    }
    Ok((link, c.trained))
}

fn custom_error(name: &str, why: &'static str) -> BuildError {
    BuildError::Custom { component: name.into(), why }
}
