"""Runs cases, several at once, so that a person can watch them and stop them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from tlplab import _core
from tlplab.bench.case import Case
from tlplab.bench.result import Result, Results

TARGETS = ("simulator", "model")
# Modes of the host's IOMMU, as the command line and the paper call them.
IOMMU = {"off": "off", "on": "superpages", "nosp": "4KiB"}
# How often progress is told, and Ctrl-C heard.
SECONDS = 0.1


def run(
    cases: Iterable[Case],
    target: str = "simulator",
    *,
    host: str = "server",
    device: str = "nfp6000",
    link: str = "gen3 x8",
    iommu: str | None = None,
    host_keys: Mapping[str, str] | None = None,
    progress: Callable[[float, int], None] | None = None,
    threads: int | None = None,
) -> Results:
    """Measures cases; results come in their order, and do not depend on the number of threads.

    `target` is `simulator`, or `model` for what closed forms say without simulation.
    `host` and `device` are names of profiles or files that end in `.toml`; `iommu` is `off`, `on` (superpages) or `nosp`
    (pages of 4 KiB) instead of what the profile says, `host_keys` are further keys of the host. `progress` hears now and
    then how many cases are done, of how many. Ctrl-C keeps what was measured: see `Results.interrupted`.

    Raises ValueError, ExperimentError or RunError.
    """
    cases = list(cases)
    for case in cases:
        case.check()
    if target not in TARGETS:
        raise ValueError(f"there is no target {target!r}; there are {', '.join(TARGETS)}")
    keys = dict(host_keys or {})
    if iommu is not None:
        if iommu not in IOMMU:
            raise ValueError(f"iommu is {iommu!r}; it is one of {', '.join(IOMMU)}")
        keys["iommu.mode"] = IOMMU[iommu]
    bench = _core.Bench(target, host, device, link, list(keys.items()))
    results = Results()

    def one(case: Case) -> Result:
        return Result.of(json.loads(bench.run(case.to_json())))

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, case) for case in cases]
        try:
            follow(futures, bench, progress)
        except KeyboardInterrupt:
            results.interrupted = True
        finally:
            for future in futures:
                future.cancel()
            bench.stop()
    for future in futures:
        if not future.cancelled():
            result = future.result()
            if result.operations:
                results.append(result)
    return results


def follow(futures: list[Future[Result]], bench: _core.Bench, progress: Callable[[float, int], None] | None) -> None:
    """Waits until all are done, or one has failed."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=SECONDS, return_when=FIRST_EXCEPTION)
        if progress is not None:
            progress(bench.done(), len(futures))
        if any(future.exception() is not None for future in done):
            return
