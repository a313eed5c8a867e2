"""The measurement on the terminal: the targets, the links, and the conclusions."""

from __future__ import annotations

from typing import TextIO

from tlplab import quantities as q
from tlplab.bench.differential.document import Document, Link, address_of, depth_of, machine_of, member
from tlplab.sheet import NOTHING, Column, Sheet
from tlplab.summary import console_for

INDENT = "  "


def show(document: Document, simulated: Document | None, file: TextIO) -> None:
    """Prints it all; `simulated` is the same machine as an experiment."""
    console = console_for(file)
    targets_of(document).print(console)
    if document["links"]:
        console.print()
        links_of(document, simulated).print(console)
    if simulated is not None and not any(is_beside(link, simulated) for link in document["links"]):
        console.print()
        links_of(simulated, None, "Links of the simulated machine, none of them measured here").print(console)
    console.print()
    for sentence in conclusions(document):
        console.print(sentence)


def targets_of(document: Document) -> Sheet:
    """The targets as a tree, and how long a read of each takes."""
    columns = [
        Column("target", name=True, fold=False),
        Column("read", name=True, fold=False),
        *(Column(heading) for heading in ("samples", "minimum", "median", "99 %", "std")),
    ]
    sheet = Sheet(heading(document), columns)
    for target in document["targets"]:
        figures = (target["min_ns"], *(target["quantiles_ns"].get(name) for name in ("p50", "p99")), target["std_ns"])
        sheet.add(
            INDENT * depth_of(target, document) + target["name"],
            target["register"].replace("configuration", "config"),
            f"{target['samples']}",
            *(time_of(figure) for figure in figures),
        )
    return sheet


def heading(document: Document) -> str:
    """The machine that was read, and the clock."""
    clock = document["clock"]
    machine = machine_of(document)
    where = f"this machine, core {machine['core']}" if machine is not None else "the simulator"
    step = f"in steps of {q.time(clock['step_ns'], 3)}"
    return f"Reads of one doubleword on {where}, timed by {clock['source']} {step}"


LINKS = "Links: minimum of the far end minus minimum of the near end"


def links_of(document: Document, simulated: Document | None, title: str = LINKS) -> Sheet:
    """The links: the differences of minima, and their confidence."""
    columns = [
        Column("link, round trip", name=True),
        Column("latency"),
        Column("±"),
        Column("verdict"),
        Column("simulated"),
    ]
    sheet = Sheet(title, columns)
    beside = {} if simulated is None else by_far_end(simulated)
    for link in document["links"]:
        other = beside.get(address_of(link["far"]))
        sheet.add(
            link["name"],
            time_of(link["latency_ns"]),
            time_of(link["resolution_ns"]),
            link["verdict"],
            NOTHING if other is None else time_of(other["latency_ns"]),
        )
    return sheet


def is_beside(link: Link, simulated: Document) -> bool:
    """True if a link of this machine has a latency here and in the simulation."""
    return link["latency_ns"] is not None and address_of(link["far"]) in by_far_end(simulated)


def by_far_end(document: Document) -> dict[str, Link]:
    """The links by the address of the function at the far end."""
    return {address_of(link["far"]): link for link in document["links"]}


def conclusions(document: Document) -> list[str]:
    """The conclusions from the reads, and their limits, a sentence each."""
    sentences = []
    call = member(document, "system_call_ns")
    if call is not None:
        sentences.append(
            f"A configuration read is a system call, which takes {q.time(call, 3)} without a read; "
            "this time cancels in the differences."
        )
    links = document["links"]
    machine = machine_of(document)
    refusal = None if machine is None else machine["refusal"]
    if refusal is not None:
        sentences.append(f"Link latencies are not available here: {refusal}.")
        sentences.append("The table above shows the time of each read as a program on this machine sees it.")
    elif not links:
        sentences.append("No function is below a bridge, so no link has a target at both ends.")
    else:
        good = sum(link["verdict"] == "measured" for link in links)
        sentences.append(f"{good} of {len(links)} differences measured.")
        sentences += sorted({f"{link['name']}: {link['note']}." for link in links if link["note"]})
    sentences += [f"{note}." for note in member(document, "notes") or []]
    return sentences


def time_of(nanoseconds: float | None) -> str:
    """A duration, or that there is none."""
    return NOTHING if nanoseconds is None else q.time(nanoseconds)
