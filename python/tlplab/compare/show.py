"""Differences of runs, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from tlplab.compare import words
from tlplab.compare.difference import Change, Difference, FlowDifference, Setting, text_of
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import print_hanging, spoken, wrapped

# Of the run, and of each flow, in a table of several alternatives.
RUN_FIGURES = ("throughput",)
FLOW_FIGURES = ("throughput", "latency.mean", "latency.p50", "latency.p99")
PARTS_SHOWN = 6
SETTINGS_SHOWN = 24
LINK_ROWS_SHOWN = 24
HEADING_WIDTH = 22
FLOWS_SHOWN = 8
FIGURES_SHOWN = 60
# Left out first, where there are many.
DETAILS = (".transactions", ".min", ".p50", ".p90", ".p999", ".max")
# Figures that others say already.
SAID_ELSEWHERE = ("lanes", "generation", "bytes")


def show(console: Console, found: Difference, *, every: bool) -> None:
    """All of how two runs differ."""
    before, after = found.before, found.after
    console.print(Text(f"{before.name} → {after.name}", style="bold"))
    for line in circumstances(found):
        console.print(Text(wrapped(console, line), style="dim"))
    if found.same or found.figures_same:
        console.print("no differences" if found.same else "no figures differ")
    console.print()
    show_settings(console, found, every=every)
    show_limit(console, found)
    show_figures(console, found, every=every)
    changed = flows_by_change(found)
    for flow in found.flows if every else [flow for flow in found.flows if flow in changed[:FLOWS_SHOWN]]:
        show_flow(console, flow, (before.name, after.name), every=every)
    if not every:
        say_more(console, len(changed) - FLOWS_SHOWN, "flows whose latency changes")
    show_links(console, found, every=every)
    show_only(console, found)


def flows_by_change(found: Difference) -> list[FlowDifference]:
    """The flows whose causes change, ordered by the relative change of their mean latency."""
    changed = [flow for flow in found.flows if any(part.difference for part in flow.parts)]
    return sorted(changed, key=lambda flow: -abs(flow.mean.difference / (flow.mean.before or 1)))


def circumstances(found: Difference) -> list[str]:
    """The circumstances that impair a comparison of two designs."""
    one, other = found.before.result, found.after.result
    lines = []
    if one["version"] != other["version"]:
        lines.append(f"by versions {one['version']} and {other['version']} of tlplab, which may simulate differently")
    if one["seed"] != other["seed"]:
        lines.append(f"seeds {one['seed']} and {other['seed']}: differences may be due to chance")
    if not found.limits_alike:
        lines.append("the limit of one side was found by further runs, that of the other by its figures alone")
    for run in (found.before, found.after):
        if run.result["stop_reason"] in ("interrupted", "failed", "time-limit", "stuck"):
            lines.append(f"{run.name} ended early ({run.result['stop_text']})")
    return lines


def show_settings(console: Console, found: Difference, *, every: bool) -> None:
    """The keys that differ."""
    if found.settings is None:
        console.print(Text("a document has no settings: an older tlplab wrote it", style="dim"))
        console.print()
        return
    if not found.settings:
        return
    settings = found.settings if every else found.brief_settings
    shown = settings if every else settings[:SETTINGS_SHOWN]
    names = (Column(run.name, name=True) for run in (found.before, found.after))
    sheet = Sheet("Settings", [Column("key", name=True), *names])
    for one in shown:
        sheet.add(one.key, *values_of(one))
    sheet.print(console)
    say_more(console, len(settings) - len(shown), "keys")
    console.print()


def values_of(setting: Setting) -> tuple[str, str]:
    """Both values of a key; a dash where it is not there."""
    before, after = (NOTHING if value is None else text_of(value) for value in (setting.before, setting.after))
    return before, after


def show_limit(console: Console, found: Difference) -> None:
    """Print the limits before and after."""
    if found.before.limit == found.after.limit:
        print_hanging(console, "=", f"The limit is unchanged: {spoken(found.before.limit)}")
    else:
        console.print(Text("Limits", style="bold"))
        for run in (found.before, found.after):
            print_hanging(console, "•", f"{run.name}: {spoken(run.limit)}")
    console.print()


def show_figures(console: Console, found: Difference, *, every: bool) -> None:
    """Figures of the run, its flows, its host, its networks and programs."""
    links = {link["lower"] for run in (found.before, found.after) for link in run.result["links"]}
    rows = [change for change in found.changes if worth(change, every=every) and not is_of_link(change.name, links)]
    if not every and len(rows) > FIGURES_SHOWN:
        kept = [row for row in rows if not row.name.endswith(DETAILS)][:FIGURES_SHOWN]
        print_changes(console, "Figures", found, kept)
        say_more(console, len(rows) - len(kept), "figures")
        return
    print_changes(console, "Figures", found, rows)


def is_of_link(name: str, links: set[str]) -> bool:
    """True for a figure of a link, and not of a flow with the same name."""
    owner, _, figure = name.partition(".")
    return owner in links and (
        figure in ("lanes", "generation", "mps", "utilisation") or figure.startswith(("up.", "down."))
    )


def worth(change: Change, *, every: bool) -> bool:
    """True if a figure is shown: it has changed, and both sides have it."""
    return every or (change.seen and change.difference is not None and not change.name.endswith(SAID_ELSEWHERE))


def print_changes(console: Console, title: str, found: Difference, rows: Sequence[Change]) -> None:
    """A line for each figure, and one more blank between different flows or links."""
    if not rows:
        return
    sheet = Sheet(title, [
        Column("figure", name=True), Column(found.before.name), Column(found.after.name, style="bold"),
        Column("change"), Column("%"),
    ])  # fmt: skip
    for at, change in enumerate(rows):
        following = rows[at + 1].name.partition(".")[0] if at + 1 < len(rows) else ""
        values = words.figure(change.before, change.unit), words.figure(change.after, change.unit)
        shares = change.unit == "%" or not change.share
        sheet.add(
            change.name, *values, words.by_how_much(change) if change.unit == "%" else words.difference(change),
            NOTHING if shares else words.percent(change.share or 0.0).removesuffix(" %"),
            ends_section=following != change.name.partition(".")[0] and "." in change.name,
        )  # fmt: skip
    sheet.print(console)
    console.print()


def show_flow(console: Console, flow: FlowDifference, names: tuple[str, str], *, every: bool) -> None:
    """Print the changes of a flow's time: by cause in a sentence, by place in a table."""
    if not every and not any(part.difference for part in flow.parts):
        return
    console.print(Text(wrapped(console, sentence(flow)), style="bold"))
    wanted = [part for part in flow.parts if every or part.difference]
    shown = wanted if every else wanted[:PARTS_SHOWN]
    rest = [part for part in flow.parts if part not in shown]
    mean = flow.mean
    steps = words.steps_for([part.difference for part in flow.parts], [mean.before, mean.after])
    sheet = Sheet(f"Time of each transaction, {steps.unit}", [
        Column("cause", name=True), Column("at", name=True), Column("behind", name=True),
        Column(names[0]), Column(names[1]), Column("change", style="bold"),
    ])  # fmt: skip
    before = steps.rounded([part.before for part in flow.parts])
    change = steps.rounded([part.difference for part in flow.parts])
    numbers = dict(zip(flow.parts, zip(before, change, strict=True), strict=True))

    def add(name: str, at: str, behind: str, one: int, more: int) -> None:
        sheet.add(name, at, behind, steps.text(one), steps.text(one + more), steps.text(more, sign=True))

    for part in shown:
        add(part.cause.cause, part.cause.place, part.cause.behind, *numbers[part])
    if rest:
        add(
            "1 other" if len(rest) == 1 else f"{len(rest)} others",
            "",
            "",
            *(sum(numbers[part][n] for part in rest) for n in (0, 1)),
        )
    add("mean", "", "", sum(before), sum(change))
    sheet.print(console)
    console.print()


def sentence(flow: FlowDifference) -> str:
    """`nic: p50 +312 ns; mean +280 ns = queueing +250, tag wait +40, serialisation −10`."""
    one, other = flow.before.latency, flow.after.latency
    if one is None or other is None:
        return f"{flow.name}: no transaction succeeded {'before' if one is None else 'after'}"
    p50 = words.difference(Change("p50", "ns", one["p50"], other["p50"]))
    parts = [(part.cause.cause, part.difference) for part in flow.causes if part.difference]
    return f"{flow.name}: p50 {p50}; {words.sum_of(flow.mean.difference, parts)}"


def show_links(console: Console, found: Difference, *, every: bool) -> None:
    """Print the changes of links: their use and their stalls."""
    links = {link["lower"] for run in (found.before, found.after) for link in run.result["links"]}
    rows = [change for change in found.changes if is_of_link(change.name, links) and worth(change, every=every)]
    shown = rows if every else [row for row in rows if not row.name.endswith((".tlps", ".ordered_sets"))]
    cut = shown if every else sorted(shown, key=weight, reverse=True)[:LINK_ROWS_SHOWN]
    kept = [row for row in shown if row in cut]
    print_changes(console, "Links: shares of the time", found, kept)
    say_more(console, len(rows) - len(kept), "figures of links")


def weight(change: Change) -> float:
    """The importance of a figure of a link."""
    return abs(change.difference or 0.0) if change.unit == "%" else 1.0


def show_only(console: Console, found: Difference) -> None:
    """Flows and links that only one side has."""
    for what, sides in found.only.items():
        for run, names in ((found.before, sides["before"]), (found.after, sides["after"])):
            if names:
                named = what if len(names) > 1 else what.removesuffix("s")
                console.print(Text(wrapped(console, f"only in {run.name}: {named} {', '.join(names)}")))


def say_more(console: Console, hidden: int, what: str) -> None:
    """Says that a table was cut."""
    if hidden > 0:
        console.print(Text(f"… and {hidden} more {what}: --all shows them", style="dim"))


def show_several(console: Console, found: Sequence[Difference], *, every: bool) -> None:
    """Print the changes of several alternatives, side by side."""
    base = found[0].before
    console.print(Text(f"{base.name}, and {len(found)} alternatives", style="bold"))
    for one in found:
        for line in circumstances(one):
            console.print(Text(wrapped(console, f"{one.after.name}: {line}"), style="dim"))
    console.print()
    show_what_is_set(console, found)
    show_table(console, found, every=every)
    show_causes(console, found, every=every)
    console.print(Text("Limits", style="bold"))
    for run in (base, *(one.after for one in found)):
        print_hanging(console, "•", f"{run.name}: {spoken(run.limit)}")
    for one in found:
        show_only(console, one)


def show_what_is_set(console: Console, found: Sequence[Difference]) -> None:
    """The keys in which each alternative differs from the base."""
    sheet = Sheet("Settings", [
        Column("alternative", name=True), Column("key", name=True), Column(found[0].before.name, name=True),
        Column("new value", name=True),
    ])  # fmt: skip
    for one in found:
        settings = one.brief_settings
        for at, setting in enumerate(settings[:SETTINGS_SHOWN]):
            last = at + 1 == min(len(settings), SETTINGS_SHOWN)
            sheet.add("" if at else one.after.name, setting.key, *values_of(setting), ends_section=last)
        if not settings:
            said = "no differences" if one.settings is not None else "unknown: an older tlplab wrote it"
            sheet.add(one.after.name, said, "", "", ends_section=True)
    sheet.print(console)
    for one in found:
        say_more(console, len(one.brief_settings) - SETTINGS_SHOWN, f"keys of {one.after.name}")
    console.print()


def heading(name: str) -> str:
    """The name of a run above its column, in lines that are not too long."""
    return "\n".join(wrap(name, HEADING_WIDTH, break_on_hyphens=False)) or name


def rows_of(found: Sequence[Difference], *, every: bool) -> list[str]:
    """The figures that stand in a table of alternatives."""
    flows = list(dict.fromkeys(name for one in found for run in (one.before, one.after) for name in run.streams))
    names = [*RUN_FIGURES, *(f"{flow}.{figure}" for flow in flows for figure in FLOW_FIGURES)]
    known = [name for name in names if any(name in run.figures for one in found for run in (one.before, one.after))]
    return [name for name in known if every or any(at(one, name).seen for one in found)]


def at(one: Difference, name: str) -> Change:
    """A figure of a comparison, which neither side may have."""
    return next((change for change in one.changes if change.name == name), Change(name, "1", None, None))


def show_table(console: Console, found: Sequence[Difference], *, every: bool) -> None:
    """Figures of the base and of each alternative, with the change."""
    names = rows_of(found, every=every)
    sheet = Sheet("Figures", [
        Column("figure", name=True), Column(found[0].before.name),
        *(Column(heading(one.after.name)) for one in found),
    ])  # fmt: skip
    for number, name in enumerate(names):
        changes = [at(one, name) for one in found]
        cells = [f"{words.figure(change.after, change.unit)} {words.by_how_much(change):>8}" for change in changes]
        following = names[number + 1].rpartition(".")[0] if number + 1 < len(names) else ""
        sheet.add(
            name, words.figure(changes[0].before, changes[0].unit), *cells,
            ends_section=name.partition(".")[0] != following.partition(".")[0],
        )  # fmt: skip
    if names:
        sheet.print(console)
        console.print()
    elif not every:
        console.print("no alternative changes throughput or latency")
        console.print()


def show_causes(console: Console, found: Sequence[Difference], *, every: bool) -> None:
    """The mean latency of each flow in each alternative, by cause."""
    flows = list(dict.fromkeys(flow.name for one in found for flow in one.flows))
    for name in flows:
        here = {one.after.name: flow for one in found for flow in one.flows if flow.name == name}
        if not every and not any(part.difference for flow in here.values() for part in flow.causes):
            continue
        any_flow = next(iter(here.values()))
        causes = list(
            dict.fromkeys(
                part.cause.cause
                for flow in here.values()
                for part in sorted(flow.causes, key=lambda part: -part.before)
            )
        )
        steps = words.steps_for([part.difference for flow in here.values() for part in flow.causes],
                                [flow.mean.before for flow in here.values()])  # fmt: skip
        columns = {found[0].before.name: {part.cause.cause: part.before for part in any_flow.causes}}
        columns |= {of: {part.cause.cause: part.after for part in flow.causes} for of, flow in here.items()}
        sheet = Sheet(f"Time of each transaction of {name}, {steps.unit}", [
            Column("cause", name=True), *(Column(heading(of)) for of in columns),
        ])  # fmt: skip
        shown = {
            of: steps.rounded([times.get(cause, Fraction(0)) for cause in causes]) for of, times in columns.items()
        }
        for number, cause in enumerate(causes):
            sheet.add(cause, *(steps.text(times[number]) if times[number] else NOTHING for times in shown.values()))
        sheet.add("mean", *(steps.text(sum(times)) for times in shown.values()))
        sheet.print(console)
        console.print()
