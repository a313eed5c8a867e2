"""`tlplab reproduce gem5 --guest`: dd and a kernel module in a Linux guest, compared with the simulated host and the paper."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import pytest
from guest import ROOT, needs_guest, run

from studies.gem5 import STUDY, guest
from studies.gem5.figures import SWEEPS, TABLE_2, seen_ns
from tlplab.cli import status
from tlplab.guest import kernel
from tlplab.reproduce import GuestOptions, running
from tlplab.reproduce.in_guest import GuestOutcomes, GuestRun, boot_all

PLACE = ROOT / "studies/gem5"
# dd's block in these tests: the first commands show the steady state.
SMALL = 256 * 1024


def some(*names: str) -> list[GuestRun]:
    """Boots by their names, with a small block."""
    found = {one.name: one for one in guest.runs(SMALL)}
    return [found[name] for name in names]


def test_each_point_is_run_once_in_each_mode() -> None:
    listed = guest.runs(guest.BLOCK)
    names = [one.name for one in listed]
    assert len(names) == len(set(names))
    for sweep, points in SWEEPS.items():
        for point in points:
            for mode in ("", " credits"):
                assert (guest.called(sweep, point, mode) in names) == (sweep != "block" or point == 64), (sweep, point)
    different = {(one.experiment, one.variables, one.overrides) for one in listed}
    assert len(different) == len(listed)
    for one in listed:
        assert (PLACE / one.experiment).is_file()
        assert (PLACE / one.script).is_file()


def test_only_the_sweep_of_the_block_reads_more_than_64_mib() -> None:
    sizes = {one.name: int(dict(one.variables).get("block", 0)) for one in guest.runs(512 * guest.MEBIBYTE)}
    large = {name: size for name, size in sizes.items() if size > guest.BLOCK}
    assert large == {f"block {n}{mode}": n << 20 for n in (128, 256, 512) for mode in ("", " credits")}
    assert max(int(dict(one.variables).get("block", 0)) for one in guest.runs(SMALL)) == SMALL


def test_the_guests_memory_holds_the_block() -> None:
    for one in guest.runs(512 * guest.MEBIBYTE):
        sizes = [re.fullmatch(r"guest\.memory=(\d+)MiB", key) for key in one.overrides]
        for size in filter(None, sizes):
            assert int(size[1]) << 20 >= int(dict(one.variables)["block"]) + guest.LINUX


def test_the_output_of_dd_is_parsed() -> None:
    said = guest.COPIED.match("67108864 bytes (67 MB, 64 MiB) copied, 0.155889 s, 430 MB/s")
    assert said is not None
    assert said.groups() == ("67108864", "0.155889")
    said = guest.COPIED.match("4096 bytes (4.1 kB, 4.0 KiB) copied, 1.4483e-05 s, 283 MB/s")
    assert said is not None
    assert float(said[2]) == pytest.approx(14.483e-6)
    assert guest.COPIED.match("1+0 records in") is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["differential", "--guest"], "--guest is for gem5, nettlp, pcie-bench, speedy"),
        (["gem5", "--block", "64MiB"], "--block is for --guest"),
        (["gem5", "--guest", "--block", "1GiB"], "512MiB at most"),
        (["gem5", "--guest", "--block", "6000B"], "a multiple of 4KiB"),
        (["gem5", "--guest", "--block", "much"], "much"),
        (["speedy", "--guest", "--block", "64MiB"], "--block is for gem5"),
    ],
)
def test_contradictory_options_are_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["reproduce", *arguments, "--experiments", str(ROOT / "studies")]) == 2
    assert reason in capsys.readouterr().err


def test_without_a_kernel_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(click.UsageError, match="make linux"):
        running.by_guest(STUDY, str(ROOT / "studies"), GuestOptions(), quiet=True)
    assert status(["reproduce", "gem5", "--guest", "--experiments", str(ROOT / "studies")]) == 2
    assert "build it with `make linux`" in capsys.readouterr().err


def test_the_page_has_a_line_for_each_row() -> None:
    page = (PLACE / "guest.md").read_text(encoding="utf-8")
    for name in ("Table II, root complex 150 ns", "figure 9b, dd x1 to x2", "figure 9d, saturation"):
        assert f"| guest: {name} |" in page
    for heading in guest.TITLES.values():
        assert f"| {heading} |" in page


@pytest.fixture(scope="module")
def outcomes() -> GuestOutcomes:
    """A few boots."""
    needs_guest()
    names = (
        "read 50", "read 150", "block 64", "block 64 cost", "block 64 credits", "switch 50", "width 4", "width 8", "width 8 credits",
        "port 24", "errors", "physical",
    )  # fmt: skip
    return boot_all(PLACE, kernel.find(None), some(*names), quiet=True)


@pytest.mark.full
def test_table_2_by_a_kernel_module(outcomes: GuestOutcomes) -> None:
    for latency in (50, 150):
        true = guest.module_ns(outcomes[f"read {latency}"])
        assert true == 222 + 2 * latency
        assert seen_ns(true) == pytest.approx(TABLE_2[latency], rel=0.01)


@pytest.mark.full
def test_a_sector_of_4_kib_takes_the_time_of_the_paper(outcomes: GuestOutcomes) -> None:
    assert guest.dd(outcomes["block 64"]).sector == pytest.approx(3.072, rel=0.01)


@pytest.mark.full
def test_a_command_crosses_the_switch_eight_times_in_a_row(outcomes: GuestOutcomes) -> None:
    saved = guest.dd(outcomes["block 64"]).ns - guest.dd(outcomes["switch 50"]).ns
    assert saved == pytest.approx(8 * 100, rel=0.02)


@pytest.mark.full
def test_an_interrupt_takes_its_stated_cost(outcomes: GuestOutcomes) -> None:
    more = guest.dd(outcomes["block 64 cost"]).ns - guest.dd(outcomes["block 64"]).ns
    assert more == pytest.approx(guest.COST_NS, rel=0.02)


@pytest.mark.full
def test_x8_replays_and_loses_unless_there_are_credits_or_room(outcomes: GuestOutcomes) -> None:
    x4, x8, credit, room = (guest.dd(outcomes[name]) for name in ("width 4", "width 8", "width 8 credits", "port 24"))
    assert x4.timeouts == room.timeouts == credit.timeouts == 0
    assert 20 <= x8.timeouts <= 30
    assert x8.gbps < x4.gbps < room.gbps < credit.gbps


@pytest.mark.full
def test_reports_of_replays_cost_dd_more_than_the_replays(outcomes: GuestOutcomes) -> None:
    assert guest.dd(outcomes["errors"]).gbps < 0.5 * guest.dd(outcomes["width 8"]).gbps


@pytest.mark.full
def test_posted_writes_and_credits_are_faster(outcomes: GuestOutcomes) -> None:
    assert guest.dd(outcomes["block 64 credits"]).gbps > 1.1 * guest.dd(outcomes["block 64"]).gbps


@pytest.mark.full
def test_the_physical_machines_link_is_its_limit(outcomes: GuestOutcomes) -> None:
    """Payloads of 128 B, at most 128 of 148 B of 4 Gb/s; a small block begins and ends with waiting."""
    assert 1.5 < guest.dd(outcomes["physical"]).gbps < 4 * 128 / 148


@pytest.mark.full
def test_the_rate_of_a_first_dd_depends_on_the_link(tmp_path: Path) -> None:
    needs_guest()

    def rates(*arguments: str) -> list[float]:
        told = run(tmp_path, *arguments, experiment=ROOT / "experiments/linux/dd.toml")
        assert told.status == 0, told.errors
        said = [found for line in told.console if (found := guest.COPIED.match(line))]
        return [int(found[1]) / float(found[2]) for found in said]

    block, pages = rates()
    assert block > 2 * pages
    slow_block, _ = rates("--set", "device.nvme0.link=gen1 x1")
    assert slow_block < 250e6 < block
    _, far_pages = rates("--set", "switch.sw0.latency=1us")
    assert far_pages < 0.8 * pages


def test_the_help_lists_guest_and_block_options() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tlplab", "reproduce", "--help"], capture_output=True, text=True, check=True
    )
    assert "--guest" in told.stdout
    assert "--block SIZE" in told.stdout


@pytest.mark.full
def test_an_interrupt_leaves_no_guest_and_no_folder() -> None:
    needs_guest()
    # A socket's path is short, and that of pytest's folders is not.
    with tempfile.TemporaryDirectory() as folder:
        interrupted(Path(folder))


def interrupted(within: Path) -> None:
    """Boots a guest with its files in the folder, and interrupts it."""
    script = (
        "from pathlib import Path; from studies.gem5 import guest; from tlplab.guest import kernel; from tlplab.reproduce.in_guest import boot_all;"
        f"boot_all(Path({str(PLACE)!r}), kernel.find(None), [one for one in guest.runs(64 << 20) if one.name == 'block 64'], quiet=True)"
    )
    environment = {**os.environ, "TMPDIR": str(within), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    )
    try:
        until = time.monotonic() + 60
        while not (begun := list(within.glob("tlplab-guests-*/*/pci"))):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, "no guest begins"
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert "KeyboardInterrupt" in errors
    assert not begun[0].exists()
    assert not list(within.glob("tlplab-guests-*"))
    time.sleep(1)
    folders = [os.readlink(place) for place in Path("/proc").glob("[0-9]*/cwd") if os.access(place, os.R_OK)]
    assert not [folder for folder in folders if folder.startswith(str(within))]
