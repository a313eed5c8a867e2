# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fits a module to a hard IP's model: reads its ports from Verilator's JSON, writes pins.sv and ports.h (rtl/cosim/module.mk).

pins.sv is the module with its inputs from the hard IP behind registers that take them when `drive` changes. Logic that depends on an input is
evaluated by Verilator when that has changed, and once more at the clock's edge, after which the hard IP changes it again; logic that depends
on a register is evaluated once. So the hard IP's model can state before an edge the values after it.

ports.h has the ports with the types that their widths have in C++, and a stand-in for each that the module does without.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = "docs/attach-rtl.md"


@dataclass(frozen=True)
class Port:
    """A port as a hard IP knows it. `kind`: clock, driven (with every edge), told (configuration), zero (tied), out (of the module)."""

    name: str
    kind: str
    widths: tuple[int, ...] = (1,)
    needed: bool = False
    others: tuple[str, ...] = ()  # names that mean the same
    default: int = 0  # of an output that the module does without


@dataclass(frozen=True)
class Found:
    """A port of the module."""

    name: str
    is_input: bool
    width: int


def stream(name: str, to_module: bool, data: tuple[int, ...], user: tuple[int, ...]) -> list[Port]:
    """An AXI4-Stream, named as the module's or as the hard IP's end of it."""
    ours, theirs = ("s", "m") if to_module else ("m", "s")
    there, back = ("driven", "out") if to_module else ("out", "driven")

    def port(part: str, kind: str, widths: tuple[int, ...]) -> Port:
        return Port(f"{ours}_axis_{name}_{part}", kind, widths, True, (f"{theirs}_axis_{name}_{part}",))

    keep = tuple(width // 32 for width in data)
    parts = [("tdata", data), ("tkeep", keep), ("tuser", user), ("tlast", (1,)), ("tvalid", (1,))]
    # The hard IP has some of its tready four times.
    return [port(part, there, widths) for part, widths in parts] + [port("tready", back, (1, 4))]


CLOCKS = [Port("pcie_clk", "clock", needed=True, others=("clk", "user_clk"))]
USER_CLOCK = [Port("user_clk", "clock")]
REGISTERS = [
    Port("cfg_id", "told", (16,)),
    Port("cfg_mps", "told", (2, 3), others=("cfg_max_payload",)),
    Port("cfg_mrrs", "told", (3,), others=("cfg_max_read_req",)),
    Port("cfg_bus_master", "told"),
    Port("cfg_ext_tag", "told"),
    Port("cfg_msix_enable", "told"),
    Port("cfg_msix_mask", "told"),
    Port("cfg_intx_disable", "told"),
]
LEVELS = [Port("intx", "out"), Port("idle", "out")]
RESET = [Port("pcie_rst", "driven", needed=True, others=("rst", "user_reset"))]

WIDTHS = (64, 128, 256, 512)
HARD_IPS: dict[str, list[Port]] = {
    "trn": [
        *CLOCKS,
        *USER_CLOCK,
        *RESET,
        Port("trn_rsrc_rdy", "driven", needed=True),
        Port("trn_rsof", "driven", needed=True),
        Port("trn_reof", "driven", needed=True),
        Port("trn_rd", "driven", (64, 128), True),
        Port("trn_rrem", "driven", (1, 2), True),
        Port("trn_rbar", "driven", (3,), True),
        Port("trn_rdst_rdy", "out", needed=True),
        Port("trn_rnp_ok", "out", needed=True),
        Port("trn_tsrc_rdy", "out", needed=True),
        Port("trn_tsof", "out", needed=True),
        Port("trn_teof", "out", needed=True),
        Port("trn_td", "out", (64, 128), True),
        Port("trn_trem", "out", (1, 2), True),
        Port("trn_tdst_rdy", "driven", needed=True),
        Port("trn_tbuf_av", "driven", (3,), True),
        *REGISTERS,
        *LEVELS,
    ],
    "usp": [
        *CLOCKS,
        *USER_CLOCK,
        *RESET,
        *stream("rq", False, WIDTHS, (60, 62, 137)),
        *stream("rc", True, WIDTHS, (75, 161)),
        *stream("cq", True, WIDTHS, (85, 88, 183)),
        *stream("cc", False, WIDTHS, (33, 81)),
        *(
            Port(f"pcie_rq_seq_num{i}", "driven", (4, 6), others=(f"s_axis_rq_seq_num_{i}", *("pcie_rq_seq_num",)[i:]))
            for i in range(2)
        ),
        *(
            Port(
                f"pcie_rq_seq_num_vld{i}",
                "driven",
                others=(f"s_axis_rq_seq_num_valid_{i}", *("pcie_rq_seq_num_vld",)[i:]),
            )
            for i in range(2)
        ),
        # One that does not ask takes non-posted requests as they come.
        Port("pcie_cq_np_req", "out", (1, 2), default=3),
        Port("pcie_cq_np_req_count", "driven", (6,)),
        Port("pcie_tfc_nph_av", "driven", (2, 4)),
        Port("pcie_tfc_npd_av", "driven", (2, 4)),
        *(Port(f"cfg_fc_{kind}h", "driven", (8,)) for kind in ("p", "np", "cpl")),
        *(Port(f"cfg_fc_{kind}d", "driven", (12,)) for kind in ("p", "np", "cpl")),
        Port("cfg_fc_sel", "out", (3,)),
        *REGISTERS,
        Port("cfg_rcb_status", "told", (1, 4)),
        Port("cfg_function_status", "told", (4, 16)),
        Port("cfg_bus_number", "told", (8,)),
        Port("user_lnk_up", "told"),
        Port("cfg_interrupt_msi_enable", "told", (1, 4)),
        Port("cfg_interrupt_msi_mmenable", "told", (3, 12)),
        Port("cfg_interrupt_msi_data", "told", (32,)),
        Port("cfg_interrupt_msi_mask_update", "driven"),
        Port("cfg_interrupt_msi_int", "out", (32,)),
        Port("cfg_interrupt_msi_sent", "driven"),
        Port("cfg_interrupt_msi_fail", "driven"),
        Port("cfg_interrupt_msix_enable", "told", (1, 4)),
        Port("cfg_interrupt_msix_mask", "told", (1, 4)),
        Port("cfg_interrupt_msix_address", "out", (64,)),
        Port("cfg_interrupt_msix_data", "out", (32,)),
        Port("cfg_interrupt_msix_int", "out"),
        Port("cfg_interrupt_msix_vec_pending", "out", (2,)),
        Port("cfg_interrupt_msix_sent", "driven"),
        Port("cfg_interrupt_msix_fail", "driven"),
        Port("cfg_interrupt_int", "out", (4,)),
        Port("cfg_interrupt_sent", "driven"),
        *LEVELS,
        # What goes by other ways here (a reset), does not happen (messages, virtual functions), or needs the hard IP's own memory.
        *(
            Port(name, "zero", tuple(range(1, 1025)))
            for name in [
                "cfg_mgmt_read_data",
                "cfg_mgmt_read_write_done",
                "cfg_flr_in_process",
                "cfg_vf_flr_in_process",
                "cfg_vf_status",
                "cfg_function_power_state",
                "cfg_interrupt_msi_vf_enable",
                "cfg_interrupt_msix_vf_enable",
                "cfg_interrupt_msix_vf_mask",
                "cfg_interrupt_msix_vec_pending_status",
                "cfg_phy_link_down",
                "cfg_err_cor_out",
                "cfg_err_nonfatal_out",
                "cfg_err_fatal_out",
                "cfg_local_error_out",
                "cfg_local_error_valid",
                "cfg_hot_reset_out",
                "cfg_msg_received",
                "cfg_msg_received_data",
                "cfg_msg_received_type",
                "cfg_msg_transmit_done",
                "cfg_power_state_change_interrupt",
                "cfg_obff_enable",
                "cfg_pl_status_change",
                "cfg_tph_requester_enable",
                "cfg_tph_st_mode",
                "cfg_vf_tph_requester_enable",
                "cfg_vf_tph_st_mode",
                "cfg_ext_read_received",
                "cfg_ext_write_received",
                "cfg_ext_register_number",
                "cfg_ext_function_number",
                "cfg_ext_write_data",
                "cfg_ext_write_byte_enable",
                "cfg_rx_pm_state",
                "cfg_tx_pm_state",
                "cfg_link_power_state",
                "pcie_rq_tag0",
                "pcie_rq_tag1",
                "pcie_rq_tag_vld0",
                "pcie_rq_tag_vld1",
            ]
        ),
    ],
}
#: What only modules for that hard IP have.
MARKS = {"trn": ("trn_rd", "trn_td"), "usp": ("s_axis_cq_tdata", "m_axis_cq_tdata")}
#: DWs of a beat for which a stream's `tuser` has that many bits; others are for the smaller ones.
LARGE_USER = {137, 161, 183, 81}


class MisfitError(Exception):
    """A misfit of the module, in one sentence."""


def widths_of(tree: dict[str, Any]) -> dict[str, int]:
    """Bits of each type that a port may have."""
    types = {kind["addr"]: kind for table in tree["miscsp"] for kind in table.get("typesp", [])}

    def bits(address: str) -> int:
        kind = types[address]
        if kind["type"] == "BASICDTYPE":
            left, right = (int(end) for end in kind.get("range", "0:0").split(":"))
            return abs(left - right) + 1
        if kind["type"] == "REFDTYPE":
            return bits(kind["refDTypep"])
        left, right = (int(end) for end in kind["declRange"].strip("[]").split(":"))
        return (abs(left - right) + 1) * bits(kind["refDTypep"])

    widths = {}
    for address in types:
        try:
            widths[address] = bits(address)
        except (KeyError, ValueError):
            continue  # no vector
    return widths


def ports_of(tree: dict[str, Any], top: str) -> list[Found]:
    """The ports of the top module."""
    widths = widths_of(tree)
    module = next(module for module in tree["modulesp"] if module.get("origName", module["name"]) == top)
    found = []
    for one in module["stmtsp"]:
        if one["type"] == "VAR" and one.get("direction") in ("INPUT", "OUTPUT", "INOUT"):
            if one["direction"] == "INOUT" or one["dtypep"] not in widths:
                raise MisfitError(f"its port {one['name']} is not a vector with one direction")
            found.append(Found(one["name"], one["direction"] == "INPUT", widths[one["dtypep"]]))
    return found


def fit(hard_ip: str, found: list[Found]) -> dict[str, Found]:
    """The module's port for each port of the hard IP."""
    left = {port.name: port for port in found}
    fitted = {}
    for port in HARD_IPS[hard_ip]:
        name = next((name for name in (port.name, *port.others) if name in left), None)
        direction = "output" if port.kind == "out" else "input"
        widths = "1 bit" if port.widths == (1,) else f"{' or '.join(map(str, port.widths))} bits"
        if name is None:
            if port.needed:
                raise MisfitError(f"it has no {direction} {port.name} of {widths}{other(hard_ip, left)}")
            continue
        its = left.pop(name)
        if its.is_input != (direction == "input"):
            raise MisfitError(f"its {name} is an {'input' if its.is_input else 'output'}; it must be an {direction}")
        if its.width not in port.widths:
            raise MisfitError(f"its {name} has {its.width} bits; it must have {widths}")
        fitted[port.name] = its
    for port in left.values():
        if port.is_input:
            raise MisfitError(
                f"its input {port.name} is none that this hard IP has; give it a value in a module around it"
            )
    check_widths(hard_ip, fitted)
    return fitted


def other(hard_ip: str, left: dict[str, Found]) -> str:
    """A hint that the module is for another hard IP, or an empty string."""
    fits = [name for name, marks in MARKS.items() if name != hard_ip and any(mark in left for mark in marks)]
    return f"; its ports are those for HARD_IP={fits[0]}" if fits else ""


def starts(hard_ip: str, straddling: list[str], fitted: dict[str, Found]) -> dict[str, int]:
    """The number of TLPs that may begin in one beat of each stream."""
    if hard_ip == "trn":
        if straddling:
            raise MisfitError("STRADDLE is for HARD_IP=usp")
        return {}
    width = fitted["s_axis_cq_tdata"].width
    most = {"rq": {512: 2}, "rc": {256: 2, 512: 4}, "cq": {512: 2}, "cc": {512: 2}}
    for name in straddling:
        if width not in most.get(name, {}):
            raise MisfitError(
                f"STRADDLE={name} cannot be with streams of {width} bits; rc can with 256 and 512, rq, cq and cc with 512"
            )
    return {name: found[width] if name in straddling else 1 for name, found in most.items()}


def check_widths(hard_ip: str, fitted: dict[str, Found]) -> None:
    """Streams belong together."""
    if hard_ip == "trn":
        width, names = fitted["trn_rd"].width, {"trn_td": 1, "trn_rrem": 64, "trn_trem": 64}
        for name, part in names.items():
            if fitted[name].width != width // part:
                raise MisfitError(
                    f"its {fitted[name].name} has {fitted[name].width} bits; with {width} of trn_rd it must have {width // part}"
                )
        return
    first = fitted["s_axis_cq_tdata"]
    for name, port in fitted.items():
        wrong = name.endswith("tdata") and port.width != first.width
        wrong |= name.endswith("tkeep") and 32 * port.width != first.width
        wrong |= name.endswith("tuser") and (port.width in LARGE_USER) != (first.width == 512)
        if wrong:
            raise MisfitError(
                f"its {port.name} of {port.width} bits does not fit the {first.width} bits of {first.name}"
            )


def c_type(width: int) -> str:
    """The type that Verilator gives to a port."""
    for most, name in ((8, "CData"), (16, "SData"), (32, "IData"), (64, "QData")):
        if width <= most:
            return name
    return f"VlWide<{(width + 31) // 32}>"


def header(hard_ip: str, fitted: dict[str, Found], begin: dict[str, int]) -> str:
    """ports.h."""
    ports = [port for port in HARD_IPS[hard_ip] if port.kind != "zero"]
    there = [port for port in ports if port.name in fitted]
    own = ", ".join(f"{port.name}(module.{port.name})" for port in there)
    its = ", ".join(f"{port.name}(module.{fitted[port.name].name})" for port in there)
    lines = [f"    {c_type(fitted[port.name].width)} &{port.name};" for port in there]
    lines += [
        f"    {c_type(port.widths[-1])} {port.name} = {port.default};" for port in ports if port.name not in fitted
    ]
    has = "\n".join(f"constexpr bool {port.name} = {str(port in there).lower()};" for port in ports)
    size = {port.name: fitted[port.name].width if port in there else port.widths[-1] for port in ports}
    bits = "\n".join(f"constexpr unsigned {name} = {width};" for name, width in size.items())
    most = "\n".join(f"constexpr unsigned {name} = {count};" for name, count in begin.items())
    return f"""// Made by rtl/cosim/ports.py.
#ifndef TLPLAB_RTL_PORTS_H
#define TLPLAB_RTL_PORTS_H

#include "Vtop.h"
#if VM_TRACE_FST
#include "Vtraced.h"
#endif

namespace tlplab {{

// The ports of the module that is in use.
struct Ports {{
    explicit Ports(Vtop &module) : {own} {{}}
#if VM_TRACE_FST
    explicit Ports(Vtraced &module) : {its} {{}}
#endif

{chr(10).join(lines)}
}};

// Whether the module has a port, and of how many bits; a stand-in has the most that it could have.
namespace has {{
{has}
}}
namespace bits {{
{bits}
}}
// TLPs that may begin in one beat of a stream.
namespace starts {{
{most}
}}

}} // namespace tlplab

#endif
"""


def pins(hard_ip: str, fitted: dict[str, Found], top: str, parameters: str) -> str:
    """pins.sv."""
    known = {port.name: port for port in HARD_IPS[hard_ip]}
    declared, registers, taken, connected = ["input logic drive"], [], [], []
    for name, found in fitted.items():
        kind, size = known[name].kind, f"[{found.width - 1}:0] " if found.width > 1 else ""
        if kind == "zero":
            connected.append(f".{found.name}('0)")
            continue
        declared.append(f"{'output' if kind == 'out' else 'input'} logic {size}{name}")
        connected.append(f".{found.name}({name}{'_q' if kind == 'driven' else ''})")
        if kind == "driven":
            registers.append(f"  logic {size}{name}_q;")
            taken.append(f"    {name}_q <= {name};")
    ports = ",\n".join(f"    {port}" for port in declared)
    connections = ",\n".join(f"      {port}" for port in connected)
    return f"""// Made by rtl/cosim/ports.py.
module tlplab_pins (
{ports}
);
{chr(10).join(registers)}
  always_ff @(posedge drive or negedge drive) begin
{chr(10).join(taken)}
  end
  {top} #({parameters}) card (
{connections}
  );
endmodule
"""


def main() -> int:
    """Writes both files into a folder, or prints the reason why not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hard_ip", choices=HARD_IPS)
    parser.add_argument("top")
    parser.add_argument("tree", type=Path, help="Verilator's JSON of the module")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--straddle", default="", help="streams, with spaces between")
    parser.add_argument("parameters", nargs="*", help="NAME=VALUE")
    options = parser.parse_args()
    try:
        fitted = fit(options.hard_ip, ports_of(json.loads(options.tree.read_text("utf-8")), options.top))
        begin = starts(options.hard_ip, options.straddle.split(), fitted)
    except MisfitError as misfit:
        print(
            f"module {options.top} cannot be attached with HARD_IP={options.hard_ip}: {misfit} ({PAGE} lists the ports).",
            file=sys.stderr,
        )
        return 1
    given = ", ".join(re.sub(r"^([^=]+)=(.*)$", r".\1(\2)", one) for one in options.parameters)
    (options.folder / "ports.h").write_text(header(options.hard_ip, fitted, begin), "utf-8")
    (options.folder / "pins.sv").write_text(pins(options.hard_ip, fitted, options.top, given), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
