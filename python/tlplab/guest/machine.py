"""Boots an ordinary guest under QEMU, with devices that this process serves, and carries its output, until it is off."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from tlplab.errors import RunError
from tlplab.guest.console import Console
from tlplab.guest.initramfs import archive
from tlplab.guest.tools import Tools
from tlplab.vfio import options_of_qemu

KVM, PROCESSORS = Path("/dev/kvm"), Path("/proc/cpuinfo")
# A processor with neither has a KVM that runs no ordinary kernel (kvm-pvm), or none.
VIRTUALIZATION = re.compile(r"^flags\s*:.*\b(vmx|svm)\b", re.MULTILINE)
MEMORY = "512MiB"
# With 128 MiB the kernel ends where it unpacks its initial file system.
LEAST_MEMORY = 160 << 20
# How the guest is told where its status goes, and what it shares.
STATUS, SHARE = "tlplab.status=ttyS1", "tlplab.share=9p"
# Linux 7.3 compares the time stamp counters of its processors and, where this machine is busy, never ends: one waits for the other in
# watchdog_check_skew, and that one for the first in multi_cpu_stop. Those of a guest are the same clock.
COMMAND_LINE = f"console=ttyS0 quiet panic=-1 tsc=reliable {STATUS}"
# What QEMU (11.1) says where a device has reported an error: it stops the processors, and goes on for ever.
STOPPED = "Unrecoverable error detected"
# Between two looks at whether a device shall end, in seconds.
SLICE = 0.25
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Machine:
    """A machine to boot."""

    tools: Tools
    files: Mapping[str, bytes]
    """The guest's files in /tlplab."""
    memory: int = 512 << 20
    """In bytes."""
    processors: int = 1
    iommu: bool = False
    append: str = ""
    """More words for the kernel's command line."""
    share: str | None = None
    """A folder that the guest reads and writes, as /share."""
    interactive: bool = False
    """The terminal is the guest's console."""

    def command(self, folder: Path, sockets: Sequence[Path]) -> list[str]:
        """The command of QEMU, whose files are in `folder`."""
        # The guest's memory is a file that the devices map.
        memory = f"memory-backend-memfd,id=memory,size={self.memory},share=on"
        accelerator = ["-accel", "kvm", "-cpu", "host"] if has_kvm() else ["-accel", "tcg"]
        line = COMMAND_LINE
        if self.append:
            line += f" {self.append}"
        options: list[str] = []
        if self.share is not None:
            line += f" {SHARE}"
            options += ["-fsdev", f"local,id=share,path={self.share},security_model=none"]
            options += ["-device", "virtio-9p-pci,fsdev=share,mount_tag=share"]
        if self.iommu:
            line += " intel_iommu=on iommu=nopt"
            options += ["-device", "intel-iommu,caching-mode=on"]
        for number, socket in enumerate(sockets, 1):
            options += ["-device", f"pcie-root-port,id=port{number},chassis={number},slot={number}"]
            options += options_of_qemu(socket, f"port{number}")
        console = "stdio,id=console,signal=off" + (",mux=on" if self.interactive else "")
        if self.interactive:
            options += ["-mon", "chardev=console,mode=readline"]
        return [
            *self.tools.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-name", "tlplab",
            "-M", "q35,memory-backend=memory", *accelerator, "-smp", str(self.processors), "-m", f"{self.memory}B",
            "-object", memory, "-kernel", str(self.tools.kernel), "-initrd", str(folder / "initramfs"), "-append", line,
            "-chardev", console, "-serial", "chardev:console",
            "-chardev", f"file,id=status,path={folder / 'status'}", "-serial", "chardev:status", *options,
        ]  # fmt: skip


class Served(Protocol):
    """Something that serves devices; one thread lets it go on."""

    def run(self, seconds: float) -> None:
        """Goes on for so long."""


Counters: TypeAlias = "dict[str, dict[str, int]]"


@dataclass
class Serving:
    """Devices that are served, by threads of their own."""

    servers: Sequence[Served]
    sockets: Sequence[Path]
    """Of the devices, in their order."""
    counters: Callable[[], Counters]
    """Of each device, by its name."""
    failure: BaseException | None = None
    """The exception that a device has raised."""
    over: threading.Event = field(default_factory=threading.Event)

    def run(self, server: Served) -> None:
        """Serves until all are to end, or one raises."""
        try:
            while not self.over.is_set():
                server.run(SLICE)
        except BaseException as error:
            self.failure = self.failure or error
            self.over.set()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Serves meanwhile."""
        threads = [threading.Thread(target=self.run, args=[server], daemon=True) for server in self.servers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in threads:
                thread.join()


class Devices(Protocol):
    """The devices of a guest."""

    def served(self, folder: Path) -> AbstractContextManager[Serving]:
        """Serves them on sockets in a folder, while they are wanted."""


@dataclass(frozen=True)
class Off:
    """A guest that is off."""

    status: int | None
    """The exit status of its script; None, if it has not said it."""
    seconds: float
    """From its power to its end."""
    counters: Counters
    """Of its devices."""
    timed_out: bool
    interrupted: bool
    """True after Ctrl-C; then the devices' counters are of the part that ran."""
    last: Sequence[str] = ()
    """The last lines of its console."""
    stopped: bool = False
    """By QEMU, since a device has reported a fatal error."""


def boot(
    machine: Machine,
    devices: Devices,
    *,
    show: Callable[[float, str], None],
    timeout: float | None = None,
) -> Off:
    """Boots a guest and waits until it is off, or for `timeout` seconds. `show` is called with each line of its console and its time in seconds.

    At Ctrl-C, and after `timeout`, it loses its power. Raises `RunError` if QEMU cannot run the guest, or a device raises.
    """
    with tempfile.TemporaryDirectory(prefix="tlplab-guest-") as name:
        folder = Path(name)
        (folder / "initramfs").write_bytes(machine.tools.initramfs.read_bytes() + archive(machine.files))
        timed_out, interrupted, seconds = False, False, 0.0
        try:
            with devices.served(folder) as serving:
                begun = time.monotonic()
                running = Running.start(machine, folder, serving.sockets)
                try:
                    timed_out = running.wait(serving.over, show, None if timeout is None else begun + timeout)
                finally:
                    running.end()
                    seconds = time.monotonic() - begun
        except KeyboardInterrupt:
            if not seconds:
                raise
            interrupted = True
        if serving.failure is not None:
            raise serving.failure
        said = (
            (folder / "status").read_text(encoding="ascii", errors="replace").strip()
            if (folder / "status").exists()
            else ""
        )
        if not (timed_out or interrupted or running.stopped) and running.process.returncode:
            raise RunError(f"QEMU cannot run the guest: {running.complaints()}")
        status = int(said) if said.isdecimal() else None
        return Off(status, seconds, serving.counters(), timed_out, interrupted, running.last, running.stopped)


@dataclass
class Running:
    """QEMU as it runs."""

    process: subprocess.Popen[bytes]
    errors: Path
    begun: float
    last: Sequence[str] = ()
    """The last lines that it printed."""
    stopped: bool = False
    """QEMU has stopped the guest."""
    deaf: BaseException | None = None
    """The end of the console's reader, such as a closed pipe."""

    @classmethod
    def start(cls, machine: Machine, folder: Path, sockets: Sequence[Path]) -> Running:
        """Gives the guest its power. Raises `RunError` if there is no such QEMU."""
        errors = folder / "errors"
        with errors.open("wb") as file:
            try:
                process = subprocess.Popen(
                    machine.command(folder, sockets),
                    stdin=None if machine.interactive else subprocess.DEVNULL,
                    stdout=None if machine.interactive else subprocess.PIPE,
                    stderr=file,
                    # Ctrl-C is for this process, which then ends it, in order.
                    preexec_fn=lambda: die_with_parent(own_group=not machine.interactive),
                )
            except OSError as error:
                raise RunError(f"{machine.tools.qemu[0]}: {error.strerror}; name QEMU with --qemu") from None
        return cls(process, errors, time.monotonic())

    def wait(self, over: threading.Event, show: Callable[[float, str], None], until: float | None) -> bool:
        """Shows its console until it ends, QEMU stops it, `over` is set, or it is time; whether it was time."""
        reader = None
        if self.process.stdout is not None:
            reader = threading.Thread(target=self.read, args=[show], name="console", daemon=True)
            reader.start()
        timed_out = False
        while not over.is_set():
            if until is not None and time.monotonic() >= until:
                timed_out = True
                break
            try:
                self.process.wait(SLICE / 5)
                break
            except subprocess.TimeoutExpired:
                self.stopped = STOPPED in self.errors.read_text(errors="replace")
                if self.stopped:
                    break
        self.end()
        if reader is not None:
            reader.join()
        if self.deaf is not None:
            raise self.deaf
        return timed_out

    def read(self, show: Callable[[float, str], None]) -> None:
        """Carries the output, by lines."""
        assert self.process.stdout is not None
        console = Console(show)
        try:
            for data in iter(lambda: os.read(self.process.stdout.fileno(), 1 << 16), b""):  # type: ignore[union-attr]
                console.hear(time.monotonic() - self.begun, data)
            console.end()
        except BaseException as error:
            # A guest whose console nobody reads any more stands still.
            self.deaf = error
            self.process.kill()
        self.last = console.last

    def end(self) -> None:
        """Takes its power away, if it still has it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def complaints(self) -> str:
        """The messages of QEMU, without warnings and registers; without messages, its exit status or signal."""
        lines = self.errors.read_text(errors="replace").splitlines()
        said = [line.partition(": ")[2] for line in lines if line.startswith("qemu") and ": warning: " not in line]
        code = self.process.returncode
        return "; ".join(said) or (f"it ended with status {code}" if code > 0 else f"it was killed by signal {-code}")


def has_kvm() -> bool:
    """True if KVM runs guests on this machine."""
    return (
        os.access(KVM, os.R_OK | os.W_OK)
        and VIRTUALIZATION.search(PROCESSORS.read_text(encoding="ascii", errors="replace")) is not None
    )


def die_with_parent(*, own_group: bool) -> None:
    """A guest does not outlive the process that serves its devices, even if that is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if own_group:
        os.setpgid(0, 0)
