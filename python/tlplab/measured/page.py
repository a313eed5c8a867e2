"""The page of docs/studies about measured hosts: how well they come out, fitted and predicted."""

from __future__ import annotations

from collections.abc import Sequence

from tlplab.measured.compare import Comparison, Summary, summarise, totals, unique
from tlplab.measured.predict import Prediction
from tlplab.reproduce.markdown import table

HEADING = ("data set", "what", "points", "median error", "95 %", "largest", "within a tick")


def cells(line: Summary, host: str | None = None) -> list[str]:
    """A line of a table."""
    within = "–" if line.within_tick is None else f"{100 * line.within_tick:.1f} %"
    errors = [f"{100 * error:.2f} %" for error in (line.median_error, line.p95_error, line.max_error)]
    return [host or line.host, line.series.removeprefix("all "), str(line.points), *errors, within]


def by_file(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """A line for each file, over all data sets."""
    lines = []
    for file in unique(one.file for one in comparisons):
        alike = [one for one in comparisons if one.file == file]
        lines.append(cells(summarise("all", file, alike)))
    return lines


def page(
    fitted: Sequence[Comparison], hosts: dict[str, str], predicted: Sequence[tuple[Prediction, list[Comparison]]]
) -> str:
    """The page. `hosts` are the hosts that the data sets were compared with."""
    every = [one for _, comparisons in predicted for one in comparisons]
    lines = [cells(line) for line in totals(fitted)] + [["**all**", *cells(line)[1:]] for line in totals(fitted, "all")]
    predictions = [
        [*cells(line, plan.data.name), plan.basis] for plan, comparisons in predicted for line in totals(comparisons)
    ]
    pooled = [["**all**", *cells(line)[1:], ""] for line in totals(every, "all")]
    return PAGE.format(
        hosts=table(("data set", "host"), [[f"`{name}`", f"`{host}`"] for name, host in hosts.items()]),
        fits=table(HEADING, lines),
        files=table(HEADING, by_file(fitted)),
        predictions=table((*HEADING, "from"), predictions + pooled),
    )


PAGE = """# The hosts of pcie-bench, simulated

The data sets of pcie-bench (Neugebauer and others, SIGCOMM 2018) say what DMA takes on real machines: bandwidth by size, offset and window,
latency by size, offset, window and cache state, and distributions of latency. Here every point of four machines in eight settings is simulated
and laid beside what was measured. This page is written by the command that does it:
`tlplab validate --markdown docs/studies/pcie-bench-hosts.md DATASET...`.

The relative error of a bandwidth, of a median latency, or of a quantile of a distribution is given as its median, 95th percentile and maximum over
the points. *Within a tick*: the share of latencies that are not further off than one step of the device's timestamps, 13.3 ns.

## Fitted

{hosts}

Each of these hosts was calibrated on the machine's latencies (`tlplab calibrate`; its profile names the measurement behind each value). Bandwidths
fixed nothing of a host but how soon one page walk follows another.

{fits}

By file, over all data sets:

{files}

Where it is off most: reads of 407 to 1024 B, cold ones above all, which the machines do at one of two speeds and change between them within a run;
writes with partial lines on the two older processors, which take half as long again there; reads of 256 B under page walks; windows just
beyond the IO-TLB's reach or the share of the cache that devices fill, where a median jumps from one value to another.
[nfp6000.md](nfp6000.md) says more.

## Predicted

Nothing that a prediction is laid beside was used for it. A *bandwidth* is predicted from the machine's own latencies and a device whose
figures were fitted on the writes of the other machines. Runs *without super-pages* are predicted from the machine's runs with the IOMMU off and the
page walks of another machine. The rules of the device's engine (how it cuts, what waits for what) were found on all four machines, and are the same for
each.

{predictions}
"""
