"""Captures of random runs: `tlplab dump` and Wireshark with the dissector find every TLP that the run counts."""

from __future__ import annotations

import collections
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from privilege import lacking
from test_dissector import TSHARK, compare

DAMAGES = [
    "corrupt", "drop", "poison", "type", "length", "payload", "boundary", "tag", "requester", "byte-count", "address",
    "abort", "refuse", "lose",
]  # fmt: skip
LINKS = ["gen1 x1", "gen2 x4", "gen3 x2", "gen3 x8", "gen4 x4", "gen5 x16"]


def experiment(seed: int) -> tuple[str, dict[str, str]]:
    """A random experiment, and the trace tables that it needs, by name."""
    draw = random.Random(seed)
    flit = seed % 4 == 3
    host = {"ecrc": "true", "enumeration": '"simulated"', "completions": '"rcb"'}
    lines = ['title = "random"', 'stop = "25us"', f"seed = {seed}", "[host]"]
    lines += [f"{key} = {host[key]}" for key in sorted(draw.sample(sorted(host), draw.randrange(4)))]
    parents, components, files = ["host.rp0"], [], {}

    def place(kind: str, name: str, root: int) -> None:
        parent = draw.choice(parents)
        link = "gen6 x4 flit" if flit else draw.choice(LINKS)
        under = f"host.rp{root}" if parent == "host.rp0" else parent
        lines.extend([f"[{kind}.{name}]", f'under = "{under}"', f'link = "{link}"'])
        components.append(name)

    switches = draw.randrange(3)
    for number in range(switches):
        place("switch", f"sw{number}", number)
        parents.append(f"sw{number}")
    loads = []
    for number in range(draw.randint(1, 3)):
        name = f"d{number}"
        place("device", name, switches + number)
        size, offset = draw.choice([draw.randint(1, 20), draw.randint(1, 5000)]), draw.randrange(70)
        match draw.randrange(4):
            case 0:
                op = draw.choice(["read", "write", "both"])
                loads += [f"[load.{name}]", f'op = "{op}"', f'size = "{size}B"', f'offset = "{offset}B"']
                loads += [f"outstanding = {draw.randint(1, 8)}"]
            case 1:
                loads += [f"[load.{name}]", f'replay = "{name}.csv"', 'timing = "fast"']
                rows = ["time_ns,op,address,bytes,requester,tag"]
                for row in range(20):
                    bytes_ = draw.choice([0, draw.randint(1, 20), draw.randint(1, 2048)])
                    op = "read" if bytes_ == 0 else draw.choice(["read", "write"])
                    rows.append(f"{row},{op},{draw.randrange(2048):#x},{bytes_},19:00.0,1")
                files[f"{name}.csv"] = "\n".join(rows) + "\n"
            case 2:
                lines.append(f'model = "{draw.choice(["copier", "ring"])}"')
            case _:
                op = draw.choice(["mmio-read", "mmio-write"])
                loads += [f"[load.h{number}]", 'device = "host"', f'target = "{name}"', f'op = "{op}"']
                loads += [f'size = "{size % 64 + 1}B"', f'offset = "{offset}B"', "outstanding = 3"]
    if not flit and seed % 2:
        what = draw.choice(["ber = 1e-5", f'tlp = {draw.randint(1, 20)}\ncount = 3\ndamage = "{draw.choice(DAMAGES)}"'])
        direction = draw.choice(["up", "down"])
        loads += ["[[fault]]", f'link = "{draw.choice(components)}"', f'direction = "{direction}"', what]
    return "\n".join(lines + loads) + "\n", files


def counted(result: dict[str, Any]) -> dict[str, int]:
    """TLPs sent for the first time in each direction, as the run counts them."""
    return {f"{way['from']} → {way['to']}": way["tlps"] for link in result["links"] for way in link["directions"]}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_wireshark_finds_every_tlp_of_a_random_run(seed: int, tmp_path: Path) -> None:
    if TSHARK is None:
        lacking("tshark is not installed")
    text, files = experiment(seed)
    for name, content in {"random.toml": text, **files}.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    capture, results = tmp_path / "run.pcapng", tmp_path / "run.json"
    command = [sys.executable, "-m", "tlplab", "run", str(tmp_path / "random.toml"), "--quiet"]
    done = subprocess.run(
        [*command, "--pcap", str(capture), "--json", str(results)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr + text
    # Every frame is decoded by both, to the same fields; none is malformed.
    lines = compare(capture)
    assert not [line for line in lines.values() if "malformed" in line], text
    first = collections.Counter(
        f"{line['from']} → {line['to']}"
        for line in lines.values()
        if "tlp" in line and not line.get("replay") and not line.get("nullified")
    )
    expected = {way: tlps for way, tlps in counted(json.loads(results.read_text(encoding="utf-8"))).items() if tlps}
    assert dict(first) == expected, text
    assert all(line.get("ecrc") != "bad" for line in lines.values())


def test_a_tag_that_a_capture_has_no_room_for_is_an_error_that_names_it(tmp_path: Path) -> None:
    source, capture = tmp_path / "wide.toml", tmp_path / "run.pcapng"
    source.write_text(
        'title = "14-bit tags"\nstop = "40us"\n[host]\nlatency = "5us"\n[device.ssd]\nunder = "host.rp0"\n'
        'link = "gen6 x16 flit"\ntags = 2000\n[load.ssd]\nop = "read"\nsize = "64B"\noutstanding = 2000\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "tlplab", "run", str(source), "--quiet", "--pcap", str(capture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert not capture.exists()
    assert f"{capture}: cannot write: MRd, len 16, " in done.stderr
    assert " tag 0x400, " in done.stderr
    assert " on ssd → host.rp0 at " in done.stderr
    assert "Traceback" not in done.stderr
