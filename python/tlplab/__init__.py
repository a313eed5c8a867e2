"""A laboratory for PCI Express: run a topology, see every transaction, its cost and its causes.

    >>> import tlplab as tl
    >>> result = tl.run("experiments/quickstart.toml", seed=7)      # doctest: +SKIP
    >>> print(result["verdict"]["sentence"])                        # doctest: +SKIP

The way through the package: `cli` reads the command line, `session` runs an experiment to its end and watches over it,
`experiment` makes one of objects, `_core` is the simulator (Rust), `result` is the result (`document` its shape), `summary` prints it in a terminal.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tlplab._core import __version__
from tlplab.capabilities import Acs, Ats, Ltr, Pasid, ResizableBar, SerialNumber, Vendor, VendorExtended
from tlplab.debugger import Debugger, debug
from tlplab.device import CompleterAbort, Context, Device, UnsupportedRequest
from tlplab.driver import Host
from tlplab.errors import ExperimentError, RunError
from tlplab.experiment import Experiment
from tlplab.identity import Ids
from tlplab.nettlp.serve import NetTLP, serve
from tlplab.registers import Bar, Reg32, Reg64, Register
from tlplab.result import Result
from tlplab.session import run
from tlplab.simulation import simulate
from tlplab.study.running import sweep
from tlplab.tasks import DmaError
from tlplab.vfio import VfioUser

# What `tl.simulate` gave before `tl.run` gave the same.
Run = Result

if TYPE_CHECKING:
    from tlplab import model

__all__ = [
    "Acs",
    "Ats",
    "Bar",
    "CompleterAbort",
    "Context",
    "Debugger",
    "Device",
    "DmaError",
    "Experiment",
    "ExperimentError",
    "Host",
    "Ids",
    "Ltr",
    "NetTLP",
    "Pasid",
    "Reg32",
    "Reg64",
    "Register",
    "ResizableBar",
    "Result",
    "Run",
    "RunError",
    "SerialNumber",
    "UnsupportedRequest",
    "Vendor",
    "VendorExtended",
    "VfioUser",
    "__version__",
    "debug",
    "model",
    "run",
    "serve",
    "simulate",
    "sweep",
]


def __getattr__(name: str) -> object:
    """The closed forms need numpy, which takes a while to import: only programs that use them wait."""
    if name == "model":
        return import_module("tlplab.model")
    raise AttributeError(f"module 'tlplab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names only."""
    return sorted(__all__)
