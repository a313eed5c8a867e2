"""The peer: end point – switch – root complex of cocotbext-pcie, both links gen3 x8, saturated DMA.

cocotb runs this inside the HDL simulator; `run.py` starts it. The request comes in the environment (BENCH_OP, BENCH_COUNT),
and the result goes to the file BENCH_RESULT.
"""

import json
import logging
import os
import time
from pathlib import Path

import cocotb
from cocotb.triggers import Combine, Timer
from cocotbext.pcie.core import Device, Endpoint, RootComplex, Switch

GENERATION, LANES = 3, 8
SIZES = {"write": 256, "read": 512}
OUTSTANDING = 32
WINDOW = 1 << 20
SEQUENCES = 4096


class HopCounter:
    """Counts TLPs sent for the first time by the sequence numbers of the ports, so that counting costs the peer nothing."""

    def __init__(self, ports):
        self.ports = ports
        self.seen = [port.next_transmit_seq for port in ports]
        self.hops = 0

    def read(self):
        """To be called before any port has sent 4096 TLPs more."""
        for i, port in enumerate(self.ports):
            self.hops += (port.next_transmit_seq - self.seen[i]) % SEQUENCES
            self.seen[i] = port.next_transmit_seq
        return self.hops


async def build():
    root = RootComplex()
    root.max_payload_size = 1  # 256 B
    switch, device, function = Switch(), Device(), Endpoint()
    device.add_function(function)
    # Without a speed and a width a link of the peer's takes no time at all.
    root_port, uplink = root.make_port(), switch.upstream_bridge.upstream_port
    downlink = switch.make_port()
    for port in (root_port.downstream_port, uplink, downlink.downstream_port, device.upstream_port):
        port.max_link_speed, port.max_link_width = GENERATION, LANES
    root_port.connect(switch)
    downlink.connect(device)
    await root.enumerate()
    await root.find_device(function.pcie_id).enable_device()
    await root.find_device(function.pcie_id).set_master()
    ports = [root_port.downstream_port, uplink, downlink.downstream_port, device.upstream_port]
    for port in ports:
        assert (port.cur_link_speed, port.cur_link_width) == (GENERATION, LANES)
        assert port.symbol_period > 0
    return root, function, ports


async def transfer(op, function, base, first, count):
    """Operations first, first + OUTSTANDING, … of `count`."""
    size = SIZES[op]
    data = bytes(i * 167 + 13 & 0xFF for i in range(size))
    for number in range(first, count, OUTSTANDING):
        address = base + number * size % WINDOW
        if op == "write":
            await function.mem_write(address, data)
        else:
            assert len(await function.mem_read(address, size)) == size


async def watch(counter, running):
    while running:
        counter.read()
        await Timer(1, "us")


@cocotb.test()
async def saturate(_top):
    logging.getLogger("cocotb.pcie").setLevel(logging.WARNING)
    op, count = os.environ["BENCH_OP"], int(os.environ["BENCH_COUNT"])
    root, function, ports = await build()
    logging.getLogger("cocotb.pcie").setLevel(logging.WARNING)
    base, memory = root.alloc_region(WINDOW)
    # A write is one TLP, a read one request and 512 / 256 completions; each crosses two links.
    expected = count * (2 if op == "write" else 6)
    await Timer(10, "us")
    counter = HopCounter(ports)
    running = [True]
    cocotb.start_soon(watch(counter, running))
    simulated = cocotb.utils.get_sim_time("ps")
    started = time.process_time()
    await Combine(*[cocotb.start_soon(transfer(op, function, base, i, count)) for i in range(OUTSTANDING)])
    while counter.read() < expected:
        await Timer(100, "ns")
    cpu = time.process_time() - started
    simulated = cocotb.utils.get_sim_time("ps") - simulated
    running.clear()
    assert counter.read() == expected, f"{counter.hops} hops instead of {expected}"
    if op == "write":
        assert memory[0:4] == bytes([13, 180, 91, 2]), "the data are there"
    simulated = int(simulated)
    result = {"hops": counter.hops, "cpu": cpu, "simulated_ps": simulated, "bytes": count * SIZES[op]}
    Path(os.environ["BENCH_RESULT"]).write_text(json.dumps(result), encoding="utf-8")
