"""The names that experiments can use, in lists of (name, one line)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
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
    """The figures of a point of a study: the name, unit and meaning of each."""
    return list(_core.metrics())


def experiments(folder: Path | None = None) -> Entries:
    """The experiment files in `folder` (the current one) and in `folder/experiments`, and those of tlplab by name, with their titles."""
    folder, own = folder or Path(), shipped()
    found = titled(
        (str(path), path) for path in sorted([*folder.glob("*.toml"), *(folder / "experiments").rglob("*.toml")])
    )
    if own is None or own.resolve() == (folder / "experiments").resolve():
        return found
    return [*found, *titled((name_of(path, own), path) for path in sorted(own.rglob("*.toml")))]


def titled(paths: Iterable[tuple[str, Path]]) -> Entries:
    """The entries of the files that are experiments."""
    found = []
    for name, path in paths:
        try:
            found.append((name, outline.read(path)["title"]))
        except ExperimentError:
            continue  # some other TOML file, or one that `tlplab check` will explain
    return found


def shipped() -> Path | None:
    """The folder of tlplab's own experiments: in the package, if that is installed from a wheel, or in the clone."""
    package = Path(__file__).parent
    folders = (package / "experiments", package.parents[1] / "experiments")
    return next((folder for folder in folders if (folder / "quickstart.toml").is_file()), None)


def name_of(path: Path, folder: Path) -> str:
    """An experiment of a folder by name: `quickstart`, `p2p/acs`."""
    return path.relative_to(folder).with_suffix("").as_posix()


def find_experiment(given: str) -> str:
    """The file that `given` names: itself, or one of tlplab's own experiments, as `quickstart` or `experiments/quickstart.toml`.

    A name that is neither is given back; its reader then reports it.
    """
    own, path = shipped(), Path(given)
    if own is None or path.exists() or path.is_absolute() or ".." in path.parts:
        return given
    found = own / f"{given.removeprefix('experiments/').removesuffix('.toml')}.toml"
    return str(found) if found.is_file() else given


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
        "The figures that a study can show for its points ([sweep.md](sweep.md)). A word in capitals stands for a name: of a flow (a load or a program), of the component below "
        "a link, of a card. This page is generated: `make generate`.\n\n" + _core.metric_reference()
    )
