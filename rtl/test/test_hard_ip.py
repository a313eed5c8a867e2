# SPDX-License-Identifier: MIT OR Apache-2.0
"""The hard IP's model (rtl/cosim) around the smallest module, through the six functions of rtl/include/tlplab_rtl.h."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

#: In one process, as they share what is built.
pytestmark = pytest.mark.xdist_group("hard IP")

ROOT = Path(__file__).resolve().parents[2]
NS = 1_000_000  # fs
POSTED, NON_POSTED, COMPLETION = 1, 2, 4  # bits of room
ALL = 7


class Identity(ctypes.Structure):
    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("vendor", ctypes.c_uint16),
        ("device", ctypes.c_uint16),
        ("rest", ctypes.c_uint8 * 128),
    ]


class Registers(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint16),
        *(
            (name, ctypes.c_uint8)
            for name in (
                "mps",
                "mrrs",
                "bus_master",
                "extended_tag",
                "msix_enable",
                "msix_mask",
                "intx_disable",
                "reset",
                "read_boundary_128",
                "msi_enable",
                "msi_vectors",
            )
        ),
        ("msi_data", ctypes.c_uint16),
        ("msi_mask", ctypes.c_uint32),
        ("msi_address", ctypes.c_uint64),
    ]


class Output(ctypes.Structure):
    _fields_ = [
        ("time", ctypes.c_uint64),
        ("taken", ctypes.c_uint32 * 3),
        ("intx", ctypes.c_uint8),
        ("idle", ctypes.c_uint8),
        ("tlp_bytes", ctypes.c_uint16),
        ("tlp", ctypes.c_uint8 * 4132),
        ("error", ctypes.c_char * 512),
    ]


def without_make() -> dict[str, str]:
    """An environment for a `make` of its own."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}


class Library:
    def __init__(self, path: Path, halved: bool) -> None:
        self.halved, self.straddles = halved, False
        self.calls = ctypes.CDLL(str(path))
        self.calls.tlplab_rtl_open.restype = ctypes.c_void_p

    def open(self, parameters: str = "", abi: int = 2) -> Model:
        error = ctypes.create_string_buffer(512)
        identity = Identity()
        handle = self.calls.tlplab_rtl_open(abi, parameters.encode(), ctypes.byref(identity), error)
        if not handle:
            raise ValueError(error.value.decode())
        return Model(self, ctypes.c_void_p(handle), identity)


class Model:
    def __init__(self, library: Library, handle: ctypes.c_void_p, identity: Identity) -> None:
        self.calls, self.handle, self.identity = library.calls, handle, identity
        self.registers = Registers(id=0x0300, mrrs=2, bus_master=1)
        self.configure()

    def configure(self, **values: int) -> None:
        for name, value in values.items():
            setattr(self.registers, name, value)
        self.calls.tlplab_rtl_configure(self.handle, ctypes.byref(self.registers))
        self.registers.reset = 0

    def receive(self, tlp: bytes) -> None:
        self.calls.tlplab_rtl_receive(self.handle, tlp, ctypes.c_size_t(len(tlp)), ctypes.c_uint8(0))

    def write(self, value: int) -> None:
        self.receive(bytes.fromhex("40000001 0000000f f0000000") + struct.pack("<I", value))

    def read(self, tag: int) -> None:
        self.receive(bytes.fromhex(f"00000001 0000{tag:02x}0f f0000004"))

    def run(self, until: int, room: int = ALL) -> Output:
        output = Output()
        code = self.calls.tlplab_rtl_run(
            self.handle, ctypes.c_uint64(until), ctypes.c_uint8(room), ctypes.byref(output)
        )
        assert code == 0, output.error
        return output

    def all(self, until: int, room: int = ALL) -> tuple[list[bytes], list[int]]:
        """The transmitted TLPs, and the numbers of TLPs taken, up to `until`."""
        tlps, taken = [], [0, 0, 0]
        while True:
            output = self.run(until, room)
            taken = [a + b for a, b in zip(taken, output.taken, strict=True)]
            if output.tlp_bytes:
                tlps.append(bytes(output.tlp[: output.tlp_bytes]))
            elif output.time == until:
                return tlps, taken

    def close(self) -> None:
        self.calls.tlplab_rtl_close(self.handle)


DEVICES = [(64, False), (64, True), (128, False)]  # width, and whether the device divides the user's clock


@pytest.fixture(scope="module", params=DEVICES if os.environ.get("TLPDMA_LONG") else DEVICES[:2])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    verilator = shutil.which("verilator")
    if verilator is None:
        pytest.skip("needs Verilator: make rtl-tools")
    width, halved = request.param
    out = tmp_path_factory.mktemp("hard-ip") / "scratch.so"
    options = [
        "TOP=scratch",
        "SOURCES=rtl/cosim/scratch.sv rtl/cosim/scratch_identity.cpp",
        f"OUT={out}",
        f"PARAMETERS=-GW={width} -GHALVED={int(halved)}",
        f"RTL_BIN={Path(verilator).parent}",
        *(["TRACE=0"] if halved else []),
        "FAST=-O0",
        "HARNESS=-O0",
    ]
    subprocess.run(["make", "-s", "-f", "rtl/cosim/module.mk", *options], cwd=ROOT, check=True, env=without_make())
    return Library(out, halved)


def test_invalid_parameters_are_refused(library: Library) -> None:
    for parameters, says in [
        ("pcie_clock=12x\n", "pcie_clock = 12x: must be a whole number from 1000000 to 1000000000"),
        ("user_clock=0\n", "user_clock = 0"),
        ("seed=-1\n", "seed = -1"),
        ("tags=3\n", "unknown parameter tags; there are pcie_clock"),
    ]:
        with pytest.raises(ValueError, match=says):
            library.open(parameters)
    with pytest.raises(ValueError, match="build the library again"):
        library.open(abi=1)


def test_a_register_is_written_and_read(library: Library) -> None:
    model = library.open("pcie_clock=250000000\n")
    assert (model.identity.abi, model.identity.vendor, model.identity.device) == (2, 0x71AB, 0x5C7A)
    model.all(1000 * NS)
    model.write(0xB6A4)
    model.read(tag=7)
    output = model.run(2000 * NS)
    assert (output.taken[0], output.tlp_bytes) == (1, 0)
    assert 1000 * NS <= output.time < 1020 * NS
    assert output.time % (4 * NS) == 0, "an edge of 250 MHz"
    tlps, taken = model.all(2000 * NS)
    assert taken == [0, 1, 0]
    assert [tlp.hex(" ", 4) for tlp in tlps] == ["4a000001 03000004 00000704 a4b60000"]
    model.close()


def test_the_device_sees_every_edge_of_its_clock(library: Library) -> None:
    model = library.open("user_clock=150000000\n")
    model.all(1000 * NS)
    model.write(1)
    model.all(5000 * NS)
    model.read(tag=0)
    tlps, _ = model.all(6000 * NS)
    ticks = int.from_bytes(tlps[0][14:16], "little")
    assert abs(ticks - (300 if library.halved else 600)) <= 10
    model.close()


def test_nothing_is_transmitted_without_room(library: Library) -> None:
    model = library.open()
    for tag in range(3):
        model.read(tag)
    assert model.all(1000 * NS, room=POSTED | NON_POSTED)[0] == []
    tlps, _ = model.all(2000 * NS)
    assert [tlp[10] for tlp in tlps] == [0, 1, 2]
    # When room goes just as the core begins a TLP, that one waits outside of the core.
    model.read(3)
    model.run(2100 * NS)  # taken
    assert model.all(2200 * NS, room=0)[0] == []
    waited = model.run(2300 * NS)
    assert waited.tlp[10] == 3
    model.close()


def test_levels_end_a_run_and_idle_time_is_skipped(library: Library) -> None:
    model = library.open("user_clock=150000000\n")
    assert model.run(10**9 * NS).idle == 1
    second = 10**9 * NS
    assert model.run(second).time == second, "at once: 250 million edges"
    model.write(2)
    output = model.run(2 * second)
    assert (output.taken[0], output.intx) == (1, 1)
    assert (output.time - second) <= 100 * NS
    model.configure(intx_disable=1)
    assert model.run(2 * second).intx == 0
    model.close()


def test_a_reset_drops_tlps_under_way(library: Library) -> None:
    model = library.open()
    model.all(1000 * NS)
    model.write(2)
    assert model.run(2000 * NS).intx == 1
    model.read(1)
    model.configure(reset=1)
    tlps, taken = model.all(3000 * NS)
    assert (tlps, taken) == ([], [0, 0, 0])
    model.read(2)
    tlps, _ = model.all(4000 * NS)
    assert [tlp.hex(" ", 4) for tlp in tlps] == ["4a000001 03000004 00000204 00000000"]
    model.close()


def test_a_broken_rule_is_the_runs_error(library: Library, capfd: pytest.CaptureFixture[str]) -> None:
    """With its place and its text, which the program's own output is without."""
    model = library.open()
    model.all(1000 * NS)
    model.write(8)
    with pytest.raises(AssertionError, match=r"scratch\.sv:\d+: TOP[\w.]+: bit 3 is set"):
        model.all(2000 * NS)
    model.close()
    assert "bit 3" not in capfd.readouterr().out


def test_a_waveform_has_the_times_of_the_run(library: Library, tmp_path: Path) -> None:
    if library.halved:
        return  # built without waveforms
    model = library.open("pcie_clock=250000000\nuser_clock=166666667\n")
    path, error = tmp_path / "waves.fst", ctypes.create_string_buffer(512)
    if model.calls.tlplab_rtl_trace(model.handle, str(path).encode(), error) != 0:
        pytest.skip(error.value.decode())
    model.all(1000 * NS)
    model.write(1)
    taken = model.run(2000 * NS).time
    model.close()
    # The header of the format: a block of kind 0, its length, the first and the last time; the exponent of the unit of time.
    kind, _, first, last = struct.unpack_from(">BQQQ", path.read_bytes())
    assert (kind, first, last) == (0, 0, taken)
    assert struct.unpack_from("b", path.read_bytes(), 73) == (-15,), "1 fs"
