//! Links: `"gen4 x4"`, the table form, `[defaults.link]` and `[link.NAME]` become one [`LinkConfig`].

use crate::access;
use crate::error::{Error, Problem};
use crate::keys::Word;
use crate::stages;
use crate::tables;
use crate::tree::{self, Entry, Node, Table, Value};
use crate::view::View;
use tlplab_fabric::config::{
    Buffers, FlowControl, LinkConfig, PortConfig, SkpPolicy, StagesConfig, UpdateFcLatency, UpdateFcPolicy,
};
use tlplab_units::{Duration, Generation, LinkMode, Mps, Width};

/// `link = "gen4 x4"`
pub static LINK: Word = Word {
    what: "a link such as \"gen4 x4\" or \"gen6 x16 flit\"",
    pattern: r"^gen[1-7] x(1|2|4|8|12|16|32)( flit)?$",
    check: |text| parse(text).map(drop),
};

/// `"gen4 x4 flit"`: generation, width, flit mode.
fn parse(text: &str) -> Result<(Generation, Width, bool), Problem> {
    let no_link = || Problem::new(format!("\"{text}\" is not {}", LINK.what));
    let mut words = text.split_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return Err(no_link()) };
    let number = |word: &str, prefix: &str| word.strip_prefix(prefix)?.parse::<u8>().ok();
    let generation = number(first, "gen").ok_or_else(no_link)?;
    let lanes = number(second, "x").ok_or_else(no_link)?;
    let flit = match (words.next(), words.next()) {
        (None, _) => false,
        (Some("flit"), None) => true,
        _ => return Err(no_link()),
    };
    Ok((generation_of(generation.into())?, width_of(lanes.into())?, flit))
}

pub(crate) fn generation_of(number: i64) -> Result<Generation, Problem> {
    u8::try_from(number)
        .ok()
        .and_then(Generation::new)
        .ok_or_else(|| Problem::new(format!("there is no gen{number}")).hint("generations are gen1 to gen7"))
}

pub(crate) fn width_of(lanes: i64) -> Result<Width, Problem> {
    u8::try_from(lanes).ok().and_then(Width::new).ok_or_else(|| {
        let widths: Vec<String> = Width::ALL.iter().map(ToString::to_string).collect();
        Problem::new(format!("there is no x{lanes} link")).hint(format!("widths are {}", widths.join(" ")))
    })
}

/// A link in its long form: a table with `generation`, `width` and, where the word says so, `mode`.
pub(crate) fn expand(node: &mut Node) {
    let Some((generation, width, flit)) = node.as_str().and_then(|text| parse(text).ok()) else { return };
    let at = node.at;
    let entry = |value| Entry { key_at: at, node: Node { at, value } };
    let mut table = Table::from([
        ("generation".to_owned(), entry(Value::Integer(generation.number().into()))),
        ("width".to_owned(), entry(Value::Integer(width.lanes().into()))),
    ]);
    if flit {
        table.insert("mode".into(), entry(Value::String("flit".into())));
    }
    node.value = Value::Table(table);
}

/// Everything that is said about the link above `component`, as one table.
pub(crate) fn gather(root: &View<'_>, name: &str, component: &View<'_>) -> Result<Node, Error> {
    let link = component.require(&tables::SWITCH, "link")?;
    let mut own = link.node.clone();
    expand(&mut own);
    if let (Some(mps), Some(table)) = (component.get("mps"), own.as_table_mut()) {
        let entry = Entry { key_at: mps.key_at, node: mps.node.clone() };
        if let Some(other) = table.insert("mps".into(), entry) {
            return Err(twice(&mps, &other.node));
        }
    }
    let mut whole = root
        .get("defaults")
        .and_then(|d| d.get("link"))
        .map_or_else(|| Node::table(link.node.at), |d| d.node.clone());
    let more = root.get("link").and_then(|links| links.get(name));
    if let Some(more) = &more
        && let Some((key, first, _)) = tree::conflict(&own, more.node, "")
    {
        let again = key.split('.').try_fold(more.clone(), |view, step| view.get(step));
        let there = Node { at: first, value: Value::Boolean(true) };
        return Err(twice(&again.unwrap_or_else(|| more.clone()), &there));
    }
    tree::merge(&mut whole, own);
    if let Some(more) = more {
        tree::merge(&mut whole, more.node.clone());
    }
    let view = link.with(&whole);
    view.filled(&tables::LINK)
}

/// The place where a value of the link above a component was written; else the component.
pub(crate) fn find<'a>(root: &View<'a>, name: &str, component: &View<'a>, path: &[&str]) -> View<'a> {
    let more = root.get("link").and_then(|links| links.get(name));
    let own = component.get("link");
    let defaults = root.get("defaults").and_then(|d| d.get("link"));
    [more, own, defaults]
        .into_iter()
        .flatten()
        .find_map(|start| path.iter().try_fold(start, |view, step| view.get(step)))
        .unwrap_or_else(|| component.clone())
}

/// A mistake found in a gathered link, under the key by which it was written if that is in `[link.NAME]`.
pub(crate) fn relocate(mut error: Error, root: &View<'_>, name: &str) -> Error {
    let marker = format!(".{name}.link.");
    let Some((_, rest)) = error.key.split_once(&marker) else { return error };
    let start = root.get("link").and_then(|links| links.get(name));
    let found = start.and_then(|start| rest.split('.').try_fold(start, |view, step| view.get(step)));
    if let Some(view) = found
        && let (file, line, _) = view.sources.locate(view.key_at)
        && (file, line) == (error.file.clone(), error.line)
    {
        error.key = view.path;
    }
    error
}

fn twice(view: &View<'_>, other: &Node) -> Error {
    view.key_error(
        Problem::new(format!("this is also said at {}", view.sources.place(other.at))).hint("say it once"),
    )
}

/// A gathered table as plain data.
pub(crate) fn config(under: &str, link: &View<'_>) -> Result<LinkConfig, Error> {
    let missing = |what: &str, example: &str| {
        link.problem(
            Problem::new(format!("the link's {what} is missing")).hint(format!("for example {example}")),
        )
    };
    let generation = link.integer("generation").ok_or_else(|| missing("generation", "generation = 4"))?;
    let generation = generation_of(generation as i64).map_err(|p| link.problem(p))?;
    let lanes = link.integer("width").ok_or_else(|| missing("width", "width = 4"))?;
    let width = width_of(lanes as i64).map_err(|p| link.problem(p))?;
    let mode = link.choice("mode")?.unwrap_or(LinkMode::NonFlit);
    if generation.requires_flit_mode() && mode == LinkMode::NonFlit {
        let problem = Problem::new(format!("{generation} exists in flit mode only"))
            .hint(format!("write \"{generation} {width} flit\""));
        return Err(link.problem(problem));
    }
    let flow_control = link.choice("flow_control")?.unwrap_or(FlowControl::Credits);
    if mode == LinkMode::Flit && flow_control.drops() {
        let at = link.get("flow_control").unwrap_or_else(|| link.clone());
        let problem = Problem::new("a link in flit mode has credits");
        return Err(at.problem(problem.hint("drop-and-replay is for framed TLPs, up to gen5")));
    }
    let end = |name: &str| match link.get(name) {
        Some(view) => port(&view, generation, width, name == "upper"),
        None => Ok(PortConfig::default()),
    };
    Ok(LinkConfig {
        under: under.into(),
        generation,
        width,
        mode,
        flow_control,
        crossbar: link.rate("crossbar"),
        tlp_alignment: link.size("tlp_alignment").unwrap_or(4) as u32,
        mps: link.size("mps").and_then(|b| Mps::new(b as u32)).unwrap_or(Mps::ALL[0]),
        flight: link.duration("flight").unwrap_or(Duration::ZERO),
        upper: end("upper")?,
        lower: end("lower")?,
        skp: skp(link)?,
        trained: link.boolean("trained").unwrap_or(true),
        recovery: link.duration("recovery").unwrap_or(Duration::ZERO),
        faults: Vec::new(),
    })
}

fn skp(link: &View<'_>) -> Result<SkpPolicy, Error> {
    let Some(skp) = link.get("skp") else { return Ok(SkpPolicy::Standard) };
    if skp.node.as_str().is_some() {
        return skp.chosen();
    }
    skp.require(&tables::SKP, "length")?;
    skp.require(&tables::SKP, "interval")?;
    let length = skp.integer("length").unwrap_or_default() as u32;
    let interval = skp.integer("interval").unwrap_or_default() as u32;
    if length >= interval {
        let problem = Problem::new(format!("{length} symbols in every {interval} leave no room for TLPs"));
        return Err(skp.problem(problem.hint("interval is counted from one ordered set to the next")));
    }
    Ok(SkpPolicy::Custom { length, interval })
}

fn port(port: &View<'_>, generation: Generation, width: Width, upper: bool) -> Result<PortConfig, Error> {
    Ok(PortConfig {
        latency: port.duration("latency"),
        buffers: port.get("buffers").map(|b| buffers(&b)).transpose()?,
        replay_tlps: port.integer("replay_tlps").map(|n| n as u32),
        replay_bytes: match (port.get("replay_bytes"), port.size("replay_bytes")) {
            (Some(view), Some(bytes)) => Some(
                u32::try_from(bytes)
                    .map_err(|_| view.problem(Problem::new(format!("{bytes} B is more than 4 GiB"))))?,
            ),
            _ => None,
        },
        replay_timer: port.duration("replay_timer"),
        ack_latency: port.duration("ack_latency"),
        ack_every: port.integer("ack_every").map(|n| n as u16),
        update_fc: update_fc(port)?,
        forwarding: port.choice("forwarding")?,
        max_payload: port.size("max_payload").and_then(|bytes| Mps::new(bytes as u32)),
        stages: port.get("stages").map_or_else(
            || Ok(StagesConfig::default()),
            |view| stages::config(&view, generation, width, upper),
        )?,
        acs: access::of_port(port, upper)?,
    })
}

/// When a port tells of freed credits.
fn update_fc(port: &View<'_>) -> Result<UpdateFcPolicy, Error> {
    if let Some(time) = port.duration("update_fc") {
        return Ok(UpdateFcPolicy { latency: UpdateFcLatency::Fixed(time), ..UpdateFcPolicy::SPECIFICATION });
    }
    Ok(port.choice("update_fc")?.unwrap_or_default())
}

fn buffers(view: &View<'_>) -> Result<Buffers, Error> {
    let filled = view.filled(&tables::BUFFERS)?;
    let filled = view.with(&filled);
    let credits = |key: &str| filled.integer(key).unwrap_or_default() as u32;
    Ok(Buffers {
        posted_headers: credits("posted_headers"),
        posted_data: credits("posted_data"),
        non_posted_headers: credits("non_posted_headers"),
        non_posted_data: credits("non_posted_data"),
        completion_headers: credits("completion_headers"),
        completion_data: credits("completion_data"),
    })
}
