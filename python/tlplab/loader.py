"""Devices and drivers from Python files, as `model = "mydev.py:Copier"` names them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tlplab.device import Device, DeviceParty
from tlplab.driver import DriverParty, Memory
from tlplab.errors import explain

# What modules of experiments are called begins with this.
PREFIX = "tlplab_experiment_"


class LoadError(ValueError):
    """A Python file without an object that an experiment expects in it."""


def load_device(path: str, name: str, parameters: str) -> DeviceParty:
    """A new device of class `name`; `parameters` is a JSON object, its keyword arguments. Raises `LoadError`."""
    found = find(path, name)
    if not (isinstance(found, type) and issubclass(found, Device)):
        raise LoadError(f"{name} is not a device; write class {name}(tlplab.Device)")
    try:
        return DeviceParty(found(**json.loads(parameters)))
    except Exception as error:
        raise LoadError(f"{name} cannot be created: {explain(error)}") from error


def parameter(text: str) -> tuple[str, Any]:
    """A parameter of a device, `KEY=VALUE`, whose value is JSON or a text. Raises ValueError."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def told(value: Any) -> str:
    """A parameter as a library reads it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def carry(device: Device) -> DeviceParty:
    """Carries a device that is there already. Raises `LoadError`."""
    if not isinstance(device, Device):
        raise LoadError(f"{device!r} is not a device; give an object of a subclass of tlplab.Device")
    return DeviceParty(device)


def load_driver(path: str, name: str, memory: Memory) -> DriverParty:
    """The driver `name`, a function of a host and a device. Raises `LoadError`."""
    return drive(find(path, name), memory)


def drive(driver: Callable[..., Any], memory: Memory) -> DriverParty:
    """Carries a driver. Raises `LoadError`."""
    if not callable(driver):
        raise LoadError(f"{driver!r} is not a driver; write async def driver(host, dev)")
    return DriverParty(driver, memory)


def find(path: str, name: str) -> Any:
    """The object called `name` in the file at `path`; a file is run once, however often it is named."""
    module = module_at(Path(path))
    if not hasattr(module, name):
        named = sorted(
            key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
        )
        wanted = f"there is no {name} in it" if name else "a name is missing after the colon"
        raise LoadError(f"{wanted}; it has {', '.join(named) or 'no classes or functions'}")
    return getattr(module, name)


def forget() -> None:
    """Forgets all files: a file that is loaded next is run again, without the state that earlier runs have left in its module."""
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def module_at(path: Path) -> ModuleType:
    """The module of a file, which need not be on the import path. Raises `LoadError`."""
    path = path.resolve()
    if not path.is_file():
        raise LoadError("there is no such file")
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"{PREFIX}{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError("it is not a Python file; the name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise LoadError(explain(error)) from error
    return module
