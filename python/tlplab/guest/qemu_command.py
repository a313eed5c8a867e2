"""`tlplab guest qemu`: devices of ours in an ordinary Linux guest."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from tlplab import _core
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.guest import tools
from tlplab.guest.console import terminal_kept
from tlplab.guest.devices import device_of
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import MEMORY, Machine, Off, boot, captures
from tlplab.guest.options import check_share, script_of
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Line

FORMAT = "tlplab/machine/1"


@click.command("qemu")
@click.argument("devices", metavar="DEVICE...", nargs=-1, required=True)
@click.option("--run", "script", metavar="SCRIPT", help="Run SCRIPT, a file or a command line, and power off.")
@click.option("--shell", is_flag=True, help="Give a shell on this terminal instead; Ctrl-A X takes the power away.")
@click.option("--share", metavar="DIR", help="Let the guest read and write DIR, as /share.")
@click.option("--memory", metavar="SIZE", default=MEMORY, show_default=True, help="Of the guest.")
@click.option("--cpus", type=click.IntRange(1, 255), metavar="N", default=1, show_default=True, help="Its processors.")
@click.option("--iommu", is_flag=True, help="Give it an IOMMU (intel-iommu), in strict use.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), metavar="SECONDS", help="Take its power away after so long: status 1."
)
@click.option("--qemu", metavar="PROGRAM", help="This QEMU (10.1 or later) instead of that of `make guest-tools`.")
@click.option(
    "--pcap", metavar="FILE", help="Write a capture of what passes between guest and device, for Wireshark (pcapng)."
)
@click.option("--json", "json_file", metavar="FILE|-", help="Write how it ended, and the counters of the devices.")
@click.option("--quiet", is_flag=True, help="No console.")
def qemu(
    devices: Sequence[str], script: str | None, shell: bool, share: str | None, memory: str, cpus: int, iommu: bool,
    timeout: float | None, qemu: str | None, pcap: str | None, json_file: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Boot an ordinary Linux under QEMU, with devices that this process serves by vfio-user, each below a root port of its own.

    DEVICE is `FILE.py:CLASS`, a class as `tlplab run` takes it, `lib:FILE.so`, or `nvme`, each with parameters behind commas. Time is
    that of this machine: lines of the console begin with seconds since the guest has power.

    --pcap writes a file for each device, with its name before the ending if there are several.

    The exit status is 1 if the script ends with another status than 0. `make guest-tools` fetches QEMU and the guest.

    \b
    Examples:
      tlplab guest qemu examples/python/copier.py:Copier --run 'lspci -nn'
      tlplab guest qemu nvme,size=1GiB --cpus 2 --run 'nvme list; mkfs.ext4 -q /dev/nvme0n1'
      tlplab guest qemu nvme examples/python/copier.py:Copier --shell
    """
    if shell == (script is not None):
        raise click.UsageError("give one of --run and --shell")
    if share is not None:
        share = check_share(share)
    try:
        size = _core.size(memory)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    named = [device_of(device) for device in devices]
    for file in captures(pcap, named):
        check_outputs({"--json": json_file, "--pcap": file}, to_stdout={"--json"}, inputs={})
    files = {} if script is None else {SCRIPT: script_of(script, None)}
    machine = Machine(tools.find(qemu), files, size, cpus, iommu, share, interactive=shell, pcap=pcap)
    silent = quiet or json_file == "-"
    line = Line(quiet=silent or shell)

    def show(seconds: float, text: str) -> None:
        line.clear()
        if not silent:
            click.echo(f"[{seconds:10.3f} s] {text}")

    try:
        with terminal_kept(shell):
            off = boot(machine, named, show=show, timeout=timeout)
    except KeyboardInterrupt:
        line.clear()
        return INTERRUPTED
    line.clear()
    if json_file is not None:
        write_text(json_file, document(off, devices))
    if not silent:
        click.echo(summary(off), nl=False)
    if off.timed_out:
        raise RunError(f"the guest was still on after {timeout:g} s, and has lost its power")
    if off.status is None and not shell:
        raise RunError("the guest is off, and its script has not ended")
    if off.status:
        raise RunError(f"the guest's script ended with status {off.status}")
    return 0


def document(off: Off, devices: Sequence[str]) -> str:
    """What became of the guest, as JSON."""
    counters = [
        {"device": device, "name": name, "counters": dict(of)}
        for device, (name, of) in zip(devices, off.counters.items(), strict=True)
    ]
    result = {
        "schema": FORMAT, "status": off.status, "timed_out": off.timed_out, "seconds": round(off.seconds, 3),
        "devices": counters,
    }  # fmt: skip
    return json.dumps(result, indent=1) + "\n"


def summary(off: Off) -> str:
    """How long the guest was on, and what passed between it and its devices."""
    lines = [f"off after {q.significant(off.seconds)} s"]
    for name, counters in off.counters.items():
        told = ", ".join(f"{counter.replace('_', ' ')} {n:,}" for counter, n in counters.items() if n)
        lines.append(f"{name}: {told}")
    return "\n".join(lines) + "\n"
