"""The commands of docs/tlpdma-driver.md: the test program is built, and moves data on simulated machines through the driver's ring code."""

from __future__ import annotations

import csv
import errno
import importlib.util
import io
import json
import re
import subprocess
from array import array
from pathlib import Path
from typing import Any

import pytest
from privilege import lacking

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "out/driver/tlpdma-test"
CARD = "sim:experiments/dma-card.toml"
RTL = ROOT / "out/rtl/tlpdma-trn64.so"


def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def swept(*arguments: str) -> list[dict[str, float]]:
    done = run("--only", "sweep", "--quiet", "--json", "-", *arguments)
    rows: list[dict[str, float]] = json.loads(done.stdout)["sweep"]
    return rows


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    """The second block of commands on the page, as shown."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "docs/tlpdma-driver.md").read_text(encoding="utf-8"), re.M | re.S
    )
    shown = next(block for block in blocks if "make driver-test" in block)
    done = subprocess.run(["bash", "-ec", shown], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in co-simulation: a harness" in done.stdout
    rows = list(csv.DictReader(io.StringIO(done.stdout[done.stdout.index("direction,size,") :])))
    # Gen1 x1 carries 250 MB/s before headers; the CSV says how it was measured.
    assert [row["direction"] for row in rows] == ["to-card", "from-card"]
    assert all(row["simulated"] == "1" and 190e6 < float(row["bytes_per_second"]) < 250e6 for row in rows)


@pytest.mark.full
def test_every_line_fits_a_terminal() -> None:
    shown = run("--sizes", "4:16MiB", "--runs", "1", "--latency-runs", "3", CARD).stdout + run("--help").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "Every byte came back as it was sent." in shown


@pytest.mark.full
@pytest.mark.parametrize("interrupts", ["msi-x", "intx"])
def test_any_place_works_with_either_interrupt(interrupts: str) -> None:
    options = ["--set", f"host.interrupts={interrupts}", "--sizes", "1:16KiB", "--offset", "4093", "--address", "7"]
    rows = swept(*options, CARD)
    assert len(rows) == 30
    assert all(row["interrupts_per_mib"] == pytest.approx(2**20 / row["size"], rel=0.01) for row in rows)


@pytest.mark.full
def test_long_transfers_fill_the_link_with_few_interrupts() -> None:
    rows = swept("--sizes", "64MiB", CARD)
    # 2 GB/s, and 20 to 24 bytes around payloads of 256.
    assert all(row["bytes_per_second"] > 1.8e9 and row["interrupts_per_mib"] == 0.25 for row in rows)


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "no card is named"),
        (["--sizes", "4k", CARD], 2, '"4k" is not a size'),
        (["--sizes", "8:4", CARD], 2, "8:4 has no sizes"),
        (["--speed", "9", CARD], 2, "--speed is not an option"),
        (["/dev/null"], 2, "/dev/null is not a tlpdma card"),
        (["/nowhere"], 2, "/nowhere: No such file"),
        (["--set", "a=b", "/dev/null"], 2, "only a simulated card"),
        (["sim:nowhere.toml"], 2, "nowhere.toml"),
        (["sim:experiments/dma-card.toml#nic"], 2, 'unknown device "nic"; the devices are card'),
        (["sim:experiments/ring.toml#ring"], 2, "no"),
        (["--set", "device.card.lnik=gen1 x1", CARD], 2, "link"),
        (["--address", "1GiB", CARD], 2, "the card has"),
        (["--only", "latency", "--latency-runs", "1", "--csv", "/nowhere/file", CARD], 1, "/nowhere/file"),
    ],
)
def test_wrong_arguments_are_reported(arguments: list[str], status: int, said: str) -> None:
    done = run(*arguments, status=status)
    assert said in done.stderr


def model(name: str) -> str:
    """The card's model; the RTL only where it has been built."""
    if name == "tlpdma":
        return name
    if not RTL.exists():
        lacking(f"needs {RTL.relative_to(ROOT)}, which `make rtl` builds")
    return f"rtl:{RTL}"


@pytest.mark.full
def test_the_rtl_moves_every_byte() -> None:
    options = ["--set", f"device.card.model={model('rtl')}", "--offset", "5", "--address", "3", "--runs", "1"]
    assert len(swept(*options, "--sizes", "1:64KiB", CARD)) == 34


@pytest.mark.full
@pytest.mark.parametrize("name", ["tlpdma", "rtl"])
def test_a_card_that_halted_goes_on(name: str, tmp_path: Path) -> None:
    """Requests and completions are damaged in every way that the card notices; after each a channel is reset, and works."""
    damages = ["poison", "abort", "lose", "tag", "byte-count", "requester", "refuse"]
    text = f'title = "Faults"\n[device.card]\nunder = "host.rp0"\nlink = "gen1 x8"\nmodel = "{model(name)}"\n'
    for number, damage in enumerate(damages):
        up = damage in ("abort", "refuse")
        text += f'[[fault]]\nlink = "card"\ndirection = "{"up" if up else "down"}"\nof = "{"MRd" if up else "CplD"}"\n'
        text += f'tlp = {60 + (150 if up else 300) * number}\ndamage = "{damage}"\n'
    experiment = tmp_path / "faults.toml"
    experiment.write_text(text, encoding="utf-8")
    libtlp = ROOT / "out/libtlp/lib"
    command: list[str | Path] = [
        "cc",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        tmp_path / "recovery",
        ROOT / "driver/tlpdma/test/recovery.c",
    ]
    command += [ROOT / "out/driver/libtlpdma.a", f"-L{libtlp}", "-ltlp", f"-Wl,-rpath,{libtlp}"]
    subprocess.run(command, check=True, timeout=60)
    ran: list[str | Path] = [tmp_path / "recovery", f"sim:{experiment}"]
    done = subprocess.run(ran, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    *failures, end = done.stdout.splitlines()
    assert end == f"{len(failures)} failures, every byte right"
    for reason in ["poisoned data", "completer abort", "completion timeout", "unsupported request"]:
        assert any(failure.endswith(f"the card halted: {reason}") for failure in failures), reason


@pytest.mark.full
@pytest.mark.parametrize("name", ["tlpdma", "rtl"])
def test_a_write_that_is_lost_is_seen(name: str, tmp_path: Path) -> None:
    """The card has sent all, and reports so; the eighth write of data or records never arrived."""
    experiment = tmp_path / "lost.toml"
    text = f'title = "Lost"\n[device.card]\nunder = "host.rp0"\nlink = "gen1 x8"\nmodel = "{model(name)}"\n'
    fault = '[[fault]]\nlink = "card"\ndirection = "up"\nof = "MWr"\ntlp = 8\ndamage = "lose"\n'
    experiment.write_text(text + fault, encoding="utf-8")
    done = run("--only", "sweep", "--sizes", "4KiB", "--runs", "1", f"sim:{experiment}", status=1)
    assert re.search(r"4096 bytes went to the card and back: byte \d+ was 0x.. and came back as 0x5a", done.stderr)


@pytest.mark.full
def test_a_card_that_is_pulled_out_is_missed(tmp_path: Path) -> None:
    experiment = tmp_path / "gone.toml"
    text = 'title = "Gone"\n[device.card]\nunder = "host.rp0"\nlink = "gen1 x8"\nmodel = "tlpdma"\n'
    experiment.write_text(text + '[[fault]]\nlink = "card"\ndown = "300us"\n', encoding="utf-8")
    done = run("--only", "sweep", "--sizes", "1MiB", f"sim:{experiment}", status=1)
    assert "the card is gone: its registers read as all ones" in done.stderr


def module() -> Any:
    """The Python module of the library."""
    spec = importlib.util.spec_from_file_location("tlpdma", ROOT / "driver/tlpdma/python/tlpdma.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_library_in_python_moves_any_buffer() -> None:
    tlpdma = module()
    data = bytes(range(256)) * 300
    with tlpdma.Card(f"sim:{ROOT}/experiments/dma-card.toml", ["device.card.link=gen1 x4"]) as card:
        about = card.describe()
        assert about.simulated
        assert (about.memory, about.mps, about.mrrs) == (256 << 20, 256, 512)
        begin = card.clock
        for address, sent in (
            (0, data),
            (5, bytearray(data)),
            (1 << 20, memoryview(data)[3:70001]),
            (7, array("I", range(999))),
        ):
            card.write(address, sent)
            assert card.read(address, memoryview(sent).nbytes) == bytes(sent)
        # Gen1 x4 carries 1 GB/s each way, before headers.
        assert card.clock - begin > 2 * 3 * len(data) * 1000
        into = array("H", bytes(2000))
        card.register(into)
        card.write(64, into.tobytes()[:-1] + b"\x01")
        card.readinto(64, into)
        assert into[-1] == 0x100
        card.unregister(into)
        assert card.describe().interrupts[0] > about.interrupts[0]
        card.write(0, b"")
        for address, length in ((256 << 20, 1), ((256 << 20) - 3, 4)):
            with pytest.raises(OSError, match="the card has no") as error:
                card.read(address, length)
            assert error.value.errno == errno.ENOSPC
        for place, why in ((0, "has no memory that a program can touch"), (5, "has no memory")):
            with pytest.raises(OSError, match=why) as error, card.words(place, 4096):
                pass
            assert error.value.errno == errno.ENODEV
        with pytest.raises(TypeError, match="cannot be written"):
            card.readinto(0, b"constant")
        with pytest.raises(ValueError, match="not contiguous"):
            card.write(0, memoryview(data)[::2])
    with pytest.raises(ValueError, match="closed"):
        card.read(0, 4)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("/dev/tlpdma77", "check that the card is present and the driver is loaded"),
        ("vfio:0000:77:00.0", "its driver is none, and not vfio-pci"),
        ("sim:nothing.toml", "nothing.toml"),
    ],
)
def test_a_failed_open_of_a_card_states_its_reason(where: str, says: str) -> None:
    with pytest.raises(OSError, match=says):
        module().Card(where)
