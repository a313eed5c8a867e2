"""The engine, tested: on a host of its own, in each interrupt mode, as two functions, and with faults."""

from pathlib import Path

import pytest
from engine import COPIED, FAILED, FAULT, Engine, copy, driver

import tlplab as tl

EXPERIMENT = Path(__file__).with_name("engine.toml")
TWINS = Path(__file__).with_name("twins.toml")


def test_engine_passes_its_driver():
    tl.simulate(Engine(), driver)


@pytest.mark.parametrize("length", [1, 4, 127, 4096, 10_000])
def test_lengths_and_alignments(length):
    async def driver(host, dev):
        data = bytes(i % 251 for i in range(length))
        src, dst = host.alloc(data), host.alloc(length + 3) + 3
        await copy(dev, src, dst, length, COPIED)
        assert host.read(dst, length) == data

    tl.simulate(Engine(), driver, link="gen5 x1")


@pytest.mark.parametrize("interrupts", ["msi-x", "msi", "intx"])
def test_every_way_to_interrupt(interrupts):
    tl.run(EXPERIMENT, overrides=[f"host.interrupts={interrupts}"])
    tl.run(TWINS, overrides=[f"host.interrupts={interrupts}"])


def test_damaged_tlps_are_sent_again():
    fault = '{link="engine", direction="up", of="MWr", tlp=5, count=3, damage="corrupt"}'
    result = tl.run(EXPERIMENT, overrides=[f"fault=[{fault}]"])
    assert sum(direction["bad_lcrc"] for link in result["links"] for direction in link["directions"]) == 3


def test_poisoned_data_fail_the_copy():
    async def driver(host, dev):
        await copy(dev, host.alloc(256), host.alloc(256), 256, FAULT)
        assert await dev.regs.read("status") == FAILED

    fault = '{link="device", direction="down", of="CplD", tlp=1, damage="poison"}'
    tl.simulate(Engine(), driver, overrides=[f"fault=[{fault}]"])
