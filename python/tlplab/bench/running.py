"""Runs cases, several at once, so that a person can watch them and stop them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Protocol

from tlplab import _core
from tlplab.bench import software
from tlplab.bench.case import Case
from tlplab.bench.cuda.target import CudaTarget, number_of
from tlplab.bench.result import Result, Results
from tlplab.device import Device

TARGETS = ("simulator", "model")
HOST, DEVICE, LINK = "server", "nfp6000", "gen3 x8"
# Modes of the host's IOMMU, as the command line and the paper call them.
IOMMU = {"off": "off", "on": "superpages", "nosp": "4KiB"}
# How often progress is told, and Ctrl-C heard.
SECONDS = 0.1


class Target(Protocol):
    """Something that runs cases."""

    parallel: bool
    """Several cases at once take less time."""
    machine: str | None
    """The machine that is measured, in words; None if it is simulated."""

    def run(self, case: Case) -> Result:
        """Measures a case, or the part of it until `stop`. Raises ValueError, RunError."""
        ...

    def remarks(self, cases: list[Case]) -> list[str]:
        """Remarks for readers of the results."""
        ...

    def stop(self) -> None:
        """Ends all runs soon."""
        ...

    def done(self) -> float:
        """The number of cases that are done, with the parts of the present ones."""
        ...


class CoreTarget:
    """A target in the core: the simulator, or the closed form."""

    parallel = True
    machine: str | None = None

    def __init__(
        self, name: str, host: str, device: str, link: str, host_keys: Mapping[str, str | int],
        mps: int | None = None, mrrs: int | None = None,
    ) -> None:  # fmt: skip
        keys = [(key, str(value)) for key, value in host_keys.items()]
        self._host = host
        self._bench = _core.Bench(name, host, device, link, keys, mps, mrrs)
        self.stop = self._bench.stop
        self.done = self._bench.done

    def run(self, case: Case) -> Result:
        """Measures a case."""
        return Result.of(json.loads(self._bench.run(case.to_json())))

    def remarks(self, cases: list[Case]) -> list[str]:
        """Remarks about the cases that follow from the host's profile."""
        if self._bench.host_has_cache() or all(case.cache == "cold" or case.test == "bw_wr" for case in cases):
            return []
        return [f"host {self._host} has no cache (host.cache): every read goes to memory, as if cold"]


def run(
    cases: Iterable[Case],
    target: str | type[Device] = "simulator",
    *,
    host: str = HOST,
    device: str | None = None,
    link: str = LINK,
    iommu: str | None = None,
    host_keys: Mapping[str, str | int] | None = None,
    mps: int | None = None,
    mrrs: int | None = None,
    progress: Callable[[float, int], None] | None = None,
    threads: int | None = None,
) -> Results:
    """Measures cases; results come in their order, and do not depend on the number of threads.

    `target` is `simulator`; `model` for closed forms without simulation; a device in Python, as a class or as
    `file.py:Class` (see `tlplab.bench.software`), in the simulator; or `cuda` for this machine by its GPU, which is all
    of host, link and device. `host` and `device` (`nfp6000`) are names of profiles
    or files that end in `.toml`; a device in Python takes the place of the latter. `iommu` is `off`, `on` (superpages) or
    `nosp` (pages of 4 KiB) instead of the profile's setting, `host_keys` are further keys of the host, with values as
    `--set` takes them. `mps` and `mrrs`, in bytes, are software's settings of the device. `progress` receives the number of finished cases, and of all, now and then. Ctrl-C keeps the measurements so far:
    see `Results.interrupted`.

    Raises ValueError, ExperimentError or RunError.
    """
    cases = list(cases)
    for case in cases:
        case.check()
    keys: dict[str, str | int] = dict(host_keys or {})
    if iommu is not None:
        if iommu not in IOMMU:
            raise ValueError(f"iommu is {iommu!r}; it is one of {', '.join(IOMMU)}")
        if iommu != "off" and not is_gpu(target) and not any(key.startswith("iommu.") for key in keys):
            check_iommu(host)
        keys["iommu.mode"] = IOMMU[iommu]
    return run_on(target_of(target, host, device, link, keys, mps, mrrs), cases, progress, threads)


def is_gpu(target: str | type[Device]) -> bool:
    """True for `cuda` or `cuda:N`."""
    return isinstance(target, str) and target.partition(":")[0] == "cuda"


def check_iommu(host: str) -> None:
    """Raises ValueError for a host whose profile knows no figures of an IOMMU."""
    shipped = dict(_core.hosts())
    able = [name for name, text in shipped.items() if "[host.iommu]" in text]
    if host in shipped and host not in able:
        raise ValueError(
            f"the profile of host {host} has no IOMMU (host.iommu); those of {' and '.join(able)} have one"
        )


def target_of(
    target: str | type[Device], host: str, device: str | None, link: str, keys: Mapping[str, str | int],
    mps: int | None = None, mrrs: int | None = None,
) -> Target:  # fmt: skip
    """The target that runs the cases. Raises ValueError, ExperimentError."""
    if target in TARGETS:
        return CoreTarget(str(target), host, device or DEVICE, link, keys, mps, mrrs)
    if is_gpu(target):
        if (host, device, link, mps, mrrs) != (HOST, None, LINK, None, None) or keys:
            raise ValueError(
                "a GPU measures this machine, which has its own host, device, link and IOMMU: leave these options out"
            )
        return CudaTarget(number_of(str(target)))
    if isinstance(target, str):
        if ".py:" not in target:
            raise ValueError(f"unknown target {target!r}; the targets are {', '.join(TARGETS)}, cuda and FILE.py:CLASS")
        target = software.load(target)
    if device is not None:
        raise ValueError(f"device {device} and a device in Python cannot both be measured; leave one out")
    if mps is not None or mrrs is not None:
        raise ValueError("a device in Python has its own mps and mrrs; leave them out")
    return software.SoftwareTarget(target, host=host, link=link, host_keys=keys)


def run_on(
    target: Target, cases: list[Case], progress: Callable[[float, int], None] | None, threads: int | None
) -> Results:
    """Measures cases on a target."""
    results = Results()
    workers = (threads or os.cpu_count() or 1) if target.parallel else 1
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(target.run, case) for case in cases]
        try:
            follow(futures, target, progress)
        except KeyboardInterrupt:
            results.interrupted = True
        finally:
            for future in futures:
                future.cancel()
            target.stop()
    for future in futures:
        if not future.cancelled():
            result = future.result()
            if result.operations or not results.interrupted:
                results.append(result)
    results.remarks = target.remarks(cases)
    results.machine = target.machine
    return results


def follow(futures: list[Future[Result]], target: Target, progress: Callable[[float, int], None] | None) -> None:
    """Waits until all are done, or one has failed."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=SECONDS, return_when=FIRST_EXCEPTION)
        if progress is not None:
            progress(target.done(), len(futures))
        if any(future.exception() is not None for future in done):
            return
