"""The pytest plugin: the fixture `tlplab_run`, and the files that `--tlplab-report` keeps of tests that fail.

It is not in the package `tlplab`, which takes a while to import: an installed tlplab costs test suites without it nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tlplab.testing.running import Runner

RUNNER = pytest.StashKey["Runner"]()
LONGEST_NAME = 150


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.getgroup("tlplab").addoption(
        "--tlplab-report", metavar="DIR",
        help="Keep the report page and the capture of each run of a test that fails in DIR.",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Refuses a folder that cannot be one."""
    folder = report_folder(config)
    if folder is not None and any(place.exists() and not place.is_dir() for place in (folder, *folder.parents)):
        raise pytest.UsageError(f"--tlplab-report {folder}: this is a file, or in one; name a folder")


def report_folder(config: pytest.Config) -> Path | None:
    """The folder that `--tlplab-report` names."""
    given = config.getoption("--tlplab-report")
    return None if given is None else config.invocation_params.dir / given


@pytest.fixture
def tlplab_run(request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Runs experiments: `run = tlplab_run("quickstart.toml", overrides=["stop=20us"])`; `tlplab_run.simulate(device, driver)`."""
    from tlplab.testing.running import Runner

    keep = report_folder(request.config) is not None
    runner = Runner(request.path.parent, file_name(request.node.name), keep=keep)
    request.node.stash[RUNNER] = runner
    yield runner
    runner.close()


def file_name(test: str) -> str:
    """A name for files of a test."""
    return re.sub(r"[^\w.-]+", "-", test).strip("-.")[-LONGEST_NAME:]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the results of its runs to the report of a test that failed, and keeps their pages."""
    report = yield
    runner = item.stash.get(RUNNER, None)
    if runner is not None and call.when == "call" and report.failed:
        lines = runner.said()
        folder = report_folder(item.config)
        if folder is not None:
            try:
                lines += runner.keep_in(folder, file_name(item.nodeid))
            except OSError as error:
                lines.append(f"--tlplab-report: {error}")
        if lines:
            report.sections.append(("tlplab", "\n".join(lines)))
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Shows the TLPs of tables that were compared."""
    module = sys.modules.get("tlplab.tlps")
    tables: list[Any] = [] if module is None else [one for one in (left, right) if isinstance(one, module.Tlps)]
    if module is None or not tables:
        return None
    return [f"{left!r} {op} {right!r}", *(line for one in tables for line in module.head(one).splitlines())]
