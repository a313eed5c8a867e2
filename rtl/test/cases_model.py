# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model of the hard IP alone, against a device that gives each TLP back."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from bench import chance, quiet_logs
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.pcie.core.port import SimPort
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from trn import TrnDevice


def request(kind: TlpType, address: int, words: int, tag: int, source: random.Random) -> Tlp:
    tlp = Tlp()
    tlp.fmt_type = kind
    tlp.address = address
    tlp.length = words
    tlp.tag = tag
    tlp.first_be, tlp.last_be = 0xF, 0xF if words > 1 else 0
    tlp.requester_id = PcieId(1, 2, 3)
    if tlp.has_data():
        tlp.set_data(source.randbytes(4 * words))
    return tlp


async def start(dut: Any) -> TrnDevice:
    quiet_logs()
    dut.np_ok.value = 1
    dut.pcie_rst.value = 1
    device = TrnDevice(dut, len(dut.trn_rd), places=64)
    device.function.bus_master_enable = True
    upstream = SimPort(fc_init=[[64, 1024, 64, 64, 64, 1024]] * 8)
    upstream.rx_handler = swallow
    upstream.connect(device.upstream_port)
    Clock(dut.pcie_clk, 4000, "ps").start()
    Clock(dut.user_clk, 5000, "ps").start()
    await ClockCycles(dut.pcie_clk, 4)
    dut.pcie_rst.value = 0
    return device


async def swallow(tlp: Tlp) -> None:
    tlp.release_fc()


@cocotb.test(timeout_time=800, timeout_unit="us")
async def every_tlp_comes_back(dut: Any) -> None:
    """All header sizes, alignments of the end and pauses on both sides."""
    device = await start(dut)
    source = random.Random(1)
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    sent = []
    for tag in range(40):
        kind = source.choice([TlpType.MEM_WRITE, TlpType.MEM_WRITE_64, TlpType.MEM_READ, TlpType.MEM_READ_64])
        base = 0x5_0000_0000 if kind in {TlpType.MEM_WRITE_64, TlpType.MEM_READ_64} else 0x5000_0000
        sent.append(request(kind, base + 4 * tag, source.randint(1, 20), tag, source))
        device.deliver(sent[-1], 0)
        if tag == 20:
            device.rx_pause, device.tx_pause = chance(0.4, 2), chance(0.4, 3)
            while len(back) < 10:
                await RisingEdge(dut.pcie_clk)
    for _ in range(2000):
        if len(back) == len(sent):
            break
        await RisingEdge(dut.pcie_clk)
    assert [bytes(tlp.pack()) for tlp in back] == [bytes(tlp.pack()) for tlp in sent]


@cocotb.test(timeout_time=800, timeout_unit="us")
async def non_posted_requests_are_held(dut: Any) -> None:
    """After trn_rnp_ok fell one more may come, not two; posted requests pass."""
    device = await start(dut)
    source = random.Random(1)
    back: list[Tlp] = []
    device.on_sent.append(back.append)
    for tag in range(6):
        device.deliver(request(TlpType.MEM_READ, 0x100, 1, tag, source))
        device.deliver(request(TlpType.MEM_WRITE, 0x100, 8, 32 + tag, source))
    while not back:
        await RisingEdge(dut.pcie_clk)
    dut.np_ok.value = 0
    await ClockCycles(dut.pcie_clk, 200)
    reads = [tlp.tag for tlp in back if tlp.is_nonposted()]
    assert [tlp.tag for tlp in back if tlp.is_posted()] == [32, 33, 34, 35, 36, 37]
    assert reads in ([0], [0, 1])
    dut.np_ok.value = 1
    await ClockCycles(dut.pcie_clk, 200)
    assert [tlp.tag for tlp in back if tlp.is_nonposted()] == [0, 1, 2, 3, 4, 5]


@cocotb.test(timeout_time=800, timeout_unit="us")
async def no_gap_between_tlps(dut: Any) -> None:
    """A device that never waits gets a beat in each cycle."""
    device = await start(dut)
    source = random.Random(1)
    taken: list[Tlp] = []
    device.on_received.append(taken.append)
    for tag in range(20):
        device.deliver(request(TlpType.MEM_WRITE, 0x100, 9, tag, source))
    while device.beats_in == 0:
        await RisingEdge(dut.pcie_clk)
    await ClockCycles(dut.pcie_clk, 20 * 12 // device.dws - 1)
    await ClockCycles(dut.pcie_clk, 1)
    assert len(taken) == 20
