"""What experiments can name, in lists of (name, one line)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tlplab import _core, outline
from tlplab.errors import ExperimentError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Entries = list[tuple[str, str]]


def hosts() -> Entries:
    """The host profiles and their titles."""
    return [(name, str(tomllib.loads(text).get("title", ""))) for name, text in _core.hosts()]


def devices() -> Entries:
    """The device models, and how to name one's own."""
    return [*_core.models(), ("FILE.py:CLASS", "A device written in Python")]


def bench_devices() -> Entries:
    """The devices that benchmarks run on, and their titles."""
    return [(name, str(tomllib.loads(text)["title"])) for name, text in _core.bench_devices()]


def nics() -> Entries:
    """The NICs of `tlplab model nic`, and how to name one's own."""
    return [*((name, _core.nic_title(name, text)) for name, text in _core.nics()), ("FILE.toml", "A NIC of your own")]


def metrics() -> Entries:
    """The figures of a point of a study: what each is called, its unit and what it is."""
    return list(_core.metrics())


def experiments(folder: Path | None = None) -> Entries:
    """The experiment files in `folder` (the current one) and in `folder/experiments`, with their titles."""
    folder = folder or Path()
    found = []
    for path in sorted([*folder.glob("*.toml"), *(folder / "experiments").rglob("*.toml")]):
        try:
            found.append((str(path), outline.read(path)["title"]))
        except ExperimentError:
            continue  # some other TOML file, or one that `tlplab check` will explain
    return found


LISTS: dict[str, Callable[[], Entries]] = {
    "hosts": hosts,
    "devices": devices,
    "bench-devices": bench_devices,
    "nics": nics,
    "metrics": metrics,
    "experiments": experiments,
}


def reference() -> str:
    """The page that explains every key of an experiment."""
    return (
        "# Experiment files\n\n"
        "Every key of an experiment file. This page is generated: `make generate`.\n\n"
        + _core.reference().rstrip()
        + "\n"
    )


def figures() -> str:
    """The page that explains every figure of a study."""
    return (
        "# Figures of a study\n\n"
        "Every figure that a point of a study can be asked for ([sweep.md](sweep.md)). In place of a word in capitals is a name: of a flow (a load or a program), of the component below "
        "a link, of a card. This page is generated: `make generate`.\n\n" + _core.metric_reference()
    )
