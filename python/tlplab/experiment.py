"""An experiment made of objects: the content of an experiment file, written in Python.

    >>> import tlplab as tl
    >>> e = tl.Experiment(title="One writer", stop="20us")
    >>> _ = e.device("ssd", under="host.rp0", link="gen4 x4").load("ssd", op="write", size="4KiB")
    >>> tl.run(e).sentence                                                    # doctest: +ELLIPSIS
    'The link ssd → host.rp0 limits the run...'

An `Experiment` keeps the tree that the file would have, and the line of the program that said each part. The simulator reads it as TOML, so that keys, defaults and
messages are those of files (docs/experiments.md); the place of a mistake is the line of the program.
"""

from __future__ import annotations

import copy
import inspect
import json
import keyword
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from tlplab import _core
from tlplab.catalog import find_experiment
from tlplab.device import Device
from tlplab.errors import ExperimentError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What stands for the file in messages that point at a second place, which is a line of `to_toml`.
NAME = "Experiment.to_toml()"
OWN = str(Path(__file__).parent) + os.sep

Place: TypeAlias = "tuple[str, int | None]"
Driver: TypeAlias = "Callable[..., Any]"
Model: TypeAlias = "str | Device | type[Device]"
Path_: TypeAlias = "tuple[str, ...]"


class Experiment:
    """A topology, its loads and its end, for `tl.run`.

    Methods have the names of the tables in experiment files and take their keys; each returns the experiment. A key that is a word of Python ends in an
    underscore: `from_`. Whether keys and values are right is checked when the experiment is run, or by `check`.
    """

    def __init__(self, **keys: Any) -> None:
        """Keys of the file outside of tables, or whole tables: `title="…", stop="200us", host={"profile": "server"}`."""
        self._tree: dict[str, Any] = {}
        self._places: dict[Path_, Place] = {}
        self._objects: dict[str, tuple[Device | type[Device] | None, Driver | None]] = {}
        self._folder = Path()
        self._source: tuple[str, str] | None = None
        self._note(())
        self._put((), keys)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Experiment:
        """The experiment in a file, or one of tlplab's own by name. Names of files in it stay relative to its folder. Raises `ExperimentError`, `OSError`."""
        found = find_experiment(os.fspath(path))
        return cls.parse(Path(found).read_text(encoding="utf-8"), found)

    @classmethod
    def parse(cls, text: str, path: str = NAME) -> Experiment:
        """The experiment that a TOML text describes; names of files are relative to the folder of `path`. Raises `ExperimentError`."""
        made = cls()
        try:
            made._tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ExperimentError(path, None, None, "", f"this is not TOML: {error}") from None
        made._folder = Path(path).parent
        made._source = (path, text)
        return made

    def switch(self, name: str, **keys: Any) -> Experiment:
        """A switch: `e.switch("sw0", under="host.rp0", link="gen4 x4")`."""
        return self._put(("switch", name), keys)

    def bus(self, name: str, **keys: Any) -> Experiment:
        """A bridge and the parallel bus below it."""
        return self._put(("bus", name), keys)

    def device(
        self, name: str, model: Model | None = None, *, driver: str | Driver | None = None, **keys: Any
    ) -> Experiment:
        """A device. `model` is the name of one, or a device in Python: an object, which is used as it is, or its class, of which each run makes one.

        `driver` is a function of the host and the device, or names one (`"copier.py:driver"`).
        """
        device = None
        if isinstance(model, Device) or (isinstance(model, type) and issubclass(model, Device)):
            device, model = model, _named_in_file(model if isinstance(model, type) else type(model))
        elif model is not None and not isinstance(model, str):
            raise TypeError(f"{model!r} is not a device; give the name of a model, a tl.Device, or its class")
        function = None
        if driver is not None and not isinstance(driver, str):
            function, driver = driver, _named_in_file(driver)
        said = {"model": model, "driver": driver}
        self._put(("device", name), {**{key: value for key, value in said.items() if value is not None}, **keys})
        if device is not None or function is not None:
            self._objects[name] = (device, function)
        return self

    def link(self, name: str, **keys: Any) -> Experiment:
        """More of the link above a component."""
        return self._put(("link", name), keys)

    def load(self, name: str, **keys: Any) -> Experiment:
        """A load: `e.load("ssd", op="write", size="4KiB")`."""
        return self._put(("load", name), keys)

    def machine(self, name: str, **keys: Any) -> Experiment:
        """Add a machine with a Linux guest to an experiment of several machines."""
        return self._put(("machine", name), keys)

    def cable(self, name: str, **keys: Any) -> Experiment:
        """A cable between two NICs of machines."""
        return self._put(("cable", name), keys)

    def fault(self, **keys: Any) -> Experiment:
        """A fault: `e.fault(link="ssd", direction="up", tlp=3, damage="drop")`."""
        faults = self._tree.setdefault("fault", [])
        self._note(("fault", str(len(faults))))
        faults.append(_values(keys))
        return self

    def expect(self, **keys: Any) -> Experiment:
        """Set expected figures of the run, for `tlplab expect`."""
        return self._put(("expect",), keys)

    def set(self, key: str, value: Any) -> Experiment:
        """Sets a key by its dotted name, as `--set` does: `e.set("host.memory.latency", "90ns")`."""
        *tables, last = key.split(".")
        if not all((*tables, last)):
            raise ValueError(
                f"{key!r} is not a key; write the names of tables and a key with dots between: host.memory.latency"
            )
        return self._put(tuple(tables), {last: value})

    def copy(self) -> Experiment:
        """Another experiment that says the same, to change it. Devices that are objects are the same objects."""
        made = type(self)()
        made._tree, made._places = copy.deepcopy(self._tree), dict(self._places)
        made._objects, made._folder, made._source = dict(self._objects), self._folder, self._source
        return made

    def to_toml(self) -> str:
        """The experiment as a file has it. A device that is an object is there by the file and name of its class."""
        return tomli_w.dumps(self._tree)

    def check(self, *, overrides: Sequence[str] = ()) -> Experiment:
        """Raises `ExperimentError` for mistakes in the experiment."""
        self.settings(overrides=overrides)
        return self

    def settings(self, *, overrides: Sequence[str] = ()) -> dict[str, Any]:
        """The experiment's settings: each key with its value, defaults of devices, switches and loads included. Raises `ExperimentError`."""
        with self.places():
            try:
                read = json.loads(_core.check(self.path, text=self.to_toml(), overrides=list(overrides)))
            except ExperimentError as error:
                raise error.of_overrides("overrides") from None
        settings: dict[str, Any] = read["settings"]
        return settings

    def __repr__(self) -> str:
        tables = ("switch", "bus", "device", "load")
        parts = [
            f"{len(self._tree[table])} {table}{'s' * (len(self._tree[table]) > 1)}"
            for table in tables
            if table in self._tree
        ]
        return f"<experiment {self._tree.get('title', '')!r}: {', '.join(parts) or 'empty'}>"

    # What `tl.run` needs.

    @property
    def path(self) -> str:
        """A path in place of the experiment's file: names of files are relative to its folder."""
        return str(self._folder / NAME)

    def objects(self) -> dict[str, tuple[Device | None, Driver | None]]:
        """The devices and drivers that are objects; of a class a new one."""
        return {
            name: (device() if isinstance(device, type) else device, driver)
            for name, (device, driver) in self._objects.items()
        }

    def devices(self) -> dict[str, Device | type[Device]]:
        """The devices in Python: objects, or their classes."""
        return {name: device for name, (device, _) in self._objects.items() if device is not None}

    @contextmanager
    def places(self) -> Iterator[None]:
        """Mistakes that are found meanwhile have the place in the program, or in the file that was read."""
        try:
            yield
        except ExperimentError as error:
            if error.file != self.path:
                raise
            found = self._placed(error)
            found.others = tuple(self._placed(other) for other in error.others)
            raise found from None

    def _placed(self, error: ExperimentError) -> ExperimentError:
        if error.file != self.path:
            return error
        key = tuple(error.key.split(".")) if error.key else ()
        known = next((self._places[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self._places), None)
        if known is None and self._source is not None:
            return self._in_file(error)
        file, line = known or self._places[()]
        return ExperimentError(file, line, None, error.key, error.message, error.hint)

    def _in_file(self, error: ExperimentError) -> ExperimentError:
        """The same mistake where the file has it, whose lines `to_toml` does not keep."""
        assert self._source is not None
        path, text = self._source
        try:
            _core.check(path, text=text)
        except ExperimentError as first:
            for one in (first, *first.others):
                if (one.key, one.message) == (error.key, error.message):
                    return one
        return ExperimentError(path, None, None, error.key, error.message, error.hint)

    def _put(self, tables: Path_, keys: Mapping[str, Any]) -> Experiment:
        """Adds keys to a table, with their origin."""
        table = self._tree
        for depth, name in enumerate(tables, 1):
            if name not in table:
                table[name] = {}
                self._note(tables[:depth])
            table = table[name]
            if not isinstance(table, dict):
                raise ValueError(
                    f"{'.'.join(tables[:depth])} is {table!r}, and no table that could have {'.'.join(tables[depth:] or keys)}"
                )
        for key, value in _values(keys).items():
            table[key] = value
            self._note((*tables, key))
        return self

    def _note(self, key: Path_) -> None:
        self._places[key] = _caller()


def of_device(device: Device, driver: Driver | None, *, link: str, host: str, stop: str | None) -> Experiment:
    """The experiment that `tl.simulate` runs: a device, called `device`, below a root port."""
    experiment = Experiment(title=f"{type(device).__name__}, simulated", host=host)
    if stop is not None:
        experiment.set("stop", stop)
    return experiment.device("device", device, driver=driver, under="host.rp0", link=link)


def _values(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys and values as a file can have them."""
    return {_key(key): _value(key, value) for key, value in keys.items()}


def _key(name: str) -> str:
    return name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name


def _value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return _values(value)
    if isinstance(value, list | tuple):
        return [_value(key, one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, str | int | float):
        raise TypeError(
            f"{key} is {value!r}; a file can say texts, numbers, True and False, lists and tables of them. Leave out a key that is to have its default"
        )
    return value


def _named_in_file(thing: Any) -> str:
    """A class or function as an experiment file names it."""
    name = thing.__name__ if isinstance(getattr(thing, "__name__", None), str) else type(thing).__name__
    try:
        file = inspect.getsourcefile(inspect.unwrap(thing)) or ""
    except (TypeError, OSError):
        file = ""
    # What was made in a notebook is in no file, and a file may have any name.
    named = name if name.isidentifier() else "driver"
    return f"{file if file.endswith('.py') else 'python.py'}:{named}"


def _caller() -> Place:
    """The line that called from outside of tlplab."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
