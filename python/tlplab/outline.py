"""The parts of an experiment, read but not run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, TextIO, TypedDict, cast

from rich.text import Text
from rich.tree import Tree

from tlplab import _core
from tlplab import quantities as q
from tlplab.summary import console_for


class Component(TypedDict):
    """A switch, a bus (its model is its mode) or a device; `under` is a switch, a bus or a root port. On a bus there is no link."""

    name: str
    under: str
    link: str | None
    model: str


class Load(TypedDict):
    """A load: the device that issues it, its target, and its work in a few words."""

    name: str
    device: str
    target: str
    work: str


class Guest(TypedDict):
    """A Linux guest: the script that it runs and the files that it finds, with the experiment's folder."""

    run: str | None
    files: list[str]


class Outline(TypedDict):
    """An experiment in short."""

    title: str
    seed: int
    host: str
    settings: dict[str, Any]
    """Each key with its value, defaults of devices, switches and loads included."""
    guest: Guest | None
    components: list[Component]
    loads: list[Load]
    files: list[str]


class Cable(TypedDict):
    """A cable between two NICs: each end has the number of a machine and the NIC's name."""

    name: str
    ends: list[tuple[int, str]]
    delay_fs: int


class Machine(TypedDict):
    """A machine of an experiment with several."""

    name: str
    outline: Outline


class Guests(TypedDict):
    """The experiment of a guest (`outline`), or the machines and cables of several."""

    outline: Outline | None
    machines: list[Machine]
    cables: list[Cable]


def read_guests(experiment: str | os.PathLike[str], *, overrides: Sequence[str] = ()) -> Guests:
    """The outline of the experiment of a guest, or of several. Raises `ExperimentError`."""
    return cast(Guests, json.loads(_core.check_guests(os.fspath(experiment), overrides=overrides)))


def read(
    experiment: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    load: str | None = None,
    loads_follow: bool = False,
) -> Outline:
    """The outline of an experiment file, which may have no load if `loads_follow`. Raises `ExperimentError`."""
    found = _core.check(os.fspath(experiment), overrides=overrides, load=load, loads_follow=loads_follow)
    return cast(Outline, json.loads(found))


def show(outline: Outline, stream: TextIO) -> None:
    """Prints the topology as a tree."""
    console = console_for(stream)
    console.print(Text(outline["title"], style="bold"))
    host = Tree(Text(outline["host"]), guide_style="dim")
    ports = sorted({c["under"] for c in outline["components"]} - {c["name"] for c in outline["components"]})
    for port in ports:
        add_below(host.add(Text(port)), port, outline)
    console.print(host)
    for load in outline["loads"]:
        if load["device"] == outline["host"]:
            console.print(Text(f"{outline['host']}  {load['work']} → {load['target']}"))
    for path in outline["files"]:
        console.print(Text(f"reads {path}", style="dim"))


def show_machines(guests: Guests, stream: TextIO) -> None:
    """Prints the topology of each machine as a tree, then the cables between them."""
    names = [machine["name"] for machine in guests["machines"]]
    for machine in guests["machines"]:
        show(machine["outline"], stream)
    console = console_for(stream)
    for cable in guests["cables"]:
        one, other = (f"{names[machine]}.{device}" for machine, device in cable["ends"])
        what = f"  {one} – {other}, {q.time_fs(cable['delay_fs'])}"
        console.print(Text.assemble("cable ", (cable["name"], "bold"), what))


def add_below(tree: Tree, name: str, outline: Outline) -> None:
    """Adds everything under `name`, with the loads of each device."""
    for component in outline["components"]:
        if component["under"] != name:
            continue
        link = "" if component["link"] is None else f"  {component['link']}"
        label = Text.assemble((component["name"], "bold"), link, (f"  {component['model']}", "dim"))
        for load in outline["loads"]:
            if load["device"] == component["name"]:
                label.append(f"  {load['work']} → {load['target']}")
        add_below(tree.add(label), component["name"], outline)
