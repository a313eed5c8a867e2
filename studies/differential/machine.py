"""Table 4 on the simulated machine: the method reads every target, and differences of minima are the links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from studies.differential.parameters import PARAMETERS, fitted, left_out
from studies.differential.published import BY_NAME, TABLE_4, Link
from studies.differential.rows import nanoseconds
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section

SAMPLES = 1000
RUN = "machine"

TARGETS = {
    "E_a": ("host.rp0", "pcix133"),
    "D": ("host.rp5", "ich"),
    "Tb_v": ("ib", "tb_v"),
    "Tb di": ("pci33", "tb.bar0"),
    "Tb c": ("pci33", "tb"),
    "Tx_l di": ("pcix66", "tx_l_di.bar0"),
    "Tx_l ds": ("pcix66", "tx_l_ds.bar0"),
    "Tx_l c": ("pcix66", "tx_l_di"),
    "Tx_h di": ("pcix133", "tx_h_di.bar0"),
    "Tx_h ds": ("pcix133", "tx_h_ds.bar0"),
    "Tx_h c": ("pcix133", "tx_h_di"),
    "Te_e": ("ich", "te_e"),
    "Te_d": ("ich", "te_d"),
    "Te_r": ("host.rp3", "te_r"),
    "Te_m ds": ("host.rp4", "te_m.bar0"),
    "Te_m c": ("host.rp4", "te_m"),
    "Te_i ds": ("ich", "te_i.bar0"),
    "Te_i c": ("ich", "te_i"),
}
"""The targets at the near and the far end of each link of table 4; a name alone is the component's configuration space."""

WHOLE = {
    2: "231 ns",
    0: "91 ns",
    1: "139 ns",
    3: "137 ns",
    4: "28.25 clocks",
    5: "5 clocks",
    6: "3 clocks",
    7: "9 ns",
    8: "24 ns",
}
"""The experiment's values: the fit, with clocks of state machines made whole."""

NOTES = {
    "Tb_v": "a different bridge, the ICH's, assumed equal to the hub's",
    "Te_i c": (
        "Te_i and Te_m have the same core, in the simulation, too. Their published latencies differ by 18 ns, less than its clock of 32 ns: no "
        "number of clocks gives both"
    ),
}


def minima(outcomes: Outcomes) -> Mapping[str, float]:
    """Minimum of each target, ns."""
    document = cast("Mapping[str, Any]", outcomes[RUN])
    return {one["name"]: one["min_ns"] for one in document["targets"]}


def simulated(outcomes: Outcomes) -> dict[str, float]:
    """Each link of table 4, ns."""
    found = minima(outcomes)
    return {name: found[far] - found[near] for name, (near, far) in TARGETS.items()}


def rows(outcomes: Outcomes) -> list[Row]:
    """Table 4, and the identity."""
    ours = simulated(outcomes)
    listed = [
        nanoseconds(f"{one.name}: {one.description}", one.latency_ns, ours[one.name], note(one)) for one in TABLE_4
    ]
    for split, immediate in (("Tx_l ds", "Tx_l di"), ("Tx_h ds", "Tx_h di")):
        cycle = BY_NAME[split].cycle_ns
        left = ours[split] - (2 * ours[immediate] - 2 * cycle)
        said = f"on the simulated machine, T_cycle {cycle:g} ns; published as exact"
        listed.append(nanoseconds(f"T_split - (2 T_imm - 2 T_cycle), {split}", 0, left, said))
    return listed


def note(link: Link) -> str:
    """The error of a prediction of this row from the other rows, and its reason."""
    error = left_out(link)
    alone = (
        "a parameter is fitted to it, and no other row determines it"
        if error is None
        else f"fitted to all other rows, the machine misses this one by {round(abs(error))} ns"
    )
    return "; ".join(filter(None, [alone, NOTES.get(link.name, "")]))


def text(_: Outcomes) -> str:
    """The parameters."""
    best = fitted()
    lines = [[name, f"{best[index]:.2f} {unit}", WHOLE[index]] for index, (name, unit) in enumerate(PARAMETERS.items())]
    return TEXT.format(
        count=len(PARAMETERS), rows=len(TABLE_4), table=table(("parameter", "least squares", "simulated"), lines)
    )


TEXT = f"""## The machine of Table 4

`studies/differential/machine.toml` has the paper's chipset, hub, cards and buses, each card in a slot of its own. One simulated processor reads one
doubleword at a time, {SAMPLES} of each register, with a counter of 3 ns steps; the differences of the minima are the rows above. Published values
are used unchanged: clocks of bus transactions by device select, the FPGA's pipeline of table 5, its 5 clocks of logic, bytes on the wire. The remaining
{{count}} parameters are fitted to all {{rows}} rows together, and none is negative. Clocks of state machines are then rounded to whole numbers, which shifts
the fitted times:

{{table}}

The note of each row has the error there of the same fit without that row."""


def runs() -> list[Run]:
    """One: every target in turn."""
    return [Run(RUN, "machine.toml", samples=SAMPLES)]


SECTION = Section(rows=rows, text=text, runs=runs)
