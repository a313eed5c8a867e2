"""The output of lspci is read without loss, in all versions; a broken file causes a message only."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lspci_text import Style, machines, styles, text_of

from tlplab.scan import report, scanned, text, topology
from tlplab.scan.facts import Address, Function, Register
from tlplab.scan.text import NoDumpError

REAL = sorted(Path(os.environ.get("TLPLAB_DATA", "/nowhere")).glob("pciebench/*/sys-lspci.txt"))
# What the text has beside facts.
WORDS = {"capabilities", "fields", "unread"}
STYLE = Style(judged=True, commas=False, split=True, domains=False, numbers=True, indent="\t", newline="\n")


def facts(function: Function, *, without: set[str] = frozenset()) -> dict[str, object]:  # type: ignore[assignment]
    """All known facts of a function."""
    names = {field.name for field in fields(Function)} - WORDS - without
    return {name: getattr(function, name) for name in sorted(names)}


@settings(max_examples=40, deadline=None)
@given(machines(), styles)
def test_printed_dumps_are_read_in_every_style(machine: list[Function], style: Style) -> None:
    printed = text_of(machine, style)
    dump = text.read(printed)
    numbers = set() if style.numbers else {"vendor", "device", "class_code"}
    assert [facts(one, without=numbers) for one in dump.functions] == [facts(one, without=numbers) for one in machine]
    for one in dump.functions if not style.numbers else []:
        assert (one.vendor, one.device, one.class_code) == (None, None, None)
    assert sum(dump.lines.values()) == printed.count("\n") + 1
    assert (dump.lines["unread"], dump.outside) == (0, [])


@settings(max_examples=60, deadline=None)
@given(machines(), styles, st.data())
def test_a_damaged_dump_gives_a_report_or_a_message(machine: list[Function], style: Style, data: st.DataObject) -> None:
    """Lines that are missing, doubled, cut or mixed with noise: never an exception but `NoDumpError`."""
    lines = text_of(machine, style).split("\n")
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(lines) - 1))
        noise = data.draw(
            st.text(max_size=20)
            | st.sampled_from(lines)
            | st.from_regex(r"[0-9a-f]{2}: ([0-9a-f]{2} ){3}[0-9a-f]{2}", fullmatch=True)
        )
        cut = data.draw(st.integers(0, len(lines[at])))
        lines[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([[], [noise], [lines[at][:cut] + noise]])
        )
        if not lines:
            return
    try:
        scan = scanned.from_text("a dump", "\n".join(lines))
    except NoDumpError:
        return
    assert all(len(line) <= 80 or "setpci" in line for line in report.lines(scan, 80, everything=True))
    assert topology.experiment(scan)[0].startswith("# Topology")
    assert scan.document()["functions"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400) | st.binary(max_size=400).map(scanned.decoded))
def test_no_text_at_all_is_more_than_a_message(noise: str) -> None:
    with contextlib.suppress(NoDumpError):
        assert text.read(noise).functions


HEAD = "00:1c.0 PCI bridge: Vendor Device 0001\n"


@pytest.mark.parametrize(("dump", "said"), [
    ("", "it is empty"),
    ("\n\n", "it is empty"),
    ("title = 'an experiment'\n", "no line begins with the address"),
    ("-[0000:00]-+-00.0\n           \\-1c.0-[01]----00.0\n", "the tree of lspci -t"),
    ('00:00.0 "Host bridge" "Intel Corporation" "Device 0d57"\n', "lspci -m"),
    ("Slot:\t00:00.0\nClass:\tHost bridge\n", "lspci -vm"),
    ("00:1c.0/00.0 Ethernet controller: Vendor\n", "lspci -P"),
    ("00: 86 80\n", "line 1: bytes without a function above them"),
    (HEAD + "00: 86 80 00 00\n10: 00\n", "line 3: the bytes at 10 do not follow"),
    (HEAD + HEAD, "line 2: 00:1c.0 appears twice"),
])  # fmt: skip
def test_text_other_than_a_dump_is_refused(dump: str, said: str) -> None:
    with pytest.raises(NoDumpError, match=re.escape(said)):
        text.read(dump)


@pytest.mark.parametrize(("line", "told"), [
    ("0000:3b:00.0 Ethernet controller [0200]: Mellanox Technologies MT27800 [ConnectX-5] [15b3:1017]",
     {"class_code": 0x0200, "vendor": 0x15B3, "device": 0x1017, "name": "Mellanox Technologies MT27800 [ConnectX-5]"}),
    ("00:02.0 0604: 8086:3c04 (rev 07)", {"class_code": 0x0604, "vendor": 0x8086, "device": 0x3C04, "name": None, "revision": 7}),
    ("00:02.0 Class 0604: 8086:3c04 (rev 07)", {"class_code": 0x0604, "class_name": None, "vendor": 0x8086}),
    ("00:02.0 Host bridge [0600]: Device [71ab:0100]", {"vendor": 0x71AB, "device": 0x0100, "name": None}),
    ("00:02.0 Host bridge: Device 71ab:0100", {"class_name": "Host bridge", "vendor": 0x71AB, "device": 0x0100, "name": None}),
    ("00:02.0 Host bridge: Intel Corporation Device 0d57", {"vendor": None, "device": None, "name": "Intel Corporation Device 0d57"}),
    ("00:02.0 PCI bridge: Intel: Root: Port (rev 07) (prog-if 00 [Normal decode])", {"name": "Intel: Root: Port", "revision": 7}),
    ("10000:e1:00.0 Non-Volatile memory controller: Vendor", {"address": Address(0x10000, 0xE1, 0, 0)}),
    ("00:1c.0/01:00.0 Ethernet controller: Vendor", {"address": Address(0, 1, 0, 0), "above": Address(0, 0, 0x1C, 0)}),
])  # fmt: skip
def test_first_lines(line: str, told: dict[str, object]) -> None:
    [function] = text.read(line).functions
    assert {name: getattr(function, name) for name in told} == told


def test_fields_absent_from_the_dump_are_unknown() -> None:
    """As lspci shows it without root, and with fewer v."""
    [function] = text.read(
        HEAD + "\tFlags: bus master, fast devsel, latency 0, IRQ 25, NUMA node 1\n\tCapabilities: <access denied>\n"
    ).functions
    assert (function.bus_master, function.numa_node, function.capabilities_known) == (True, 1, False)
    told = {name for name, value in facts(function).items() if value is not None and value is not False}
    assert told == {"address", "bus_master", "class_name", "name", "numa_node", "header"}
    [function] = text.read(HEAD).functions
    assert (function.header, function.capabilities_known) == (None, False), "one line says nothing of its header"


def test_text_and_bytes_together_agree_or_bytes_win() -> None:
    """`lspci -vvv -xxxx`: facts that only one of them has are there, too."""
    registers = bytearray(64)
    registers[0:4], registers[8:12], registers[14] = b"\x86\x80\x04\x3c", b"\x07\x00\x04\x06", 1
    registers[4], registers[0x18:0x1B] = 4, b"\x00\x05\x07"
    rows = "".join(f"{at:02x}: {registers[at : at + 16].hex(' ')}\n" for at in range(0, 64, 16))
    [function] = text.read(
        HEAD + "\tControl: I/O- Mem- BusMaster-\n\tKernel driver in use: pcieport\n" + rows
    ).functions
    assert (function.driver, function.name, function.bus_master) == ("pcieport", "Vendor Device 0001", True)
    assert (function.ids(), function.revision, function.class_code) == ("8086:3c04", 7, 0x0604)
    assert (function.secondary, function.subordinate) == (5, 7)


def test_unknown_lines_are_kept_and_counted() -> None:
    dump = text.read(
        "sudo lspci -vvv\n"
        + HEAD
        + "\tStatus: Cap+\n\tNew thing of 2031: yes\n\tCapabilities: [40] Flux\n\t\tFluxCap: 1.21 GW\n"
    )
    [function] = dump.functions
    assert function.unread == ["New thing of 2031: yes", "FluxCap: 1.21 GW"]
    assert dump.outside == ["sudo lspci -vvv"]
    assert dump.lines == {"outside": 1, "function": 1, "field": 1, "capability": 1, "unread": 2, "blank": 1}


def test_lines_of_an_unknown_register_change_no_known_one() -> None:
    """Also where the indentation was lost: the continuation of a register is then known by its form, and a register by its colon."""
    for tab in ("\t", ""):
        lines = [
            HEAD + f"{tab}Capabilities: [40] Express (v2) Endpoint, IntMsgNum 0", f"{tab * 2}LnkCap:\tSpeed 16GT/s, LLActRep+",
            f"{tab * 2}LnkSta:\tSpeed 8GT/s, Width x4", f"{tab * 3}TrErr- Train- SlotClk+ DLActive+ BWMgmt- ABWMgmt-",
            f"{tab * 2}LnkSta9: Speed 1024GT/s", f"{tab * 3}ABWMgmt+ Train+ DLActive-",
            f"{tab * 2}DevSta:\tCorrErr+", f"{tab * 3}FatalErr-",
        ]  # fmt: skip
        dump = text.read("\n".join(lines))
        [function] = dump.functions
        assert (function.speed, function.width, function.autonomous_changed, function.training) == (3, 4, False, False)
        assert (function.detected, function.link_active) == (["correctable"], True)
        assert function.unread == ["LnkSta9: Speed 1024GT/s", "ABWMgmt+ Train+ DLActive-"]


needs_data = pytest.mark.skipif(not REAL, reason="no dumps of real machines: set TLPLAB_DATA")


@needs_data
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parent.name)
def test_dumps_of_real_machines_are_read_without_loss(path: Path) -> None:
    """Counted and read another way: line by line, with only the blank lines as separators."""
    whole = path.read_text(encoding="utf-8", errors="replace")
    dump = text.read(whole)
    assert sum(dump.lines.values()) == whole.count("\n") + 1
    assert (dump.lines["unread"], dump.outside) == (0, [])
    blocks = [block for block in whole.split("\n\n") if block.strip()]
    assert [str(one.address) for one in dump.functions] == [block.split(" ")[0].strip() for block in blocks]
    found: Counter[str] = Counter()
    for block, function in zip(blocks, dump.functions, strict=True):
        heads = re.findall(r"^\tCapabilities: \[(\w+)(?: v\d)?\] (.*)$", block, re.MULTILINE)
        assert [(f"{one.offset:02x}", one.name) for one in function.capabilities] == heads
        kept = [line for one in function.capabilities for line in words(one.registers)] + words(function.fields)
        lines = block.strip("\n").split("\n")[1:]
        expected = [line.strip() for line in lines if not line.startswith("\tCapabilities: [")]
        assert Counter(kept) == Counter(" ".join(line.split()) for line in expected)
        found.update(check_registers(block, function))
    assert found["link"] > 10
    assert found["payload"] > 10


def words(registers: list[Register]) -> list[str]:
    """The lines of registers as they stood, but for white space."""
    lines = [f"{one.name}: {one.text}" if one.name else one.text for one in registers]
    return [" ".join(line.split()) for whole in lines for line in whole.split("\n")]


def check_registers(block: str, function: Function) -> Counter[str]:
    """Compares facts with the results of a naive search in the text of one function."""
    found: Counter[str] = Counter()
    payloads = [int(size) for size in re.findall(r"MaxPayload (\d+) bytes", block)]
    if payloads:
        assert [function.mps_supported, function.mps] == payloads
        assert [function.mrrs] == [int(size) for size in re.findall(r"MaxReadReq (\d+) bytes", block)]
        found["payload"] += 1
    else:
        assert (function.mps_supported, function.mps, function.mrrs) == (None, None, None)
    ends = re.findall(r"Lnk(?:Cap|Sta):\s.*?Speed ([\d.]+GT/s|unknown), Width x(\d+)", block)
    if ends:
        speeds = {"2.5GT/s": 1, "5GT/s": 2, "8GT/s": 3, "unknown": None}
        told = [(function.speed_possible, function.width_possible), (function.speed, function.width)]
        assert told == [(speeds[speed], int(width)) for speed, width in ends]
        found["link"] += 1
    else:
        assert (function.width, function.width_possible, function.speed) == (None, None, None)
    driver = re.search(r"Kernel driver in use: (\S+)", block)
    assert function.driver == (driver[1] if driver else None)
    target = re.search(r"Target Link Speed: ([\d.]+)GT/s", block)
    assert function.target_speed == ({"2.5": 1, "5": 2, "8": 3}[target[1]] if target else None)
    return found
