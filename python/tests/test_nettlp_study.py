"""`tlplab reproduce nettlp`: the model's page is fresh, captures are judged, and this machine is measured where it may be."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from guest import needs_tools
from privilege import lacking

from studies.nettlp import STUDY, captures, card, guest, library, machine, topologies
from studies.nettlp import wire as wire_module
from studies.nettlp.rows import compared, ranged, teeth
from studies.nettlp.wire import ADAPTER, SOFTWARE, CommandError, Wire, laid
from tlplab import _core
from tlplab.cli import status
from tlplab.nettlp import capture
from tlplab.nettlp.cable import NoNamespacesError
from tlplab.nettlp.perf import deviation
from tlplab.reproduce import Beside, Outcomes, Row, running

ROOT = Path(__file__).resolve().parents[2]
# Ethernet, and nothing in it.
PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
CAPTURES = Path(os.environ.get("TLPLAB_DATA", "/nonexistent")) / "captures"


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return running.outcomes_of(STUDY, ROOT / "studies" / STUDY.folder, quiet=True)


@pytest.fixture(scope="module")
def rows(outcomes: Outcomes) -> list[Row]:
    return STUDY.rows(outcomes)


def test_the_page_matches_the_runs(outcomes: Outcomes, rows: list[Row]) -> None:
    written = (ROOT / "studies/nettlp/README.md").read_text(encoding="utf-8")
    assert written == STUDY.page(outcomes, rows), "run `make generate`"


def test_the_model_reproduces_the_paper_or_has_a_note(rows: list[Row]) -> None:
    formula = next(row for row in rows if row.result.endswith("encapsulation"))
    assert formula.ours == pytest.approx(7.5294, rel=1e-3)
    for row in rows:
        assert row.note or row.verdict == "reproduced", row
        # What a constant was chosen for shows nothing, however close it is.
        assert ("fitted" in row.note) <= (row.verdict == "explained"), row
    fitted = {row.result for row in rows if "fitted" in row.note}
    assert fitted == {"model, figure 7, 256 B, 1 core", "model, table 2, 256 B: median"}


def test_a_note_is_no_excuse() -> None:
    judged = {
        compared("r", 10.0, ours, "", 0.1, note, excuse).verdict
        for ours, note, excuse in ((12.0, "", ""), (12.0, "a remark", ""), (8.0, "a remark", ""))
    }
    assert judged == {"not reproducible"}
    excused = compared("r", 10.0, 12.0, "", 0.1, "a remark", "another machine")
    assert (excused.verdict, excused.note) == ("explained", "a remark; another machine")
    good = compared("r", 10.0, 10.5, "", 0.1, "a remark", "another machine")
    assert (good.verdict, good.note) == ("reproduced", "a remark")


def test_a_range_is_its_ends_and_not_its_middle() -> None:
    verdicts = [ranged("r", (12, 14), ours, "us").verdict for ours in (11.7, 12.0, 14.0, 14.3)]
    assert verdicts == ["not reproducible", "reproduced", "reproduced", "not reproducible"]
    assert ranged("r", (12, 14), 11.7, "us", excuse="why").verdict == "explained"


def test_latencies_are_of_single_requests(outcomes: Outcomes) -> None:
    # Two reads of 512 B one after the other would take twice as long as one of 256 B, and more.
    short, long = (card.seen_us(outcomes[f"latency {size}"]) for size in (256, 1024))
    assert short < long < 1.5 * short
    asked = {
        arguments[1]
        for keep, arguments in machine.jobs(machine.Measured())
        if "-c" in arguments and arguments[arguments.index("-a") + 1] == "0"
    }
    assert asked == {"1B", "256B", "512B"}


def test_the_closed_form_and_the_simulator_agree(rows: list[Row]) -> None:
    ((writes, reads),) = _core.model_nettlp([256], 10e9, 256, 512, 12)
    simulated = next(row.ours for row in rows if row.result.endswith("encapsulation"))
    assert writes == reads == pytest.approx(10e9 * 256 / 340)
    assert simulated == pytest.approx(writes / 1e9, rel=1e-3)


def test_without_captures_the_row_is_not_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLPLAB_DATA", raising=False)
    (row,) = captures.beside(None).rows
    assert (row.verdict, row.ours, row.relative_error) == ("not reproducible", None, None)
    assert "--captures" in row.note


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="needs TLPLAB_DATA with the published captures")
def test_the_captures_reproduce_the_published_figures() -> None:
    found = captures.beside(str(CAPTURES))
    there = {path.name.partition("-")[0] for path in CAPTURES.iterdir()}
    absent = {f"captured, figure 14, {device}" for device in captures.TAGS if device not in there}
    assert {row.result for row in found.rows if row.verdict != "reproduced"} == absent
    assert [row.ours for row in found.rows if "figure 15" in row.result] == [6, 6]
    # Those in which nobody reads have no tags to show.
    assert (
        len(found.drawings)
        == 2
        + sum(path.name.startswith(tuple(captures.TAGS)) and "-read-" not in path.name for path in CAPTURES.iterdir())
        + 1
    )


@pytest.mark.parametrize("content", [b"no capture", PCAP_HEADER], ids=["damaged", "empty"])
def test_foreign_captures_make_rows_that_are_not_reproducible(content: bytes, tmp_path: Path) -> None:
    names = ("mrd-512byte-plx", "mrd-512byte-rc", "x520-rx", "xl710-rx", "simple-nic-ping", "e810-rx")
    for name in names:
        (tmp_path / f"{name}.pcap").write_bytes(content)
    found = captures.beside(str(tmp_path))
    assert {row.verdict for row in found.rows} == {"not reproducible"}
    assert all(row.note for row in found.rows if row.ours is None)
    for figure in ("figure 13, switch", "figure 13, root complex", "figure 14, xl710", "figure 15"):
        assert any(figure in row.result for row in found.rows), figure
    # What the paper does not have is told, too.
    assert "e810-rx.pcap" in found.text
    for drawing in found.drawings:
        assert drawing.svg().startswith("<svg")


@pytest.fixture(scope="module")
def ours() -> Beside:
    return topologies.beside(ROOT / "studies" / STUDY.folder)


def test_our_own_devices_give_the_figures_of_captures(ours: Beside) -> None:
    """The adapter, as a switch and as a root complex; tags that it must leave as they are; the simple NIC."""
    missed = [(row.result, row.ours, row.note) for row in ours.rows if row.verdict != "reproduced"]
    assert missed == []
    assert len(ours.rows) == 2 * 3 + len(captures.TAGS) * 2 + 2
    assert all(row.result.startswith("ours, ") for row in ours.rows)
    assert len(ours.drawings) == 2 + len(captures.TAGS) + 1


def test_tags_of_a_device_are_captured_on_both_links(tmp_path: Path) -> None:
    with topologies.pseudo_memory(tmp_path / "seen.pcapng") as (end, base):
        _core.Dma(end((24, 249))).read_many([(base + 2048 * n, 1500) for n in range(128)])
    directions = capture.summarise(str(tmp_path / "seen.pcapng"))["directions"]
    used = [direction["tags"]["used"] for direction in directions if direction["tags"]["count"]]
    assert used == [list(range(24, 250))] * 2


def a_packet(steps: Sequence[captures.Step], tag: int = 7) -> list[dict[str, Any]]:
    """The frames of the steps."""
    places = {"doorbell": 0xA0000000, "descriptor": 0x1000, "packet": 0x2000, "interrupt": 0xFEE00000}
    frames = []
    for step in steps:
        tlp: dict[str, Any] = {"kind": step.kind, "length": step.length, "tag": tag}
        if step.place:
            tlp["address"] = f"{places[step.place] + (step.register or 0):#x}"
        frames.append({"from": step.by, "to": "NIC" if step.by == "host" else "host", "tlp": tlp})
    return frames


def changed(frames: list[dict[str, Any]], number: int, **what: Any) -> list[dict[str, Any]]:
    """One of the frames has another TLP."""
    frame = frames[number]
    return [*frames[:number], {**frame, "tlp": {**frame["tlp"], **what}}, *frames[number + 1 :]]


@pytest.mark.parametrize("steps", [captures.TRANSMIT, captures.RECEIVE], ids=["sent", "received"])
def test_the_order_of_tlps_is_looked_at(steps: Sequence[captures.Step]) -> None:
    right = a_packet(steps)
    assert captures.longest(right, steps) == list(range(6))
    # Of two packets at once each is found.
    both = [frame for pair in zip(a_packet(steps, 3), right, strict=True) for frame in pair]
    assert len(captures.longest(both, steps)) == 6
    assert len(captures.longest(right[::-1], steps)) < 6
    assert captures.longest([], steps) == []
    answered = [number for number, step in enumerate(steps) if step.kind == "CplD"]
    for number in answered:
        assert captures.longest(changed(right, number, tag=8), steps) == list(range(number)), (
            "an answer to something else"
        )
    doorbell = next(number for number, step in enumerate(steps) if step.register)
    elsewhere = changed(right, doorbell, address="0xa0000020")
    assert captures.longest(elsewhere, steps) == list(range(doorbell))


def test_the_descriptor_that_was_written_is_the_one_read_again() -> None:
    other = changed(a_packet(captures.RECEIVE), 4, address="0x1010")
    assert captures.longest(other, captures.RECEIVE) == [0, 1, 2, 3]


def test_the_other_ring_s_descriptor_is_none_of_a_packet_that_is_sent() -> None:
    doorbell, *rest = a_packet(captures.TRANSMIT)
    other = changed([rest[0]], 0, address="0x3000", tag=3)
    frames = [doorbell, *other, *rest]
    assert captures.longest(frames, captures.TRANSMIT) == [0, 1], "nothing tells them apart"
    assert captures.longest(frames, captures.TRANSMIT, {0x3000}) == [0, 2, 3, 4, 5, 6]


def answer(rate: float, p50: float = 13e3, p99: float = 20e3, **more: float) -> dict[str, Any]:
    latency = {"min": 12e3, "p50": p50, "p99": p99, "max": 45e3, "stddev": 1e3, **more}
    return {"bits_per_second": rate, "operations_per_second": rate / 2048, "latency_ns": latency}


def saw(tooth: float, rise: float = 1.2) -> dict[int, dict[str, Any]]:
    """Rates by size: each tooth so deep, and rising so much until the next."""
    found, rate = {}, 1e9
    for size in machine.TEETH:
        found.update({size: answer(rate), size + 16: answer(rate * tooth)})
        rate *= tooth * rise
    return found


def measured(tooth: float, p99: float) -> machine.Measured:
    """As on a machine like the paper's, with teeth so deep and tails so long."""
    found = machine.Measured(teeth=saw(tooth), software=saw(tooth))
    for size in machine.SIZES:
        found.reads.update({(size, lanes): answer(166e6 * lanes) for lanes in machine.LANES})
    found.latency.update({size: answer(1e9, p99=p99) for size in machine.LATENCIES})
    found.writes.update({(size, lanes): answer(1e9) for size in (256, 512) for lanes in machine.LANES})
    for size, published in card.TABLE_2.items():
        listed = {what: value * 1e3 for what, value in published.items() if what != "median"}
        found.table[size] = answer(1e9, published["median"] * 1e3, p99, **listed)
    return found


def test_shapes_that_do_not_come_out_are_not_called_reproduced() -> None:
    idle = machine.Surroundings(16)

    def verdicts(found: machine.Measured, here: machine.Surroundings, part: str) -> set[str]:
        return {row.verdict for row in machine.rows(found, here) if part in row.result}

    good = measured(0.8, 20e3)
    for part in ("figure 8", "figure 11: 16 B", "figure 11: over", "p99", "max", "threads to 1", "table 2"):
        assert verdicts(good, idle, part) == {"reproduced"}, part
    bad = measured(1.1, 60e3)
    assert verdicts(bad, idle, "behind") == verdicts(bad, idle, "p99") == {"not reproducible"}
    assert verdicts(measured(0.98, 20e3), idle, "behind") == {"not reproducible"}
    # Above the published bound, and still in time for a root complex.
    assert verdicts(measured(0.8, 40e3), idle, "B: p99") == {"explained", "reproduced"}
    # Of a machine that does other things meanwhile, or whose operations fail, nothing is claimed.
    for found in (good, bad):
        for here in (machine.Surroundings(16, others=0.5), machine.Surroundings(16, failures=0.01)):
            assert verdicts(found, here, "") == {"not reproducible"}


def test_teeth_fall_and_rise() -> None:
    def verdicts(tooth: float, rise: float) -> list[str]:
        found = {size: one["bits_per_second"] for size, one in saw(tooth, rise).items()}
        return [row.verdict for row in teeth("f", found, 0.95)]

    assert verdicts(0.8, 1.2) == ["reproduced"] * 3
    assert verdicts(0.8, 1.01) == ["reproduced", "reproduced", "not reproducible"]
    assert verdicts(0.97, 1.2) == ["not reproducible", "not reproducible", "reproduced"]


def test_work_of_other_processes_is_separated_from_our_own() -> None:
    before = machine.Clocks.now()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    # Python's clock tells nanoseconds, this one hundredths of a second.
    assert machine.Clocks.now().own - before.own >= 0.08
    # Ten seconds in which two processors worked, for six seconds of them for us.
    later = machine.Clocks(before.passed + 10, before.worked + 20, before.own + 6)
    assert later.others_since(before) == pytest.approx(1.4)
    assert machine.Clocks(before.passed + 10, before.worked, before.own + 6).others_since(before) == 0


def test_the_deviation_is_that_of_the_histogram() -> None:
    assert deviation([(10, 1), (20, 2), (30, 1)]) == pytest.approx(7.0711, abs=1e-4)
    assert deviation([]) == 0


def namespaces() -> set[str]:
    """Of this process, all that there are."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.startswith(f"tlp{os.getpid()}-")}


@contextlib.contextmanager
def wire_or_skip() -> Iterator[Wire]:
    with contextlib.ExitStack() as stack:
        try:
            wire = stack.enter_context(laid())
        except NoNamespacesError as why:
            lacking(str(why))
        yield wire
    assert namespaces() == set()


def test_software_and_adapter_meet_over_a_cable_that_goes_away_again() -> None:
    with wire_or_skip() as wire:
        wire.start(wire.host, "adapter", "--local", ADAPTER, "--peer", SOFTWARE, "--allow-remote", "--quiet")
        wire.wait()
        found = wire.perf("-c", "100", "-L", "1KiB", "--verify", "--timeout", "2000")
        assert len(namespaces()) == 2
    assert (found["operations"], found["wrong"], found["errors"]) == (100, 0, {})


def test_failed_commands_have_a_reason_and_leave_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "PATIENCE", 0.5)
    with wire_or_skip() as wire:
        with pytest.raises(CommandError, match="no answer for messages"):
            wire.perf("-c", "1")
        # What hears neither SIGTERM nor says a word is ended all the same.
        deaf = ["sh", "-c", "trap '' TERM; exec sleep 600"]
        monkeypatch.setattr(wire, "command", lambda end, *_: end.command(deaf))
        wire.start(wire.host)
        monkeypatch.setattr(wire_module, "LONGEST", 0.5)
        with pytest.raises(CommandError, match="no end in"):
            wire.perf("-c", "1")
        monkeypatch.setattr(wire, "command", lambda end, *_: end.command(["false"]))
        with pytest.raises(CommandError, match="exit status 1, without a word"):
            wire.perf("-c", "1")
    (process,) = wire.started
    assert process.returncode == -signal.SIGKILL


def test_sigterm_takes_the_namespaces_away() -> None:
    with wire_or_skip():
        pass
    work = "import sys; from pathlib import Path; from tlplab.ending import end_in_order; from studies.nettlp import beside; "
    work += "end_in_order(); beside(Path(sys.argv[1]), None, quiet=True)"
    command = [sys.executable, "-c", work, str(ROOT / "studies" / STUDY.folder)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT)

    def there() -> bool:
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        return f"tlp{process.pid}-" in listed

    try:
        until = time.monotonic() + 120
        while not there():
            assert process.poll() is None, "it has ended"
            assert time.monotonic() < until, "it does not come to measure"
            time.sleep(0.1)
        process.terminate()
        assert process.wait(timeout=60) != 0
        assert not there()
    finally:
        process.kill()
        process.wait()


def test_options_of_this_study_are_refused_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["reproduce", "gem5", "--no-measure"]) == 2
    assert "for nettlp" in capsys.readouterr().err
    assert status(["reproduce", "nettlp", "--captures", "/nonexistent"]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_without_namespaces_the_row_names_iproute2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (row,) = machine.beside(quiet=True).rows
    assert (row.verdict, row.ours) == ("not reproducible", None)
    assert "iproute2" in row.note


def test_a_failed_capture_makes_a_row_with_its_reason(tmp_path: Path) -> None:
    (row,) = topologies.beside(tmp_path).rows
    assert (row.verdict, row.ours) == ("not reproducible", None)
    assert "simple-nic.toml" in row.note


def test_the_page_has_a_part_for_each_source(outcomes: Outcomes, rows: list[Row], ours: Beside) -> None:
    page = running.report(STUDY, outcomes, rows, [ours])
    assert page.count("<h2>") == 2
    assert page.count("<figure><svg") == len(STUDY.charts(outcomes)) + len(ours.drawings)
    assert "Figure 13, ours: by way of a root complex" in page
    assert ours.text in running.texts(STUDY, outcomes, rows, [ours])


def checksum(data: bytes) -> int:
    """Of IP and ICMP, RFC 1071: 0 if it is right."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


@pytest.mark.full
def test_a_ping_of_linux_through_the_nic_reads_as_in_the_paper(tmp_path: Path) -> None:
    needs_tools()
    guest.ping(tmp_path)
    source = captures.Source(tmp_path, "guest")
    source.ping()
    assert [(row.published, row.ours) for row in source.rows] == [(6, 6), (6, 6)]
    # Each packet of 98 B that Linux gave to the NIC, in a completion, came back to it, in a memory write.
    data = (tmp_path / f"{captures.PING}.pcapng").read_bytes()
    packets = Counter(
        data[found.start() - 12 : found.start() + 86] for found in re.finditer(b"\x08\x00\x45\x00\x00\x54", data)
    )
    whole = {packet for packet, times in packets.items() if checksum(packet[14:34]) == 0 and checksum(packet[34:]) == 0}
    kinds = {(packet[26:30], packet[30:34], packet[34]) for packet in whole}
    near, far = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
    assert {(near, far, 8), (far, near, 0)} <= kinds
    assert any(packets[packet] == 2 for packet in whole)
    assert max(packets[packet] for packet in whole) == 2


@pytest.mark.full
@pytest.mark.long
def test_the_figures_from_captures_of_a_guest(tmp_path: Path) -> None:
    needs_tools()
    rows = guest.captures(tmp_path).rows
    assert {row.result for row in rows if row.verdict != "reproduced"} == {"guest, figure 13, root complex"}
    assert len(rows) == 3 + 1 + 2 * len(captures.TAGS) + 2


def test_the_output_of_the_published_library_is_parsed(tmp_path: Path) -> None:
    said = library.Said("   0: 81920 bps\n   0: 40 tps\n   1: 2 bps\n   1: 100 tps\n   2: 2 bps\n   2: 300 tps\n")
    assert said.rates == [100, 300]
    assert said.rate == 200
    assert library.Said("latency: cpu on 0, 17 usec\nlatency: cpu on 0, 19 usec\n").latencies == [17, 19]
    with pytest.raises(CommandError, match="no checkout of the published library"):
        library.build(tmp_path, tmp_path)
    with pytest.raises(CommandError, match="tells no figures"):
        library.run(["true"])


def test_the_published_library_stands_beside_ours_in_a_guest() -> None:
    ours = machine.Measured(reads={(256, 1): {"operations_per_second": 30e3}})
    theirs = guest.Published({(256, 1): 20e3, (512, 1): 15e3, (512, 2): 25e3}, {256: 60e3, 512: 31e3}, {1: 13.0})
    rows = guest.by_library(theirs, ours, machine.Surroundings(2))
    assert [(row.ours, row.verdict) for row in rows] == [
        (20, "explained"),
        (pytest.approx(0.1024), "explained"),
        (13, "reproduced"),
        (pytest.approx(2 * 31 / 60), "reproduced"),
        (1.5, "reproduced"),
    ]
    assert {row.verdict for row in guest.by_library(theirs, ours, machine.Surroundings(2, others=0.5))} == {
        "not reproducible"
    }
    absent = guest.by_library(guest.Published(), ours, machine.Surroundings(2))
    assert [row.verdict for row in absent] == ["not reproducible"]
    assert "--library" in absent[0].note
