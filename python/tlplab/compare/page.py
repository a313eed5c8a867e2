"""Runs side by side as a self-contained page: bars for each, causes stacked, settings, links, limits.

It has the style sheet of the report, so a cause has the same colour on both pages; it has no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from importlib.resources import files

from tlplab import _core
from tlplab import quantities as q
from tlplab.compare import words
from tlplab.compare.difference import Change, Difference, Run, text_of
from tlplab.compare.figures import FS_PER_NS, Cause, Stream, by_cause
from tlplab.compare.show import circumstances
from tlplab.result import Direction, Link
from tlplab.sheet import NOTHING
from tlplab.summary import FIGURE_AND_UNIT, spoken

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
FLOW_COLOURS = 8
PARTS = {
    "payload": "TLP payload", "overhead": "TLP overhead", "dllp": "DLLPs", "ordered_sets": "ordered sets",
    "replay": "replay",
}  # fmt: skip
# Causes that the style sheet has no colour for are "other", as in the report.
OTHER = "other"
PLACES_SHOWN = 14
WAYS_SHOWN = 16
KEYS_SHOWN = 20
FLOWS_SHOWN = 24
# Less of a bar cannot be seen.
LEAST = 0.0005


def render(base: Run, found: Sequence[Difference]) -> str:
    """The page of a base and how others differ from it."""
    runs = [base, *(one.after for one in found)]
    body = "\n".join(
        [
            header(base, found),
            section("Settings", f"Keys that differ from {base.name}.", settings(found)),
            section("Throughput", "Payload of all flows, split by flow.", throughput(runs, found)),
            section("Causes of latency", "Each bar is the mean latency of a flow's transactions, split by cause.", latency(runs, found)),
            section("Links", "Share of the time in which each direction is in use.", links(runs)),
            section("Limits", "Found by runs with more of each resource, unless these were left out.", limits(runs)),
            origin(runs),
        ]
    )  # fmt: skip
    own = files("tlplab.compare").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<title>{escape(base.result["title"])} – compared</title>\n'
        f"<style>{_core.report_style()}</style>\n<style>\n{own}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, hint: str, content: str) -> str:
    """A part of the page; nothing, if it has nothing to say."""
    if not content:
        return ""
    return f'<section>\n<header><div><h2>{escape(title)}</h2><p class="hint">{escape(hint)}</p></div></header>\n{content}\n</section>'


def header(base: Run, found: Sequence[Difference]) -> str:
    """The title, and in a sentence which run carries most."""
    title, what = base.result["title"], "an alternative" if len(found) == 1 else f"{len(found)} alternatives"
    eyebrow = "".join(f"<span>{escape(text)}</span>" for text in (title, f"{base.name} and {what}"))
    return f'<header class="headline"><p class="eyebrow"><b>tlplab</b>{eyebrow}</p><h1>{unbroken(escape(headline(base, found)))}</h1>{notes(found)}</header>'


def unbroken(text: str) -> str:
    """A text in whose lines no unit is apart from its figure."""
    return FIGURE_AND_UNIT.sub("\u00a0", text)


def headline(base: Run, found: Sequence[Difference]) -> str:
    """The run that carries most, and its effect on latency."""
    best = max(found, key=lambda one: one.of("throughput").after or 0.0)
    change = best.of("throughput")
    assert change.before is not None
    assert change.after is not None
    if change.after > change.before * (1 + words.LEAST / 100):
        most = "carries most" if len(found) > 1 else "carries more"
        return f"{best.after.name} {most}: {q.rate(change.after)}, {more(change)} than {base.name}"
    quick = [
        (flow.mean.difference / flow.mean.before, flow.name, one)
        for one in found
        for flow in one.flows
        if flow.mean.before
    ]
    share, flow, one = min(quick, key=lambda item: item[0], default=(Fraction(0), "", best))
    if share < -words.LEAST / 100:
        return f"{one.after.name} carries no more than {base.name}, but transactions of {flow} take {q.significant(float(-100 * share), 3)} % less time"
    if len(found) == 1 and change.after < change.before * (1 - words.LEAST / 100):
        return f"{best.after.name} carries less: {q.rate(change.after)}, {less(change)} than {base.name}"
    return f"No alternative carries more than {base.name} or takes less time"


def more(change: Change) -> str:
    """`43.6 % more`."""
    return f"{words.by_how_much(change).removeprefix('+')} more"


def less(change: Change) -> str:
    """`34.7 % less`."""
    return f"{words.by_how_much(change).removeprefix(words.MINUS)} less"


def notes(found: Sequence[Difference]) -> str:
    """The circumstances that impair a comparison of designs, and the parts that only one side has."""
    lines = [f"{one.after.name}: {line}" for one in found for line in circumstances(one)]
    for one in found:
        for what, sides in one.only.items():
            lines += [f"only in {run.name}: {what} {', '.join(names)}"
                      for run, names in ((one.before, sides["before"]), (one.after, sides["after"])) if names]  # fmt: skip
    items = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(lines))
    return f'<ul class="evidence">{items}</ul>' if items else ""


def throughput(runs: Sequence[Run], found: Sequence[Difference]) -> str:
    """A bar for each run, in proportion to its rate, split by flow."""
    names = list(dict.fromkeys(name for run in runs for name in run.streams))
    most = max(run.figures["throughput"][0] for run in runs) or 1.0
    rows = []
    for run, one in zip(runs, (None, *found), strict=True):
        parts = [
            (name, run.figures.get(f"{name}.throughput", (0.0, ""))[0], flow_colour(at))
            for at, name in enumerate(names)
        ]
        bar = bars([(value / most, colour, f"{name}: {q.rate(value)}") for name, value, colour in parts])
        change = None if one is None else one.of("throughput")
        told = f"<dd>{q.rate(run.figures['throughput'][0])}</dd><small>{judged(change, up=True)}</small>"
        rows.append(row(run, bar, f'<dl class="told">{told}</dl>', base=one is None))
    return f'<ul class="compared-runs short">{"".join(rows)}</ul>{legend((name, flow_colour(at)) for at, name in enumerate(names))}'


def row(run: Run, bar: str, told: str, *, base: bool) -> str:
    """A run: its name, its bar, its figures."""
    return f'<li{" class=base" if base else ""}><span class="run">{escape(run.name)}</span>{bar}{told}</li>'


def bars(parts: Iterable[tuple[float, str, str]]) -> str:
    """A stacked bar: shares of the whole width, colours, and the text of each part under the pointer."""
    shown = [(share, colour, text) for share, colour, text in parts if share >= LEAST]
    inner = "".join(
        f'<i style="width:{100 * share:.3f}%;background:{colour}" title="{escape(text)}"></i>'
        for share, colour, text in shown
    )
    return f'<div class="bars" role="img" aria-label="{escape("; ".join(text for _, _, text in shown))}">{inner}</div>'


def legend(items: Iterable[tuple[str, str]]) -> str:
    """The meanings of colours."""
    inner = "".join(f'<li><i class="dot" style="background:{colour}"></i>{escape(name)}</li>' for name, colour in items)
    return f'<ul class="legend">{inner}</ul>'


def flow_colour(at: int) -> str:
    """The colour of a flow."""
    return f"var(--flow-{at % FLOW_COLOURS})"


def cause_colour(cause: str) -> str:
    """The colour of a cause."""
    return f"var(--cause-{cause.replace(' ', '-')}, var(--cause-{OTHER}))"


def judged(change: Change | None, *, up: bool) -> str:
    """A change, coloured by whether it is good: of throughput more is, of latency less."""
    if change is None:
        return "base"
    if change.same:
        return "the same"
    if not change.seen:
        return "about the same"
    text = escape(words.by_how_much(change))
    if change.difference is None:
        return text
    return f'<span class="{"better" if (change.difference > 0) == up else "worse"}">{text}</span>'


def latency(runs: Sequence[Run], found: Sequence[Difference]) -> str:
    """For each flow a bar for each run, as long as its mean latency, split by cause."""
    names = list(dict.fromkeys(name for run in runs for name in run.streams))
    same = [name for name in names if all(is_same(one, name) for one in found)]
    changed = [name for name in names if name not in same]
    notes = []
    if same:
        told = [f"{name} ({ns(mean(runs[0].streams[name]))})" for name in same[:FLOWS_SHOWN]]
        notes.append(f"Unchanged: {', '.join(told)}{', …' if len(same) > FLOWS_SHOWN else ''}.")
    if len(changed) > FLOWS_SHOWN:
        notes.append(f"{len(changed) - FLOWS_SHOWN} more flows are not shown; --json has them.")
    shown = "".join(one_flow(name, runs, found) for name in changed[:FLOWS_SHOWN])
    return shown + "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def is_same(one: Difference, name: str) -> bool:
    """True if a flow takes its time as in the base, to the femtosecond."""
    flow = next((flow for flow in one.flows if flow.name == name), None)
    return flow is not None and flow.before == flow.after


def one_flow(name: str, runs: Sequence[Run], found: Sequence[Difference]) -> str:
    """The bars of a flow, and where its time goes by place."""
    means = {run.name: mean(run.streams.get(name)) for run in runs}
    longest = max(means.values()) or Fraction(1)
    some = next(run.streams[name] for run in runs if name in run.streams)
    causes = causes_of(name, runs)
    rows = []
    for run, one in zip(runs, (None, *found), strict=True):
        stream = run.streams.get(name)
        if stream is None or not stream.transactions:
            said = "not in this run" if stream is None else "no transaction succeeded"
            rows.append(row(run, f'<p class="quiet">{said}</p>', "", base=one is None))
            continue
        times = by_cause(stream.causes)
        parts = [(cause, stream.each(times.get(Cause(cause, ""), 0))) for cause in causes]
        bar = bars((float(fs / longest), cause_colour(cause), f"{cause}: {ns(fs)}") for cause, fs in parts)
        rows.append(row(run, bar, figures(name, run, one), base=one is None))
    used = legend((cause, cause_colour(cause)) for cause in causes)
    return (
        f'<div class="flow"><h3>{escape(name)}<small>{escape(some.what)}</small></h3><ul class="compared-runs">{"".join(rows)}</ul>{used}'
        f"{by_place(name, runs)}</div>"
    )


def mean(stream: Stream | None) -> Fraction:
    """The mean latency of a flow, femtoseconds."""
    return Fraction(0) if stream is None else stream.each(stream.total)


def ns(fs: Fraction) -> str:
    """A time for people."""
    return q.time(float(fs) / FS_PER_NS)


def causes_of(name: str, runs: Sequence[Run]) -> list[str]:
    """The causes that take time of a flow in any of the runs, the largest first."""
    most: dict[str, Fraction] = {}
    for run in runs:
        if (stream := run.streams.get(name)) is not None:
            for cause, fs in by_cause(stream.causes).items():
                most[cause.cause] = max(most.get(cause.cause, Fraction(0)), stream.each(fs))
    return sorted(most, key=lambda cause: -most[cause])


def figures(name: str, run: Run, one: Difference | None) -> str:
    """Mean, p50 and p99 of a flow."""
    cells = []
    for which in ("mean", "p50", "p99"):
        figure = f"{name}.latency.{which}"
        change = None if one is None else one.of(figure)
        cells.append(
            f"<div><dt>{which}</dt><dd>{q.time(run.figures[figure][0])}</dd><small>{judged(change, up=False)}</small></div>"
        )
    return f'<dl class="told">{"".join(cells)}</dl>'


def by_place(name: str, runs: Sequence[Run]) -> str:
    """A table of causes by place, the largest changes first; columns add up."""
    here = [run for run in runs if name in run.streams]
    times = [{cause: run.streams[name].each(fs) for cause, fs in run.streams[name].causes.items()} for run in here]
    causes = list(dict.fromkeys(cause for column in times for cause in column))
    zero = Fraction(0)

    def spread(cause: Cause) -> Fraction:
        return max(column.get(cause, zero) for column in times) - min(column.get(cause, zero) for column in times)

    causes.sort(key=lambda cause: (-spread(cause), cause))
    if not causes:
        return ""
    steps = words.steps_for([spread(cause) for cause in causes], [sum(column.values(), zero) for column in times])
    shown = [steps.rounded([column.get(cause, zero) for cause in causes]) for column in times]
    lines = [line(at_place(cause), [steps.text(column[at]) for column in shown])
             for at, cause in enumerate(causes[:PLACES_SHOWN])]  # fmt: skip
    if (rest := len(causes) - PLACES_SHOWN) > 0:
        lines.append(
            line(
                "1 other" if rest == 1 else f"{rest} others",
                [steps.text(sum(column[PLACES_SHOWN:])) for column in shown],
            )
        )
    lines.append(line("mean", [steps.text(sum(column)) for column in shown], total=True))
    head = table_head(["cause"], [run.name for run in here])
    table = f'<div class="wide-table"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'
    return f"<details><summary>By place, in {steps.unit}</summary>{table}</details>"


def at_place(cause: Cause) -> str:
    """A cause with its colour, its place and the flow in front."""
    behind = f", behind {cause.behind}" if cause.behind else ""
    dot = f'<i class="dot" style="background:{cause_colour(cause.cause)}"></i>'
    return f"{dot}{escape(cause.cause)}<small>{escape(cause.place + behind)}</small>"


def table_head(names: Sequence[str], numbers: Sequence[str]) -> str:
    """The headings of columns of names and of numbers."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f"<thead><tr>{cells}{''.join(f'<th class=number>{escape(name)}</th>' for name in numbers)}</tr></thead>"


def line(name: str, numbers: Sequence[str], *, total: bool = False) -> str:
    """A row; the name is HTML already."""
    cells = "".join(f"<td class=number>{escape(number)}</td>" for number in numbers)
    return f"<tr{' class=sum' if total else ''}><td>{name}</td>{cells}</tr>"


def settings(found: Sequence[Difference]) -> str:
    """The keys that differ from the base, by run."""
    inner = "".join(f"<li><b>{escape(one.after.name)}</b>{keys_of(one)}</li>" for one in found)
    return f'<ul class="limits">{inner}</ul>'


def keys_of(one: Difference) -> str:
    """The keys in which a run differs."""
    if one.settings is None:
        return '<span class="quiet">unknown: an older tlplab wrote the document</span>'
    if not one.settings:
        return '<span class="quiet">nothing</span>'
    lines = [
        f"<li><code>{escape(setting.key)}</code> {value(setting.before)} → <b>{value(setting.after)}</b></li>"
        for setting in one.brief_settings
    ]
    rest = lines[KEYS_SHOWN:]
    hidden = (
        f'<details><summary>{len(rest)} more</summary><ul class="keys-set">{"".join(rest)}</ul></details>'
        if rest
        else ""
    )
    return f'<div><ul class="keys-set">{"".join(lines[:KEYS_SHOWN])}</ul>{hidden}</div>'


def value(setting: object) -> str:
    """A value; a dash where the key is not there."""
    return NOTHING if setting is None else escape(text_of(setting))


def links(runs: Sequence[Run]) -> str:
    """A table of the use of each direction of each link in each run, the largest changes first."""
    ways = [
        {f"{way['from']} → {way['to']}": (link, way) for link in run.result["links"] for way in link["directions"]}
        for run in runs
    ]
    names = list(dict.fromkeys(name for here in ways for name in here))

    def spread(name: str) -> float:
        used = [busy(here[name][1]) if name in here else 0.0 for here in ways]
        return max(used) - min(used)

    busiest = sorted(
        names, key=lambda name: (-round(spread(name), 3), -max(busy(here[name][1]) for here in ways if name in here))
    )
    head = table_head(["direction", *(run.name for run in runs)], [])
    kept = [name for name in names if name in busiest[:WAYS_SHOWN]]
    lines = [f"<tr><th>{escape(name)}</th>{''.join(cell(here.get(name)) for here in ways)}</tr>" for name in kept]
    rest = len(names) - len(kept)
    note = f'<p class="note">{rest} more directions change less.</p>' if rest else ""
    used = legend((text, f"var(--part-{part.replace('_', '-')})") for part, text in PARTS.items())
    return f'<div class="wide-table ways"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>{used}{note}'


def busy(way: Direction) -> float:
    """The part of the time in which something is sent."""
    return 1 - way["utilization"]["idle"]


def cell(found: tuple[Link, Direction] | None) -> str:
    """The use of a direction: a bar, the figure, and its stalls."""
    if found is None:
        return '<td class="quiet">not in this run</td>'
    link, way = found
    use: dict[str, float] = dict(way["utilization"])  # type: ignore[arg-type]
    parts = "".join(
        f'<i style="width:{100 * use[part]:.2f}%;background:var(--part-{part.replace("_", "-")})" title="{text}: {q.percent(use[part])} %"></i>'
        for part, text in PARTS.items() if use[part] >= LEAST
    )  # fmt: skip
    kind = link["bus"] or f"gen{link['generation']} x{link['width']}"
    stalls = [
        f"{q.percent(share)} % for {name.replace('_', ' ')}"
        for name, share in way["stalls"].items()
        if isinstance(share, float) and share >= LEAST
    ]
    waits = f"<small>waits {escape(', '.join(stalls))}</small>" if stalls else ""
    return f'<td><div class="stack">{parts}</div>{q.percent(busy(way))} % <span class="quiet">of {escape(kind)}</span>{waits}</td>'


def limits(runs: Sequence[Run]) -> str:
    """The sentence of each run."""
    inner = "".join(
        f"<li><b>{escape(run.name)}</b><span>{unbroken(escape(spoken(run.limit)))}</span></li>" for run in runs
    )
    return f'<ul class="limits">{inner}</ul>'


def origin(runs: Sequence[Run]) -> str:
    """The facts from which the runs can be made again."""
    told = [
        f"{run.name}: {q.time_fs(run.result['end_fs'] - run.result['start_fs'])} simulated, seed {run.result['seed']}, trace {run.result['trace_hash']}"
        for run in runs
    ]
    versions = " and ".join(dict.fromkeys(run.result["version"] for run in runs))
    lines = "".join(f"<li>{escape(line)}</li>" for line in (*told, f"tlplab {versions}"))
    return f'<ul class="origin">{lines}</ul>'
