"""`tlplab guest qemu`: devices of ours in an ordinary Linux guest."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tlplab import _core, outline, summary
from tlplab import quantities as q
from tlplab.errors import INTERRUPTED, RunError
from tlplab.guest import tools
from tlplab.guest.console import last_lines, terminal_kept
from tlplab.guest.devices import FabricDevices, SingleDevices, device_of
from tlplab.guest.initramfs import SCRIPT
from tlplab.guest.machine import LEAST_MEMORY, MEMORY, Machine, Off, boot
from tlplab.guest.options import check_share, script_of
from tlplab.guest.uml_command import files_of
from tlplab.nettlp.live import show_lag
from tlplab.options import SEEDS
from tlplab.outputs import check_outputs, write_text
from tlplab.progress import Line

FORMAT = "tlplab/machine/1"
EXPERIMENT = ".toml"
# Options for an experiment alone.
OF_EXPERIMENT = {"overrides": "--set", "seed": "--seed", "cables": "--cable", "report": "--report", "trace": "--trace"}


def cables_of(_context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> list[tuple[str, str]]:
    """`nic0=nic1`."""
    found = []
    for text in given:
        one, _, other = text.partition("=")
        if not one or not other or one == other:
            raise click.BadParameter(f"{text!r} is not NIC=NIC, such as nic0=nic1", param=parameter)
        found.append((one, other))
    plugs = [nic for pair in found for nic in pair]
    for nic in plugs:
        if plugs.count(nic) > 1:
            raise click.BadParameter(f"{nic} has several cables; give it one", param=parameter)
    return found


@click.command("qemu", short_help="Boot Linux under QEMU, with devices of tlplab.")
@click.argument("devices", metavar="DEVICE...", nargs=-1, required=True)
@click.option("--run", "script", metavar="SCRIPT", help="Run SCRIPT, a file or a command line, and power off.")
@click.option("--shell", is_flag=True, help="Open a shell on this terminal instead; Ctrl-A X powers the guest off.")
@click.option("--share", metavar="DIR", help="Let the guest read and write DIR, as /share.")
@click.option("--memory", metavar="SIZE", default=MEMORY, show_default=True, help="Memory of the guest.")
@click.option(
    "--cpus", type=click.IntRange(1, 255), metavar="N", default=1, show_default=True, help="Processors of the guest."
)
@click.option("--iommu", is_flag=True, help="Give the guest an IOMMU (intel-iommu), in strict mode.")
@click.option(
    "--append", metavar="WORDS", default="", help="Add WORDS to the kernel's command line, such as pci=nomsi."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="Power the guest off after SECONDS, with exit status 1.",
)
@click.option("--qemu", metavar="PROGRAM", help="QEMU (10.1 or later) to use instead of that of `make guest-tools`.")
@click.option(
    "--pcap", metavar="FILE", help="Write a capture of the TLPs between guest and device, for Wireshark (pcapng)."
)
@click.option(
    "--json", "json_file", metavar="FILE|-", help="Write the end of the guest and the counters of the devices as JSON."
)
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Override one key of the experiment. May be given again.",
)
@click.option("--seed", type=SEEDS, metavar="N", help="Seed of the experiment's random streams.")
@click.option(
    "--cable", "cables", metavar="NIC=NIC", multiple=True, callback=cables_of,
    help="Join two NICs of the experiment by an Ethernet cable. May be given again.",
)  # fmt: skip
@click.option("--report", metavar="FILE.html", help="Write one self-contained page that shows the experiment's run.")
@click.option("--trace", metavar="FILE", help="Write a trace of the run that opens in Perfetto (ui.perfetto.dev).")
@click.option("--quiet", is_flag=True, help="No console, no summary.")
def qemu(
    devices: Sequence[str], script: str | None, shell: bool, share: str | None, memory: str, cpus: int, iommu: bool,
    append: str, timeout: float | None, qemu: str | None, pcap: str | None, json_file: str | None, overrides: Sequence[str],
    seed: int | None, cables: Sequence[tuple[str, str]], report: str | None, trace: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Boot an ordinary Linux under QEMU, with devices that this process serves by vfio-user, each below its own root port.

    DEVICE is `FILE.py:CLASS` (a class as for `tlplab run`), `lib:FILE.so` or `nvme`, with parameters after commas. Time is wall time:
    lines of the console start with the seconds since power-on.

    With one EXPERIMENT.toml, each of its devices is a function of the guest, and its fabric of switches, links, built-in devices and RTL
    is simulated in wall time. Loads and drivers of the experiment are ignored.

    --pcap writes one file per device, with the device's name before the ending if there are several; for an experiment, one file with all links.

    The exit status is 1 if the script's exit status is not 0. `make guest-tools` fetches QEMU and the guest.

    \b
    Examples:
      tlplab guest qemu examples/python/copier.py:Copier --run 'lspci -nn'
      tlplab guest qemu nvme,size=1GiB --cpus 2 --run 'nvme list; mkfs.ext4 -q /dev/nvme0n1'
      tlplab guest qemu nvme examples/python/copier.py:Copier --shell
      tlplab guest qemu experiments/linux/nvme.toml --pcap out/links.pcapng
    """
    if share is not None:
        share = check_share(share)
    try:
        size = _core.size(memory)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    if size < LEAST_MEMORY:
        raise click.BadParameter(
            f"{memory}: the guest's kernel and its files need {LEAST_MEMORY >> 20} MiB; give that or more",
            param_hint="--memory",
        )
    described: FabricDevices | SingleDevices
    if any(device.endswith(EXPERIMENT) for device in devices):
        if len(devices) > 1:
            raise click.UsageError("an experiment defines all devices of its guest: give no other DEVICE")
        described = FabricDevices(devices[0], overrides, seed, cables, trace, pcap)
        check_outputs(
            {"--json": json_file, "--pcap": pcap, "--report": report, "--trace": trace}, to_stdout={"--json"},
            inputs={"the experiment": devices[0]},
        )  # fmt: skip
        files = files_of_experiment(described, script, shell=shell)
    else:
        refuse_options_of_experiment()
        if shell == (script is not None):
            raise click.UsageError("give either --run or --shell")
        described = SingleDevices([device_of(device) for device in devices], pcap)
        for file in described.captures():
            check_outputs({"--json": json_file, "--pcap": file}, to_stdout={"--json"}, inputs={})
        files = {} if script is None else {SCRIPT: script_of(script, None)}
    machine = Machine(tools.find(qemu), files, size, cpus, iommu, append, share, interactive=shell)
    silent = quiet or json_file == "-"
    line = Line(quiet=silent or shell)

    def show(seconds: float, text: str) -> None:
        line.clear()
        if not silent:
            click.echo(f"[{seconds:10.3f} s] {text}")

    try:
        with terminal_kept(shell):
            off = boot(machine, described, show=show, timeout=timeout)
    except KeyboardInterrupt:
        line.clear()
        return INTERRUPTED
    line.clear()
    result = document(off, devices, described)
    if json_file is not None:
        write_text(json_file, json.dumps(result, indent=1) + "\n")
    if report is not None and isinstance(described, FabricDevices):
        _core.write_report(report, described.result)
    if not silent:
        show_end(off, result, described)
    if off.interrupted:
        click.echo("interrupted: the figures cover the part that ran", err=True)
        return INTERRUPTED
    if ended := badly(off, timeout, shell=shell):
        raise RunError(ended + last_lines(off.last, silent=silent))
    return 0


def badly(off: Off, timeout: float | None, *, shell: bool) -> str | None:
    """The end of the guest in words, if it was not in order; else None."""
    if off.timed_out:
        return f"the guest was still running after {timeout:g} s and was powered off"
    if off.stopped:
        return "a device or its link reported a fatal error, and QEMU stopped the guest (docs/virtual-machine.md)"
    if off.status is None and not shell:
        return "the guest powered off before its script ended"
    return f"the guest's script ended with status {off.status}" if off.status else None


def refuse_options_of_experiment() -> None:
    """Raises `click.UsageError` if one was given."""
    context = click.get_current_context()
    for key, option in OF_EXPERIMENT.items():
        if context.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for an experiment: name its file (EXPERIMENT.toml)")


def files_of_experiment(devices: FabricDevices, script: str | None, *, shell: bool) -> dict[str, bytes]:
    """The guest's files in /tlplab. Raises `click.UsageError`, `ExperimentError`."""
    if shell and script is not None:
        raise click.UsageError("give either --run or --shell")
    found = outline.read_guests(devices.experiment, overrides=devices.overrides)["outline"]
    if found is None:
        raise click.UsageError(
            f"{devices.experiment} has several machines, and this command boots one; use `tlplab guest uml`"
        )
    nics = [one["name"] for one in found["components"] if one["model"] == "nic"]
    for name in [name for pair in devices.cables for name in pair if name not in nics]:
        raise click.UsageError(
            f"--cable: {devices.experiment} has no nic {name}; its nics: {', '.join(nics) or 'none'}"
        )
    return files_of(found["guest"], script, shell=shell)


def document(off: Off, devices: Sequence[str], described: FabricDevices | SingleDevices) -> dict[str, Any]:
    """The guest's result; of an experiment, the result of its run as well."""
    named: Sequence[str] = devices if isinstance(described, SingleDevices) else list(off.counters)
    counters = [
        {"device": device, "name": name, "counters": dict(of)}
        for device, (name, of) in zip(named, off.counters.items(), strict=True)
    ]
    result: dict[str, Any] = {
        "schema": FORMAT, "status": off.status, "timed_out": off.timed_out,
        "interrupted": off.interrupted, "stopped": off.stopped, "seconds": round(off.seconds, 3),
        "devices": counters,
    }  # fmt: skip
    if isinstance(described, FabricDevices):
        _, most, times = described.lag
        result |= {"lag": {"most_ns": most, "over_1_ms": times}, "run": json.loads(described.result)}
    return result


def show_end(off: Off, result: Mapping[str, Any], described: FabricDevices | SingleDevices) -> None:
    """Prints the time that the guest was on, and the traffic between it and its devices."""
    if isinstance(described, FabricDevices):
        summary.show(result["run"], sys.stdout)
    click.echo(f"powered off after {q.significant(off.seconds)} s")
    for name, counters in off.counters.items():
        told = ", ".join(f"{counter.replace('_', ' ')} {n:,}" for counter, n in counters.items() if n)
        click.echo(f"{name}: {told}")
    if isinstance(described, FabricDevices):
        show_lag(described.lag)
