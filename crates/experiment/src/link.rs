//! Links: `"gen4 x4"`, the table form, `[defaults.link]` and `[link.NAME]` become one [`LinkConfig`].

use crate::access;
use crate::error::{Error, Problem};
use crate::keys::Word;
use crate::tables;
use crate::tree::{self, Entry, Node, Table, Value};
use crate::view::View;
use tlplab_fabric::config::{
    AcsControls, LinkConfig, PortConfig, SkpPolicy, UpdateFcLatency, UpdateFcPolicy,
};
use tlplab_units::{Generation, LinkMode, Width};

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
    u8::try_from(number).ok().and_then(Generation::new).ok_or_else(|| {
        Problem::new(format!("unsupported generation \"gen{number}\"")).hint(format!(
            "expected {} to {}",
            Generation::FIRST,
            Generation::LAST
        ))
    })
}

pub(crate) fn width_of(lanes: i64) -> Result<Width, Problem> {
    u8::try_from(lanes).ok().and_then(Width::new).ok_or_else(|| {
        let widths: Vec<String> = Width::ALL.iter().map(ToString::to_string).collect();
        Problem::new(format!("unsupported width \"x{lanes}\""))
            .hint(format!("expected one of {}", widths.join(" ")))
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
    Ok(whole)
}

/// The place where a value of the link above a component was written; else the component.
pub(crate) fn find<'a>(root: &View<'a>, name: &str, component: &View<'a>, path: &[&str]) -> View<'a> {
    said_of(root, name, Some(component), path).unwrap_or_else(|| component.clone())
}

/// The value of the link above a component, if one was written.
pub(crate) fn said<'a>(root: &View<'a>, name: &str, path: &[&str]) -> Option<View<'a>> {
    let component = ["switch", "bus", "device"].iter().find_map(|table| root.get(table)?.get(name));
    said_of(root, name, component.as_ref(), path)
}

fn said_of<'a>(root: &View<'a>, name: &str, component: Option<&View<'a>>, path: &[&str]) -> Option<View<'a>> {
    said_of_it_alone(root, name, component, path).or_else(|| {
        let defaults = root.get("defaults")?.get("link")?;
        path.iter().try_fold(defaults, |view, step| view.get(step))
    })
}

/// The value of this link, and not of all links.
fn said_of_it_alone<'a>(
    root: &View<'a>,
    name: &str,
    component: Option<&View<'a>>,
    path: &[&str],
) -> Option<View<'a>> {
    let more = root.get("link").and_then(|links| links.get(name));
    let own = component.and_then(|component| component.get("link"));
    let mut starts = [more, own].into_iter().flatten();
    starts.find_map(|start| path.iter().try_fold(start, |view, step| view.get(step)))
}

/// Keys of the data link layer, and of what is sent besides TLPs: of a link, and of its ends.
const NOT_OF_A_CROSSBAR: ([&str; 5], [&str; 7]) = (
    ["flow_control", "tlp_alignment", "skp", "trained", "recovery"],
    ["buffers", "replay_tlps", "replay_bytes", "replay_timer", "ack_latency", "ack_every", "update_fc"],
);

/// Refuses keys that say something of this link and have no effect on it. Those of all links may stand in `[defaults.link]`.
pub(crate) fn check_effects(
    root: &View<'_>,
    name: &str,
    component: &View<'_>,
    link: &LinkConfig,
) -> Result<(), Error> {
    let refuse = |path: &[&str], why: &str| match said_of_it_alone(root, name, Some(component), path) {
        Some(said) => {
            let key = path.last().unwrap_or(&"this key");
            let problem = Problem::new(format!("{why}, and {key} no effect")).hint("leave this key out");
            Err(said.key_error(problem))
        }
        None => Ok(()),
    };
    if link.mode == LinkMode::Flit {
        refuse(&["tlp_alignment"], "a link in flit mode has no framed TLPs")?;
    }
    if link.crossbar.is_some() {
        let (of_the_link, of_its_ends) = NOT_OF_A_CROSSBAR;
        let ends = ["upper", "lower"].into_iter().flat_map(|end| of_its_ends.map(|key| vec![end, key]));
        let mut paths = of_the_link.into_iter().map(|key| vec![key]).chain(ends);
        paths.try_for_each(|path| refuse(&path, "a crossbar has no data link layer"))?;
    }
    Ok(())
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
        Problem::new(format!("this key is also set at {}", view.sources.place(other.at))).hint("set it once"),
    )
}

/// A gathered table as plain data.
pub(crate) fn config(under: &str, view: &View<'_>) -> Result<LinkConfig, Error> {
    for (key, example) in [("generation", "generation = 4"), ("width", "width = 4")] {
        if view.get(key).is_none() {
            let problem = Problem::new(format!("the link's {key} is missing"));
            return Err(view.problem(problem.hint(format!("for example {example}"))));
        }
    }
    let link = tables::LINK.read_into(view, LinkConfig::new(under, Generation::FIRST, Width::ALL[0]))?;
    let LinkConfig { generation, width, mode, .. } = link;
    if generation.requires_flit_mode() && mode == LinkMode::NonFlit {
        let problem = Problem::new(format!("{generation} exists in flit mode only"))
            .hint(format!("write \"{generation} {width} flit\""));
        return Err(view.problem(problem));
    }
    if mode == LinkMode::Flit && link.flow_control.drops() {
        let at = view.at("flow_control");
        let problem = Problem::new("a link in flit mode has credits");
        return Err(at.problem(problem.hint("drop-and-replay is for framed TLPs, up to gen5")));
    }
    Ok(link)
}

/// Symbols of an ordered set, and from one to the next.
#[derive(Default)]
pub(crate) struct OwnSkp {
    pub(crate) length: u32,
    pub(crate) interval: u32,
}

/// A word, or a table.
pub(crate) fn skp(view: &View<'_>) -> Result<SkpPolicy, Error> {
    if view.node.as_table().is_none() {
        return view.chosen();
    }
    let OwnSkp { length, interval } = tables::SKP.read_into(view, OwnSkp::default())?;
    if length >= interval {
        let problem = Problem::new(format!("{length} symbols in every {interval} leave no room for TLPs"));
        return Err(view.problem(problem.hint("interval is counted from one ordered set to the next")));
    }
    Ok(SkpPolicy::Custom { length, interval })
}

/// One end of a link, as its table says.
pub(crate) struct End {
    pub(crate) port: PortConfig,
    pub(crate) generation: Generation,
    pub(crate) width: Width,
    /// At the parent.
    pub(crate) upper: bool,
    /// Access control, and to whom it forbids access.
    pub(crate) acs: Option<AcsControls>,
    pub(crate) forbidden: Vec<String>,
}

/// An end of `link`, of which all else has been read.
pub(crate) fn port(view: &View<'_>, link: &LinkConfig, upper: bool) -> Result<PortConfig, Error> {
    let LinkConfig { generation, width, .. } = *link;
    let blank =
        End { port: PortConfig::default(), generation, width, upper, acs: None, forbidden: Vec::new() };
    let end = tables::PORT.read_into(view, blank)?;
    let acs = access::of_port(view, upper, end.acs, end.forbidden)?;
    Ok(PortConfig { acs, ..end.port })
}

/// Bytes of a replay buffer.
pub(crate) fn replay_bytes(view: &View<'_>) -> Result<u32, Error> {
    let bytes = view.bytes()?;
    u32::try_from(bytes).map_err(|_| view.error(format!("{bytes} B is more than 4 GiB")))
}

/// The time at which a port returns freed credits.
pub(crate) fn update_fc(view: &View<'_>) -> Result<UpdateFcPolicy, Error> {
    view.choice().map_or_else(
        || {
            Ok(UpdateFcPolicy {
                latency: UpdateFcLatency::Fixed(view.time()?),
                ..UpdateFcPolicy::SPECIFICATION
            })
        },
        Ok,
    )
}
