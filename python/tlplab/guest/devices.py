"""The devices of an ordinary guest, as its command line names them: `examples/python/copier.py:Copier`, `lib:FILE.so`, `nvme,size=1GiB`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from tlplab import _core
from tlplab.loader import LoadError, load_device, parameter, told

NVME_BYTES = "64MiB"


@dataclass(frozen=True)
class DeviceOfGuest:
    """A device, and how it is served on a Unix socket."""

    name: str
    start: Callable[[str], _core.VfioServer]


def device_of(text: str) -> DeviceOfGuest:
    """The device that `NAME[,KEY=VALUE…]` describes. Raises `click.UsageError`."""
    name, *pairs = text.split(",")
    try:
        parameters = dict(map(parameter, pairs))
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from None
    if name == "nvme":
        return nvme(text, parameters)
    if name.startswith("lib:"):
        path = name.removeprefix("lib:")
        texts = {key: told(value) for key, value in parameters.items()}
        return DeviceOfGuest(
            Path(path).stem, lambda socket: started(text, lambda: _core.VfioServer.library(socket, path, texts))
        )
    if ":" in name:
        path, _, wanted = name.rpartition(":")
        try:
            party = load_device(path, wanted, json.dumps(parameters))
        except LoadError as error:
            raise click.UsageError(f"{path}: {error}") from error
        return DeviceOfGuest(wanted, lambda socket: _core.VfioServer.python(socket, party))
    raise click.UsageError(f"there is no device {name!r}; there are nvme, FILE.py:CLASS and lib:FILE.so")


def nvme(text: str, parameters: Mapping[str, object]) -> DeviceOfGuest:
    """A drive, of `size` bytes."""
    unknown = sorted(parameters.keys() - {"size"})
    if unknown:
        raise click.UsageError(f"{text}: nvme has no {unknown[0]}; it has size, as in nvme,size=1GiB")
    size = str(parameters.get("size", NVME_BYTES))
    return DeviceOfGuest("nvme", lambda path: started(text, lambda: _core.VfioServer.nvme(path, _core.size(size))))


def started(text: str, start: Callable[[], _core.VfioServer]) -> _core.VfioServer:
    """What `start` starts. Raises `click.UsageError` for parameters that cannot be."""
    try:
        return start()
    except ValueError as error:
        raise click.UsageError(f"{text}: {error}") from error
