"""A GPU that measures its host over a Gen5 link, November 2026: three machines, the first fitted, the others predicted.

`first.json`, `second.json` and `third.json` are measurements of `tlplab bench --on cuda`; `h200.toml` and `host.toml` are the profiles, made before the
second machine was measured and not changed since. `points` simulates all of it, `groups` says which figures belong together.
"""

from __future__ import annotations

from statistics import median

import numpy as np

from studies.gpu_host.groups import BY_LINK, GROUPS, Group
from studies.gpu_host.points import MACHINES, NAME, Point, measured, points
from tlplab.analytic.plot import Line
from tlplab.bench.case import Case
from tlplab.reproduce import Outcomes, Row, Verdict
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.reproduce.section import Section, made_of

# Bytes around the data of a completion, and of a write above 4 GiB.
COMPLETION, WRITE = 20, 24


def rows(_outcomes: Outcomes) -> list[Row]:
    """Of each group and machine the point in the middle of the errors."""
    found = []
    for group in GROUPS:
        for machine in MACHINES:
            mine = [point for point in points() if point.machine == machine and group.has(point.case)]
            if mine:
                found.append(row(group, machine, sorted(mine, key=lambda point: point.error)))
    return found


def row(group: Group, machine: str, mine: list[Point]) -> Row:
    """A group of a machine."""
    point, worst = mine[len(mine) // 2], max(mine, key=lambda point: abs(point.error))
    verdict: Verdict = "explained" if group.why else "not reproducible"
    if abs(point.error) <= group.within:
        verdict = "reproduced"
    notes = [f"{len(mine)} figures, the farthest off {100 * worst.error:+.1f} %" if len(mine) > 1 else ""]
    notes += [group.why] if abs(worst.error) > group.within else []
    unit = "ns" if point.case.is_latency else "Gb/s"
    name = f"{machine} machine: {group.name} ({said(point.case)})"
    return Row(NAME, name, round(point.measured, 2), point.ours, unit, verdict, "; ".join(filter(None, notes)))


def said(case: Case) -> str:
    """The parameters that distinguish a case."""
    parts = [f"{case.size} B"]
    parts += [f"at {case.host_offset} B"] if case.host_offset else []
    parts += [f"{case.at_once} at once"] if case.at_once else []
    return ", ".join(parts)


def most(test: str, size: int) -> float:
    """Gb/s that the first machine carried of transfers of a size, at most."""
    wanted = ("first", test, size, 0)
    return max(
        value for machine, case, value in measured() if (machine, case.test, case.size, case.host_offset) == wanted
    )


def small_reads() -> list[float]:
    """Millions a second of reads of 64 B and less, with 1024 at once or more, of all machines."""
    return [
        1e3 * value / 8 / case.size
        for _, case, value in measured()
        if case.test == "bw_rd" and case.size <= 64 and (case.at_once or 1024) >= 1024
    ]


def split_part() -> float:
    """The part of requests of 128 B that is answered in two completions, if bytes on the link decide."""
    raw = most("bw_wr", 1024) * (128 + WRITE) / 128
    return (raw / most("bw_rd", 1024) * 128 - 128 - COMPLETION) / COMPLETION


def drawings(_outcomes: Outcomes) -> list[Curves]:
    """Reads by how many are at once, and bandwidth by size."""
    of_first = [point for point in points() if point.machine == "first" and not point.case.host_offset]
    at_once = [point for point in of_first if point.case.at_once]
    by_size = [point for point in of_first if not point.case.at_once and point.case.window == 2 << 20]
    reads = [
        line
        for size in (32, 128)
        for line in lines(
            f"{size} B", [(point.case.at_once or 0, point) for point in at_once if point.case.size == size]
        )
    ]
    both = [
        line
        for test, name in (("bw_rd", "reads"), ("bw_wr", "writes"))
        for line in lines(name, [(point.case.size, point) for point in by_size if point.case.test == test])
    ]
    return [
        Curves("Reads at once", "reads at once", "Gb/s", tuple(reads), "log"),
        Curves("Bandwidth by size", "bytes", "Gb/s", tuple(both), "log"),
    ]


def lines(name: str, found: list[tuple[int, Point]]) -> list[Line]:
    """Measured and simulated, the first at each place."""
    found = sorted({place: (place, point) for place, point in reversed(found)}.values(), key=lambda pair: pair[0])
    places = np.array([place for place, _ in found])
    return [
        (f"{name}, measured", places, np.array([point.measured for _, point in found])),
        (f"{name}, simulated", places, np.array([point.ours for _, point in found])),
    ]


def text(_outcomes: Outcomes) -> str:
    """The observations, as the text of the page."""
    bound = [group for group in GROUPS if group.within == BY_LINK]
    by_link = [point for point in points() if any(group.has(point.case) for group in bound)]
    within = [point for point in by_link if abs(point.error) <= BY_LINK]
    of = {name: [abs(point.error) for point in points() if point.machine == name] for name in MACHINES}
    return TEXT.format(
        writes=len(by_link),
        writes_within=len(within),
        writes_worst=f"{100 * max(abs(point.error) for point in by_link):.1f}",
        second=len(of["second"]),
        third=len(of["third"]),
        second_median=f"{100 * median(of['second']):.1f}",
        third_median=f"{100 * median(of['third']):.1f}",
        read=f"{most('bw_rd', 1024):.0f}",
        least=f"{min(small_reads()):.0f}",
        greatest=f"{max(small_reads()):.0f}",
        split=f"{100 * split_part():.0f}",
        profiles=table(("file", "fitted to", "figures"), PROFILES),
    )


PROFILES = [
    ["h200.toml", "bandwidth of reads of 4 B, of writes of 4 B; latency of the GPU's own memory", "three"],
    ["host.toml", "latency of 64 B: device-warm, host-warm, cold, behind a write", "four"],
]

TEXT = """## How it was measured

The machine is a virtual one with an H200 passed through: a Xeon of the fifth generation, Gen5 x16, MPS 256 B, MRRS 4096 B, 10-bit tags, according to the GPU's
registers (`tlplab scan`). Neither the root port nor the IOMMU's settings are visible from there. The GPU's warps are the device of
[the benchmarks](../../docs/bench.md), `tlplab bench --on cuda`. Parameters were fitted to a few figures of the first machine:

{profiles}

Then a second machine of the kind, another GPU in another server, was measured: {second} cases, of which six are repetitions and the others have sizes, windows and numbers at
once that the first had not been asked. The profiles have not been changed since; simulated and measured differ by {second_median} % (median of all). A third machine with an H100 in a server of the same kind was
asked all of it, {third} cases, and is held against the same two profiles: {third_median} %.

## Observations

- **Writes of whole lines reach the link's rate**: {writes_within} of {writes} figures of the three machines are within 2 %, the farthest is off by {writes_worst} %: three of the third machine are lower than all its others, which is attributed to other work of its server. A warp's
  store of 128 B is one TLP; the MPS of 256 B is never used.
- **Reads stop at {read} Gb/s**, between the limits of completions of 64 B (382) and of 128 B (433). If only the link's bytes count, {split} % of the requests of 128 B are answered in two pieces.
- **Little's law holds with a latency that grows**: 1.34 µs alone, 1.41 with 128 reads at once, 1.67 with 512 (128 B), at 70 % of the link. The model's reads meet no queue before the link, so
  it is too fast by a tenth to a third there. These figures do not show whether they wait in the GPU or in the host; a second kind of device on the same host would.
- **Small reads end at {least} to {greatest} million a second** on the three machines (64 B and less, 1024 at once and more), and the most not with the most at once. On the first machine reads of the largest window take
  5 to 10 % longer and are as many a second, which speaks for a rate that limits and against the number of tags; these figures do not show more.
"""

PAGE = """# A GPU measures its host, 2026

The effect of one kind of server on a GPU's reads and writes, measured with `tlplab bench --on cuda`, and simulated. This page is written by the command
that does it: `tlplab reproduce gpu-host --markdown studies/gpu_host/README.md`.

## Measured and simulated

*Published* is measured. Of each group of figures the row shows the one in the middle of the errors. *Reproduced* is within 2 % for figures that the link bounds, 10 % otherwise; *explained*
is not, for the reason in the note.

{rows}

{sections}"""

STUDY = made_of(
    (Section(rows=rows, text=text, drawings=drawings),), name=NAME, title="A GPU measures its host, 2026", page=PAGE
)
