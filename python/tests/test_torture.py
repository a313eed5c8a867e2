"""Driver torture: classes of TLPs, faults, verdicts; and with a guest, drivers that take a fault and a driver that does not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import cast

import pytest
from guest import needs_guest
from privilege import lacking
from terminal import Terminal

from tlplab import _core
from tlplab.cli import status
from tlplab.guest.kernel import Kernel
from tlplab.result import Document
from tlplab.torture import cases, page, verdict
from tlplab.torture.boot import Machine, spent, strikes
from tlplab.torture.classes import PER_SECOND, Bar, Phases, Tlp, arrays, femtoseconds, frames, place, sort
from tlplab.torture.evidence import Evidence, Hop
from tlplab.torture.faults import FAULTS, WITH_DATA
from tlplab.torture.prepare import Wanted, machine_of, prepare
from tlplab.torture.verdict import SILENT, Boot, judge

ROOT = Path(__file__).resolve().parents[2]
NIC = str(ROOT / "experiments/linux/nic.toml")
NVME = str(ROOT / "experiments/linux/nvme.toml")
GOOD = Boot(("[    0.000000] nvme nvme0: ready", "10+0 records in", "done in 1.5 s"), "powered off", 0, removed=True)


def tlp(
    kind: str, direction: str = "down", number: int = 3, where: str = "0x4", before: str = "", lanes: int = 4
) -> Tlp:
    data = b"\1\2\3\4" if kind in WITH_DATA else b""
    return Tlp("ssd", direction, kind, number, 2 * 10**9, where, before, lanes, data=data)


def test_classes_are_phases_kinds_and_places() -> None:
    phases = Phases(work=100, remove=200)

    def at(time: int, where: str = "0x4") -> Tlp:
        return Tlp("ssd", "down", "MRd", 1, time, where)

    found = sort([at(50), at(99), at(100), at(200), at(120, "0x8")], phases)
    assert [(one.name, len(one.tlps)) for one in found] == [
        ("ssd probe down MRd 0x4", 2), ("ssd work down MRd 0x4", 1), ("ssd remove down MRd 0x4", 1),
        ("ssd work down MRd 0x8", 1),
    ]  # fmt: skip
    row = [f"a down MWr BAR0+{offset:#x}" for offset in range(0x100, 0x180, 4)]
    assert set(arrays(row).values()) == {"a down MWr BAR0+0x100…0x17c"}
    assert arrays(row[:8]) == {}


def test_a_place_is_a_register_a_vector_memory_or_an_interrupt() -> None:
    bars = [Bar(0, range(0x1000, 0x2000), range(0x800, 0x840))]

    def request(address: int) -> dict[str, object]:
        return {"kind": "MWr", "address": hex(address), "length": 16}

    assert place(request(0x1014), "down", bars) == "BAR0+0x14"
    assert place(request(0x1818), "down", bars) == "MSI-X+0x8"
    assert place(request(0x9000), "down", bars) == "0x9000"
    assert place(request(0x1014), "up", bars) == "memory 64 B"
    assert place(request(0xFEE0_1000), "up", bars) == "interrupt"
    assert place({"kind": "CfgRd0", "register": "0x10"}, "down", bars) == "0x10"
    assert femtoseconds("1.0000000255") == 1_000_000_025_500_000


def test_every_fault_is_an_entry_of_an_experiment() -> None:
    kinds = [("MRd", "down"), ("MWr", "down"), ("CfgRd0", "down"), ("CfgWr0", "down"), ("CplD", "up"), ("Cpl", "up")]
    every = [
        *(tlp(kind, direction) for kind, direction in kinds),
        tlp("MWr", "up", 3, "interrupt", "memory 64 B"),
        tlp("MWr", "up", 4, "memory 64 B"),
    ]
    for fault in FAULTS:
        hit = [one for one in every if fault.hits(one)]
        assert hit, fault.name
        for one in hit:
            changes = [None] if fault.changes is None else list(fault.changes(one))
            assert changes, fault.name
            for change in changes:
                entry = fault.entry(one, change).replace('"ssd"', '"nvme0"')
                _core.check(NVME, overrides=[f"fault=[{entry}]"])


def test_an_interrupt_comes_before_its_data_where_data_were_written_before_it() -> None:
    early = next(fault for fault in FAULTS if fault.name == "early")
    assert early.hits(tlp("MWr", "up", 9, "interrupt", "memory 16 B"))
    assert not early.hits(tlp("MWr", "up", 9, "interrupt", "interrupt"))
    assert not early.hits(tlp("MWr", "up", 9, "memory 16 B", "memory 16 B"))
    # What is late is the write before it.
    assert "tlp = 8" in early.to_toml(tlp("MWr", "up", 9, "interrupt", "memory 16 B"))


def test_a_link_of_one_lane_cannot_be_narrowed() -> None:
    narrowed = next(fault for fault in FAULTS if fault.name == "narrowed")
    assert narrowed.hits(tlp("MRd", lanes=2))
    assert not narrowed.hits(tlp("MRd", lanes=1))


def test_a_plan_takes_the_first_or_every_tlp() -> None:
    of = sort([tlp("MRd", number=1), tlp("MRd", number=2)], Phases(10**12, 10**13))
    lost = [fault for fault in FAULTS if fault.name == "lost"]
    assert [case.name for case in cases.plan(of, lost, cases.Numbers(of), every=False)] == [
        "ssd probe down MRd 0x4: lost"
    ]
    every = cases.plan(of, lost, cases.Numbers(of), every=True)
    assert [case.name for case in every] == ["ssd probe down MRd 0x4: lost", "ssd probe down MRd 0x4 #2: lost"]
    assert cases.sample(every, 1) == every[:1]
    assert cases.sample(every, 5) == every


def test_data_change_at_each_place_once_for_each_content() -> None:
    tlps = [replace(tlp("MWr", "up", number, "memory 12 B"), data=data) for number, data in enumerate(
        [bytes.fromhex("00000000 44332211 0a"), bytes.fromhex("00000000 55332211 0a"), bytes(8)], 1
    )]  # fmt: skip
    of = sort(tlps, Phases(10**12, 10**13))

    def planned(name: str, *, every: bool = False) -> list[str]:
        fault = next(fault for fault in FAULTS if fault.name == name)
        found = cases.plan(of, [fault], cases.Numbers(of), every=every)
        return [f"{case.name} {case.entries()[0].partition('byte')[2]}" for case in found]

    name = "ssd probe up MWr memory 12 B"
    assert planned("zero") == [
        f"{name}: zero at 4  = 4, flip = 0x11223344}}",
        f"{name}: zero at 8  = 8, flip = 0xa}}",
        f"{name} #2: zero at 4  = 4, flip = 0x11223355}}",
    ]
    places = [(one.partition(":")[0].removeprefix(name), one.split()[-4].rstrip(",")) for one in planned("inverted")]
    assert places == [("", "0"), ("", "4"), ("", "8"), (" #2", "4"), (" #3", "4")], "of 0 and 0xa there is one each"
    assert len(planned("byte")) == 9 + 4 + 4
    assert len(planned("byte", every=True)) == 9 + 9 + 8
    many = [replace(tlp("MWr", "up", 1, "memory 4 B"), data=bytes([1, n, 3, 4])) for n in range(200)]
    fault = next(fault for fault in FAULTS if fault.name == "inverted")
    for phases, expected in [(Phases(10**12, 10**13), 200), (Phases(0, 10**13), cases.FIRST)]:
        of = sort(many, phases)
        assert len(cases.plan(of, [fault], cases.Numbers(of), every=False)) == expected, "in the probe all are tried"


def test_data_that_change_are_counted_among_the_tlps_that_have_the_byte() -> None:
    sizes = [4, 16, 4, 4, 16, 8, 16]
    tlps = [replace(tlp("MWr", "up", number, f"memory {size} B"), data=bytes([number]) * size)
            for number, size in enumerate(sizes, 1)]  # fmt: skip
    of = sort([*tlps, replace(tlps[1], direction="down")], Phases(10**12, 10**13))
    numbers = cases.Numbers(of)
    assert [numbers.of(one, 0) for one in tlps] == [1, 2, 3, 4, 5, 6, 7]
    assert [numbers.of(one, 7) for one in tlps if len(one.data) > 7] == [1, 2, 3, 4]
    assert [numbers.of(one, 12) for one in tlps if len(one.data) > 12] == [1, 2, 3]
    fault = next(fault for fault in FAULTS if fault.name == "byte")
    last = [case for case in cases.plan(of, [fault], numbers, every=False) if case.name.endswith("#3: byte at 15")]
    assert [case.entries()[0].partition("tlp = ")[2][:2] for case in last] == ["3,"]


def pair(first_time: int = 20, second_time: int = 30, fault: str = "UR") -> cases.Case:
    first = cases.Case("ssd work up MRd 0x4", "lost", replace(tlp("MRd", "up", 3), time=first_time * 10**6), 1)
    second = replace(tlp("MRd", "up", 7), time=second_time * 10**6)
    return cases.Case("ssd recovery up MRd 0x8", fault, second, 1, first=first)


def test_time_after_a_first_fault_in_its_phase_is_recovery() -> None:
    phases = Phases(work=100, remove=200, fault=150)
    at = [50, 100, 150, 151, 199, 200]
    assert [phases.of(time) for time in at] == ["probe", "work", "work", "recovery", "recovery", "remove"]
    assert [replace(phases, fault=40).of(time) for time in at] == ["recovery", "work", "work", "work", "work", "remove"]


def test_a_pair_has_both_faults_in_the_order_in_which_they_happen() -> None:
    both = pair()
    assert both.name == "ssd work up MRd 0x4: lost, then ssd recovery up MRd 0x8: UR"
    assert both.row == "ssd recovery up MRd 0x8 after ssd work up MRd 0x4: lost"
    lost, refused = both.entries()
    assert "tlp = 3" in lost
    assert '"lose"' in lost
    assert "tlp = 7" in refused
    assert '"refuse"' in refused
    entries = ", ".join(both.entries()).replace('"ssd"', '"nvme0"')
    _core.check(NVME, overrides=[f"fault=[{entries}]"])
    machine = Machine("x.toml", (), None, Kernel(Path("linux"), Path("initramfs"), ""), {})
    assert cases.command(machine, both) == f"tlplab torture x.toml --case '{both.name}'"
    assert Wanted(case=both.name).alone() == ("ssd recovery up MRd 0x8: UR", ["ssd work up MRd 0x4: lost"])
    assert Wanted(case="ssd work up MRd 0x4: lost").alone() == ("ssd work up MRd 0x4: lost", [])


def test_processor_time_of_a_process_and_its_children_is_counted() -> None:
    before = spent()
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass\nprint(1, flush=True)\ninput()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        busy = spent() - before
        time.sleep(0.5)
        waiting = spent() - before - busy
        child.communicate(b"\n")
    assert busy >= 0.45
    assert waiting < 0.25


def told(faults: list[dict[str, object]], outages: list[dict[str, object]]) -> Document:
    """The parts of a result that describe faults."""
    return cast("Document", {"faults": faults, "outages": outages})


@pytest.mark.parametrize(("hits", "struck"), [((1, 0), 0), ((0, 1), 1), ((1, 1), 1)])
def test_of_a_pair_only_the_second_fault_counts(hits: tuple[int, int], struck: int) -> None:
    its = {"link": "ssd", "direction": "up", "of": "MRd"}
    faults = [{**its, "damage": damage, "first": first, "struck": hit}
              for damage, first, hit in zip(("lose", "refuse"), (3, 7), hits, strict=True)]  # fmt: skip
    assert strikes(told(faults, []), pair().entries()[-1]) == struck


def test_a_link_that_goes_down_for_another_reason_is_not_the_fault() -> None:
    (*_, entry) = pair(second_time=30, fault="hot reset").entries()
    down = {"link": "ssd", "down_fs": 30 * 10**6}
    assert strikes(told([], [down]), entry) == 1
    for other in ({**down, "down_fs": 31 * 10**6}, {**down, "link": "sw0"}):
        assert strikes(told([], [other]), entry) == 0
    (*_, entry) = pair(fault="narrowed").entries()
    assert strikes(told([], [down]), entry) is None


@pytest.mark.parametrize(
    ("boot", "word", "why"),
    [
        (GOOD, "recovered", ""),
        (
            Boot((*GOOD.console, "[    9.1] nvme nvme0: I/O timeout"), "powered off", 0, True),
            "recovered",
            "I/O timeout",
        ),
        (Boot((*GOOD.console, "dd: I/O error"), "powered off", 1, True), "degraded", "dd: I/O error"),
        (Boot((*GOOD.console, "/tmp/a /tmp/b differ: char 5"), "powered off", 1, True), "corrupted", "differ"),
        (Boot(GOOD.console, "a device accessed 4 B at 0x0", None, False, failed=True), "corrupted", "accessed 4 B"),
        (Boot(GOOD.console[:1], SILENT, None, False), "hung", "the work does not end"),
        (Boot(GOOD.console, SILENT, 0, False), "hung", "the devices are not released"),
        (Boot(GOOD.console, SILENT, 0, True), "hung", "does not power off"),
        (Boot(GOOD.console[:1], verdict.SPINS, None, False), "undecided", "without advancing the guest's time"),
        (Boot(GOOD.console, verdict.ENDLESS, None, False), "degraded", "after an hour"),
        (
            Boot((*GOOD.console, "[    1.0] Kernel panic - not syncing"), "died: 1", None, False, died=True),
            "oops",
            "panic",
        ),
        (Boot((*GOOD.console, "WARNING: drivers/pci/pci.c:1"), "powered off", 0, True), "oops", "pci.c"),
        # The kernel prints a trace for an allocation that failed.
        (
            Boot(
                (*GOOD.console, "ip: vmalloc error: size 10240", "Call Trace:", "ip: no memory"), "powered off", 1, True
            ),
            "degraded",
            "vmalloc error",
        ),
        (Boot((*GOOD.console, "unreferenced object 0x60a0 (size 64):"), "powered off", 0, True), "leaked", "size 64"),
        (
            Boot(
                (*GOOD.console, "DMA-API: nvme: device driver has pending DMA allocations", "Call Trace:"), "", 0, True
            ),
            "leaked",
            "pending DMA",
        ),
        (Boot(GOOD.console, "powered off", 0, True, struck=1), "recovered", ""),
        (Boot(GOOD.console, "powered off", 0, True, struck=0), "missed", "did not occur"),
        # The same line again is news; other figures of the same line are not.
        (Boot((*GOOD.console[:2], "done in 7.25 s"), "powered off", 0, True), "recovered", ""),
        (Boot((*GOOD.console, GOOD.console[1]), "powered off", 0, True), "recovered", "10+0 records in"),
    ],
)
def test_verdicts(boot: Boot, word: str, why: str) -> None:
    judged = judge(boot, GOOD)
    assert judged.word == word
    assert why in judged.why


def test_the_page_holds_text_that_looks_like_markup() -> None:
    document = {
        "title": "<b>x</b>",
        "cases": [],
        "classes": [],
        "faults": [],
        "verdicts": [],
        "findings": [],
        "note": "</script>",
    }
    html = page.render(document)
    assert "<title>&lt;b&gt;x&lt;/b&gt; – tortured</title>" in html
    assert html.count("</script>") == 2


def test_evidence_is_kept_once_and_comes_back_whole() -> None:
    def unpack(numbers: str, items: list[object]) -> list[object]:
        runs = [[int(end) for end in run.split("-")] for run in numbers.split()]
        return [one for run in runs for one in items[run[0] : run[-1] + 1]]

    consoles = [["a", "b", "c"], ["a", "x", "b", "c", "a"], []]
    hops = [Hop(1, 2, "sw0", "ssd", "MRd", bad=False), Hop(3, 4, "ssd", "sw0", "CplD", bad=True)]
    evidence = Evidence()
    entries = [evidence.of(console, hops[::-1]) for console in consoles]
    document = evidence.document()
    assert [unpack(entry["console"], document["lines"]) for entry in entries] == consoles
    assert document["lines"] == ["a", "b", "c", "x"]
    assert entries[0]["console"] == "0-2"
    assert unpack(entries[0]["ladder"], document["tlps"]) == [list(astuple(hop)) for hop in hops[::-1]]


def test_cases_that_end_alike_are_one_finding_with_the_fewest_tlps_before_its_fault() -> None:
    def judged(fault: str, time: int, word: str, why: str) -> cases.Judged:
        case = cases.Case("ssd work up MRd 0x4", fault, replace(tlp("MRd"), time=time), 1)
        return cases.Judged(case, verdict.Verdict(word, why, ()), (), (), 1)

    late = judged("lost", 30, "hung", "last: 0x5 after 7 s")
    soon = judged("UR", 20, "hung", "last: 0x6 after 8 s")
    other = judged("CA", 10, "hung", "last: something else")
    fine = judged("late", 5, "recovered", "")
    assert cases.findings([late, fine, soon, other]) == [
        cases.Finding(other, (other,)), cases.Finding(soon, (soon, late)),
    ]  # fmt: skip
    # One fault is less than two.
    two = replace(soon, case=replace(soon.case, first=other.case))
    assert cases.findings([two, late]) == [cases.Finding(late, (late, two))]


def test_a_case_is_repeated_with_its_kernel_and_overrides() -> None:
    machine = Machine("x.toml", ("a.b=1",), "debug", Kernel(Path("linux"), Path("initramfs"), ""), {})
    case = cases.Case("ssd work up MRd 0x4", "lost", tlp("MRd"), 1)
    assert (
        cases.command(machine, case)
        == "tlplab torture x.toml --case 'ssd work up MRd 0x4: lost' --linux debug --set a.b=1"
    )


def test_a_cell_of_the_page_shows_its_ladder_and_its_console(tmp_path: Path) -> None:
    if shutil.which("chromium") is None:
        lacking("chromium, which shows the page")
    evidence = Evidence()
    hops = [
        Hop(0, 5, "host.rp0", "sw0", "MRd of the case", bad=False),
        Hop(9, 12, "sw0", "ssd", "MRd of the case", bad=False),
    ]
    case = {
        "name": "n", "class": "ssd work down MRd 0x4", "fault": "lost", "device": "ssd", "time_fs": 9, "verdict": "hung",
        "why": "", "struck": 1, "new": ["again"], "command": "tlplab torture",
        **evidence.of(["[    0.1] again", "<end>", "[    0.2] again"], hops),
    }  # fmt: skip
    document = {
        "title": "t", "cases": [case], "classes": [case["class"]], "faults": [{"name": "lost", "doc": ""}], "verdicts": ["hung"],
        "findings": [{"verdict": "hung", "minimal": "n", "cases": ["n"]}],
        **evidence.document(),
    }  # fmt: skip
    html = tmp_path / "page.html"
    html.write_text(page.render(document) + "<script>document.querySelector('td button').click()</script>")
    command = ["chromium", "--headless", "--no-sandbox", f"--user-data-dir={tmp_path}", "--dump-dom", html.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    # The later of two equal lines is the new one, and the ladder's columns lead upwards from the device.
    assert "<b>[    0.2] again\n</b>" in shown
    assert "<span>[    0.1] again\n</span><span>&lt;end&gt;\n</span>" in shown
    assert re.findall(r'text-anchor="middle">([^<]+)<', shown) == ["ssd", "sw0", "host.rp0"]
    assert shown.count("MRd of the case</text>") == 2
    assert shown.count("<rect") == 1


@pytest.mark.full
def test_impossible_torture_cases_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    needs_guest()
    quickstart = str(ROOT / "experiments/quickstart.toml")
    for arguments, why in (
        ([quickstart], "and so no driver to test"),
        ([NVME, "--fault", "lots"], 'there is no fault "lots"; the faults are lost, corrupted'),
        ([NVME, "--device", "sw0"], 'there is no device "sw0" with a link; the devices are nvme0'),
        ([NVME, "--case", "none"], 'there is no case "none"'),
        ([NVME, "--first", "none"], '--first: there is no case "none"'),
        ([NVME, "--first", "x", "--case", "y"], "leave one of the options out"),
        ([NVME, "--first", "x", "--fault", "no memory"], "it cannot follow another fault"),
    ):
        assert status(["torture", *arguments]) == 2
        assert why in capsys.readouterr().err


@pytest.mark.full
def test_a_driver_takes_the_loss_of_a_command_and_not_that_of_a_vector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_guest()
    assert status(["torture", NVME, "--case", "nvme0 work up MRd memory 64 B: lost"]) == 0
    shown = capsys.readouterr().out
    assert "controller is down; will reset" in shown
    assert "1 MiB written and read back" in shown
    run_page = tmp_path / "run.html"
    assert status(["torture", NVME, "--case", "nvme0 probe down MWr MSI-X+0x0: lost", "--report", str(run_page)]) == 1
    assert "corrupted: " in capsys.readouterr().out
    assert "nvme0" in run_page.read_text()


@pytest.mark.full
def test_a_second_fault_meets_the_driver_as_it_mends_the_first_and_one_that_does_nothing_is_missed() -> None:
    needs_guest()
    first = "nvme0 work up MRd memory 64 B: lost"
    name = f"{first}, then nvme0 recovery down MWr BAR0+0x14: hot reset"
    machine = machine_of(NVME, (), None)
    planned = prepare(machine, Wanted(faults=[fault.name for fault in FAULTS], case=name), None)
    (case,) = planned.cases
    judged = cases.judge(machine, case, planned.references.of(case))
    assert (judged.struck, judged.verdict.word) == (1, "degraded")
    assert any("reset failure" in line for line in judged.verdict.new)
    # The first fault is in the boot that it is compared with.
    assert not any("controller is down" in line for line in judged.verdict.new)
    assert any("controller is down" in line for line in judged.console)
    assert isinstance(case.target, Tlp)
    never = (replace(case, fault="lost", target=replace(case.target, number=10**6)),
             replace(case, target=replace(case.target, time=3600 * PER_SECOND)))  # fmt: skip
    for one in never:
        assert cases.judge(machine, one, planned.references.of(one)).verdict.word == "missed"


@pytest.mark.full
def test_a_driver_that_waits_for_the_clock_in_a_loop_comes_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_guest()
    assert status(["torture", NIC, "--case", "nic0 work up MWr memory 4 B: hot reset"]) == 0
    assert "degraded: " in capsys.readouterr().out


def numbers(ranges: str) -> Iterator[int]:
    """The numbers of `0-2 7`."""
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


@pytest.mark.full
def test_an_interrupted_torture_leaves_the_verdicts_that_it_has(tmp_path: Path) -> None:
    needs_guest()
    file, page_file = tmp_path / "some.json", tmp_path / "some.html"
    words = [
        sys.executable,
        "-m",
        "tlplab",
        "torture",
        NVME,
        "--jobs",
        "1",
        "--json",
        str(file),
        "--report",
        str(page_file),
    ]
    terminal = Terminal(words, tmp_path)
    terminal.hear(b" boots")
    terminal.type(b"\x03")
    terminal.hear(b"interrupted: ")
    assert terminal.end() == 130
    found = json.loads(file.read_text())
    assert found["interrupted"]
    assert found["cases"]
    assert found["format"] in page_file.read_text()


@pytest.mark.full
def test_a_sample_has_no_case_undecided_and_the_same_verdicts_again(tmp_path: Path) -> None:
    needs_guest()
    sample, page_file = tmp_path / "sample.json", tmp_path / "sample.html"
    assert status(["torture", NVME, "--sample", "60", "--json", str(sample), "--report", str(page_file)]) == 0
    found = json.loads(sample.read_text())["cases"]
    assert len(found) == 60
    assert {one["verdict"] for one in found} <= set(verdict.VERDICTS) - {verdict.MISSED, verdict.UNDECIDED}
    # The fabric has counted on its side: each fault of a TLP, or of a link that goes down, has happened.
    assert {one["fault"] for one in found if one["struck"] is None} <= {"narrowed", "malformed", "misaddressed"}
    assert {one["verdict"] for one in found} >= {"recovered", "degraded"}
    hops = json.loads(sample.read_text())["tlps"]
    # What a link does instead comes before the TLP.
    for one in (one for one in found if one["fault"] not in {"removed", "replugged", "hot reset", "narrowed"}):
        shown = [hops[number] for number in numbers(one["ladder"])]
        # A stamp of the capture has whole hundreds of picoseconds.
        assert any(abs(hop[0] - one["time_fs"]) < 1e6 and one["device"] in hop[2:4] for hop in shown), one["name"]
    assert "nvme0" in page_file.read_text()
    again = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in again:
        assert status(["torture", NVME, "--sample", "15", "--json", str(file)]) == 0
    assert again[0].read_text() == again[1].read_text()


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "direction", "number"), [("CfgRd0", "down", 40), ("MRd", "down", 20), ("MRd", "up", 30)]
)
def test_a_fault_strikes_the_tlp_that_the_capture_counts(
    kind: str, direction: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_guest()
    refused = next(fault for fault in FAULTS if fault.name == "UR")
    entry = refused.to_toml(Tlp("nvme0", direction, kind, number, 0, ""))
    capture = tmp_path / "refused.pcapng"
    # The work may fail; its capture counts.
    status(["guest", "uml", NVME, "--quiet", "--set", f"fault=[{entry}]", "--pcap", str(capture)])
    capsys.readouterr()
    seen, struck, refusals = 0, None, []
    for frame in frames(capture):
        request = frame.get("tlp")
        if request is None or "nvme0" not in (frame["from"], frame["to"]):
            continue
        if request["kind"] == kind and frame["from" if direction == "up" else "to"] == "nvme0":
            seen += 1
            struck = frame["frame"] if seen == number else struck
        if request.get("status") == "UR":
            refusals.append(frame["response_to"])
    assert refusals == [struck]
