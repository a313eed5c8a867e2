"""Figures 7 to 11 and Table 2 on the model of the FPGA card, and the formula of the encapsulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.nettlp.rows import compared, fitted, ranged, shape, teeth
from tlplab.reproduce import Outcomes, Row, Run
from tlplab.reproduce.curves import Curves
from tlplab.reproduce.markdown import table
from tlplab.result import Document

CORES = (1, 2, 4, 8, 12, 16)
SIZES = (256, 512, 1024)
# Every 64 B, and what comes 16 B after a multiple of the payload size: there the teeth begin.
TEETH = tuple(sorted({*range(64, 2049, 64), *range(272, 2049, 256)}))
LATENCIES = (1, 256, 1024)
# The largest read request size, as the paper has it. tlpperf cuts longer reads into requests of so much and times each of them; from 25 July 2019 on it
# cuts at 2048 B. Which of them measured figure 9 is not said; none times two requests together.
MRRS = 512
# Of figure 9, µs.
MEDIANS = (12, 14)
# Table 2, µs.
TABLE_2 = {
    256: {"min": 14.312, "median": 17.268, "max": 87.456, "stddev": 1.321},
    512: {"min": 12.2, "median": 18.764, "max": 68.552, "stddev": 1.550},
    1024: {"min": 12.256, "median": 20.06, "max": 52.608, "stddev": 1.685},
    2048: {"min": 11.612, "median": 18.588, "max": 68.224, "stddev": 2.385},
}
FORMULA = 7.53
# Of one core, 256 B, in thousands of reads per second: the software's constants were chosen for it.
PUBLISHED_SINGLE = 81
# What is less deep is no tooth.
TOOTH = 0.95
BUILT_IN = "true by construction of the model"


def brief(experiment: str, name: str, *overrides: str) -> Run:
    """A short run: nothing varies in the model, so more of it would tell no more."""
    return Run(name, experiment, ('stop="3ms"', *overrides))


def reads(name: str, size: int, cores: int) -> Run:
    """One read at a time on each core, as tlpperf does."""
    return brief(
        "reads.toml", name, f'load.card.size="{size}B"', f"device.card.cores={cores}", f"load.card.outstanding={cores}",
    )  # fmt: skip


def runs() -> list[Run]:
    """Every simulation."""
    return [
        Run("formula", "formula.toml"),
        Run("overflow", "overflow.toml"),
        *(reads(f"cores {size} {cores}", size, cores) for size in SIZES for cores in CORES),
        *(reads(f"size {size}", size, 16) for size in TEETH),
        *(reads(f"latency {size}", min(size, MRRS), 1) for size in LATENCIES),
        *(
            brief("reads.toml", f"write {size} {cores}", 'load.card.op="write"', f'load.card.size="{size}B"',
                  f"device.card.cores={cores}", f"load.card.outstanding={cores}")
            for size in (256, 512) for cores in CORES
        ),
        *(brief("psmem.toml", f"psmem {size}", f'load.bench.size="{size}B"') for size in TEETH),
        *(
            brief("psmem.toml", f"psmem latency {size}", f'load.bench.size="{size}B"', "load.bench.outstanding=1")
            for size in TABLE_2
        ),
    ]  # fmt: skip


def rate(result: Document) -> float:
    """Goodput in Gb/s."""
    return result["flows"][0]["payload_bps"] / 1e9


def seen_us(result: Document) -> float:
    """The median time of a read as the software sees it, in µs."""
    latency = result["networks"][0]["latency_ns"]
    return latency["p50"] / 1e3 if latency else float("nan")


def waited_us(result: Document) -> float:
    """The median time of a read as the fabric sees it, in µs."""
    latency = result["flows"][0]["latency_ns"]
    return latency["p50"] / 1e3 if latency else float("nan")


def rows(outcomes: Outcomes) -> list[Row]:
    """The paper's results in its order."""
    cores = {(size, n): rate(outcomes[f"cores {size} {n}"]) for size in SIZES for n in CORES}
    twelve, sixteen = cores[512, 12], cores[512, 16]
    single = cores[256, 1] * 1e9 / 8 / 256 / 1e3
    fast = f"{PUBLISHED_SINGLE:g} k/s of figure 7 are {1e3 / PUBLISHED_SINGLE:.2f} us a read of 256 B, the model's constants give {1e3 / single:.2f}"
    threads = f"the paper ran 16 threads on 12 cores; {twelve:.2f} with 12 whole cores"
    size = {one: rate(outcomes[f"size {one}"]) for one in TEETH}
    found = {one: rate(outcomes[f"psmem {one}"]) for one in TEETH}
    writes = {(one, n): rate(outcomes[f"write {one} {n}"]) for one in (256, 512) for n in CORES}
    to_card = outcomes["formula"]["networks"][0]["to_card"]["payload_bps"] / 1e9
    return [
        compared("model, 256 B writes on 10 Gb/s: encapsulation", FORMULA, to_card, "Gb/s", 0.002),
        fitted("model, figure 7, 256 B, 1 core", PUBLISHED_SINGLE, single, "k/s", "wake, send and receive were chosen for this"),
        compared("model, figure 7, 512 B, 16 cores", 3.59, sixteen, "Gb/s", 0.1, excuse=threads),
        shape("model, figure 7, 512 B: 8 cores to 1", cores[512, 8] / cores[512, 1], "times",
              abs(cores[512, 8] / cores[512, 1] / 8 - 1) < 0.02, f"throughput is linear in cores; {BUILT_IN}: one outstanding read on each"),
        shape("model, figure 7, 16 cores: 1024 B to 512 B", cores[1024, 16] / sixteen, "times",
              cores[1024, 16] / sixteen < 1.05, f"no gain beyond the largest read request size; {BUILT_IN}: reads are split there"),
        *teeth("model, figure 8", size, TOOTH),
        *(
            ranged(f"model, figure 9, {one} B: median", MEDIANS, seen_us(outcomes[f"latency {one}"]), "us",
                   timed(one), excuse=fast if one <= 256 else "")
            for one in LATENCIES
        ),
        shape("model, figure 10: 512 B to 256 B, 16 cores", writes[512, 16] / writes[256, 16], "times",
              writes[512, 16] / writes[256, 16] < 1.05, f"256 B reach the maximum; {BUILT_IN}: writes are split at the largest payload"),
        compared("model, figure 11: most", 4.7, max(found.values()), "Gb/s", 0.15, "processors as in Table 2"),
        *teeth("model, figure 11", found, TOOTH),
        *(
            fitted(f"model, table 2, {one} B: median", median, waited, "us", "the time to wake psmem was chosen for this")
            if one == 256 else compared(f"model, table 2, {one} B: median", median, waited, "us", 0.15)
            for one, median, waited in
            ((one, published["median"], waited_us(outcomes[f"psmem latency {one}"])) for one, published in TABLE_2.items())
        ),
    ]  # fmt: skip


def timed(size: int) -> str:
    """The extent of a latency of figure 9, in words."""
    return (
        f"of one request of {MRRS} B, the largest in the paper: tlpperf times each request, not their sum"
        if size > MRRS
        else ""
    )


def lost(result: Document) -> float:
    """The share of datagrams that Ethernet could not carry, in percent."""
    way = result["networks"][0]["to_software"]
    return 100 * way["dropped"] / (way["datagrams"] + way["dropped"])


def text(outcomes: Outcomes) -> str:
    """The section of the page."""
    heading = ["cores", *map(str, CORES)]
    lines = [
        [f"{size} B reads, Gb/s", *(f"{rate(outcomes[f'cores {size} {n}']):.2f}" for n in CORES)] for size in SIZES
    ]
    lines += [
        [f"{size} B writes, Gb/s", *(f"{rate(outcomes[f'write {size} {n}']):.2f}" for n in CORES)]
        for size in (256, 512)
    ]
    return TEXT.format(table=table(heading, lines), lost=lost(outcomes["overflow"]))


TEXT = """## The card as a model

`model = "nettlp-card"` is the card in the fabric: a Gen2 x4 end point, a 10 Gb/s Ethernet link with a buffer of 64 KiB, and software on
processors that spend time on every datagram. Each TLP has 52 B of headers and frame check sequence around it, and 20 B of preamble and gap, so
writes of 256 B carry 10 · 256 / (12 + 256 + 72) = 7.53 Gb/s (`studies/nettlp/formula.toml`). Three constants describe the software: 2.5 µs to send a
datagram, 2.5 µs to receive one, 6 µs to wake a sleeping thread. They were chosen so that one core reads 256 B at the paper's rate; for
`psmem` the last is 11.4 µs, fitted to 256 B of Table 2. All other figures follow:

{table}

The modelled software has no jitter and therefore no tails. Those of the paper (figure 9: p99 below 27 µs, at most 45 µs; minimum, maximum and deviation of Table 2)
are measured, not modelled.

NetTLP has no flow control for posted writes. Of the writes that a host sends to the card at the full rate of Gen2 x4, {lost:.0f} % are lost before the slower Ethernet link
(`studies/nettlp/overflow.toml`). The paper did not measure this.
"""


def drawings(outcomes: Outcomes) -> Sequence[Curves]:
    """Figures 7, 8 and 11."""
    by_cores = tuple(
        (f"{size} B", np.array(CORES), np.array([rate(outcomes[f"cores {size} {n}"]) for n in CORES])) for size in SIZES
    )
    sizes = np.array(TEETH)
    to_card, to_software = (
        np.array([rate(outcomes[f"{what} {size}"]) for size in TEETH]) for what in ("size", "psmem")
    )
    return (
        Curves("Figure 7, modelled: reads by software", "cores", "Gb/s", by_cores),
        Curves("Figure 8, modelled: 16 cores", "read, bytes", "Gb/s", (("16 cores", sizes, to_card),)),
        Curves("Figure 11, modelled: reads of software", "read, bytes", "Gb/s", (("24 tags", sizes, to_software),)),
    )
