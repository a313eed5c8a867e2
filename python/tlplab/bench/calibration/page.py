"""The page of studies/pcie_bench about measured hosts: how well they come out, fitted and predicted."""

from __future__ import annotations

from collections.abc import Sequence

from tlplab.bench.calibration.compare import Comparison, Summary, summarise, totals, unique
from tlplab.bench.calibration.dataset import DataSet
from tlplab.bench.calibration.predict import Prediction
from tlplab.reproduce.markdown import table

# A series is met whose 95th percentile is no further off.
CLOSE = 0.1
HEADING = ("data set", "kind", "points", "median error", "95 %", "largest", "within a tick")


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


def counted(many: int, what: str) -> str:
    """A number of things."""
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def page(
    sets: Sequence[DataSet], fitted: Sequence[Comparison], hosts: dict[str, str],
    predicted: Sequence[tuple[Prediction, list[Comparison]]], *, calibrated: bool,
) -> str:  # fmt: skip
    """The page. `hosts` are the hosts that the data sets were compared with, each machine's own if `calibrated`."""
    ticks = unique(f"{data.tick:.1f} ns" for data in sets if data.tick is not None)
    lines = [cells(line) for line in totals(fitted)] + [["**all**", *cells(line)[1:]] for line in totals(fitted, "all")]
    text = PAGE.format(
        machines=counted(len({data.machine_name for data in sets}), "machine"),
        settings=counted(len(sets), "setting"),
        tick=f", {' or '.join(ticks)}" if ticks else "",
        hosts=table(("data set", "host"), [[f"`{name}`", f"`{host}`"] for name, host in hosts.items()]),
        calibrated=CALIBRATED if calibrated else "",
        fits=table(HEADING, lines),
        files=table(HEADING, by_file(fitted)),
    )
    return text + (predictions(predicted) if predicted else "")


def predictions(predicted: Sequence[tuple[Prediction, list[Comparison]]]) -> str:
    """The section of the predictions."""
    lines = [
        [*cells(line, plan.data.name), plan.basis] for plan, comparisons in predicted for line in totals(comparisons)
    ]
    text = PREDICTED.format(predictions=table((*HEADING, "from"), lines))
    awake = [one for plan, comparisons in predicted if plan.kind != "halves" for one in comparisons]
    asleep = [one for plan, comparisons in predicted if plan.kind == "halves" for one in comparisons]
    return text + "".join(figures(name, found) for name, found in ((AWAKE, awake), (ASLEEP, asleep)) if found)


def figures(name: str, comparisons: Sequence[Comparison]) -> str:
    """All predictions of a class of machines, with the required figures."""
    rows = []
    for line in totals(comparisons, "all"):
        of_kind = [summarise("", one.series, [one]) for one in comparisons if one.kind == line.kind]
        close = sum(one.p95_error <= CLOSE for one in of_kind) / len(of_kind)
        rows.append([*cells(line)[1:5], f"{100 * close:.1f} % of {len(of_kind)}"])
    heading = ("kind", "points", "median error", "95 %", "series whose 95 % are within 10 %")
    return f"\n{name}\n\n{table(heading, rows)}\n"


PAGE = """# The hosts of pcie-bench, simulated

The data sets of pcie-bench (Neugebauer and others, SIGCOMM 2018) are measurements of DMA on real machines: bandwidth by size, offset and window,
latency by size, offset, window and cache state, and distributions of latency. Here every point of {machines} in {settings} is simulated
and compared with the measurement. This command writes the page:
`tlplab validate --markdown studies/pcie_bench/hosts.md DATASET...`.

The relative error of a bandwidth, of a median latency, or of a quantile of a distribution is given as its median, 95th percentile and maximum over
the points. *Within a tick*: the share of latencies with an error of at most one step of the device's timestamps{tick}.

## Fitted

{hosts}
{calibrated}
{fits}

By file, over all data sets:

{files}

[nfp6000.md](nfp6000.md) has the measurements that the rules of the device do not explain.
"""

CALIBRATED = """
Each of these hosts was calibrated on the machine's latencies (`tlplab calibrate`; its profile names the measurement behind each value). Bandwidths
determined only the interval of page walks and, for a desktop machine, the interval of posted writes.
"""

PREDICTED = """
## Predicted

No prediction is compared with the measurements to which its parameters were fitted. A *bandwidth* is predicted from the machine's own latencies and a
device with two figures, the time of a write and the time of each piece of it, fitted on the writes of the other machines. Latencies do not show the
interval of page walks, which comes from another machine. Runs *without super-pages* are predicted a second time, from the machine's runs with the IOMMU
off and the page walks of another machine. A machine that sleeps between reads has no similar machine here: half of its series make the host, which predicts
the other half. Some parameters are not fitted here: the rules of the device's engine (its cuts and its order), all its other figures, and the figures of
hosts that no calibration changes. They were found on all four servers of pcie-bench together, and are the same for each.

{predictions}
"""

AWAKE = "All predictions of machines that are awake between reads (servers):"

ASLEEP = """All predictions of machines that sleep between reads (desktops). Their bandwidths scatter: the measured machine's writes of the same size, in
windows that make no difference to any other machine, differ by a factor of two from run to run."""
