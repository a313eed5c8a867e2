"""`tlplab doctor`: the parts of a machine that tlplab finds, the use of each missing one, and the command that installs it."""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from tlplab import _core, catalog
from tlplab.guest import kernel, tools
from tlplab.outputs import check_outputs, write_text
from tlplab.sheet import Column, Sheet
from tlplab.summary import console_for

SECONDS = 10
# Where `make rtl` puts its tools, in a clone.
OF_CLONE = "rtl/.venv/bin"
FIRST_LINE = 60


@dataclass(frozen=True)
class Finding:
    """A part, and its version or path: None if it is missing."""

    name: str
    found: str | None
    enables: str
    get: str
    """The command or the step that brings it."""


@dataclass(frozen=True)
class Check:
    """Looks for a thing."""

    name: str
    look: Callable[[], str | None]
    enables: str
    get: str

    def run(self) -> Finding:
        """The present finding."""
        return Finding(self.name, self.look(), self.enables, self.get)


def program(name: str, *version: str) -> Callable[[], str | None]:
    """A program on the path: the first line that it says of its version."""

    def look() -> str | None:
        path = shutil.which(name) or shutil.which(name, path=OF_CLONE)
        if path is None:
            return None
        try:
            said = subprocess.run([path, *version], capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return f"{path}, which does not answer"
        lines = (said.stdout or said.stderr).strip().splitlines()
        return lines[0][:FIRST_LINE] if lines else path

    return look


def user_mode_kernel() -> str | None:
    """The guest that `make linux` builds."""
    return manifest(kernel.built())


def ordinary_guest() -> str | None:
    """The guest that `make guest-tools` fetches."""
    return manifest(kernel.built(tools.LINK))


def manifest(place: Path) -> str | None:
    """The path of a guest, if it is whole; else None."""
    return str(place.resolve()) if (place / kernel.MANIFEST).is_file() else None


def kvm() -> str | None:
    """A virtual machine at the processor's own speed."""
    return "/dev/kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) else None


def registers() -> str | None:
    """Configuration space beyond its first 64 bytes, which only root may read."""
    functions = sorted(Path("/sys/bus/pci/devices").glob("*/config"))
    whole = [path for path in functions if len(first_bytes(path)) > 64]
    return f"{len(whole)} of {len(functions)} functions" if whole else None


def first_bytes(path: Path) -> bytes:
    """The first 256 bytes of a file, or as many as may be read."""
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError:
        return b""


def raw_sockets() -> str | None:
    """Packet sockets, which need CAP_NET_RAW."""
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
            return "may be opened"
    except (AttributeError, OSError):
        return None


def gpu() -> str | None:
    """NVIDIA's driver, as the loader finds it."""
    return ctypes.util.find_library("cuda")


def experiments() -> str | None:
    """tlplab's own."""
    folder = catalog.shipped()
    return None if folder is None else str(folder)


def packages(*names: str) -> Callable[[], str | None]:
    """Python packages that are installed together: their versions, if none is missing."""

    def look() -> str | None:
        try:
            return ", ".join(f"{name} {version(name)}" for name in names)
        except PackageNotFoundError:
            return None

    return look


CHECKS = (
    Check("experiments", experiments, "tlplab's own experiments by name: `tlplab run quickstart`", "make wheel, or a clone"),
    Check("extra studies", packages("optuna", "pyarrow", "SALib"), "`tlplab optimise`, Sobol indices, studies as .parquet", "pip install 'tlplab[studies]'"),
    Check("extra dask", packages("distributed"), "`tlplab sweep --engine dask`: studies on several machines", "pip install 'tlplab[dask]'"),
    Check("Rust", program("cargo", "--version"), "devices and experiments in Rust; a build of tlplab", "https://rustup.rs"),
    Check("Node", program("node", "--version"), "changes of the report page", "apt install nodejs"),
    Check("C compiler", program("gcc", "--version"), "devices in C, drivers, `make linux`", "apt install gcc"),
    Check("tshark", program("tshark", "--version"), "captures on the command line, with `tlplab dissector`", "apt install tshark"),
    Check("lspci", program("lspci", "--version"), "`tlplab lspci -o`, read by the real program; `scan` of dumps", "apt install pciutils"),
    Check("setpci", program("setpci", "--version"), "the changes that `tlplab scan` proposes", "apt install pciutils"),
    Check("all registers", registers, "`tlplab scan` of this machine with MPS, MRRS, access control, errors", "run it as root"),
    Check("packet sockets", raw_sockets, "`--transport packet` or `xdp`: many datagrams a second", "run it as root"),
    Check("user-mode Linux", user_mode_kernel, "`tlplab guest uml`, `tlplab torture`: Linux in simulated time", "make linux (10 minutes)"),
    Check("QEMU and guest", ordinary_guest, "`tlplab guest qemu`: an ordinary Linux with your devices", "make guest-tools (a minute)"),
    Check("KVM", kvm, "`tlplab guest qemu` at the processor's own speed", "load kvm_intel or kvm_amd; be in the group kvm"),
    Check("Verilator", program("verilator", "--version"), "devices of your own in RTL, `make rtl`", "make rtl-tools"),
    Check("NVIDIA driver", gpu, "`tlplab bench --on cuda`: this machine measured by its GPU", "the GPU's driver"),
)  # fmt: skip


@click.command("doctor", short_help="Show which tools and privileges this machine has.")
@click.option("--json", "json_file", metavar="FILE|-", help="Write the findings; - is the standard output.")
@click.option("--quiet", is_flag=True, help="No table.")
def doctor_command(json_file: str | None, quiet: bool) -> None:
    """Show the tools and privileges on this machine that tlplab can use, and the missing ones with their purpose.

    Nothing is installed or changed. All of them are optional.

    \b
    Examples:
      tlplab doctor
      tlplab doctor --json -
    """
    check_outputs({"--json": json_file}, to_stdout={"--json"}, inputs={})
    found = [check.run() for check in CHECKS]
    if json_file is not None:
        document = {"version": _core.__version__, "things": [asdict(one) for one in found]}
        write_text(json_file, json.dumps(document, indent=1) + "\n")
    if not quiet and json_file != "-":
        show(found)


def show(found: list[Finding]) -> None:
    """Two tables: the parts that are present, and the missing ones."""
    console = console_for(sys.stdout)
    here = Sheet(
        f"tlplab {_core.__version__}: here",
        [Column("", name=True), Column("found", name=True), Column("enables", name=True)],
    )
    missing = Sheet("Missing", [Column("", name=True), Column("would enable", name=True), Column("get it", name=True)])
    for one in found:
        if one.found is not None:
            here.add(one.name, one.found, one.enables)
        else:
            missing.add(one.name, one.enables, one.get)
    for sheet in (here, missing):
        if sheet.rows:
            sheet.print(console)
            console.print()
