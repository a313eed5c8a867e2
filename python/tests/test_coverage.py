"""Counters of drivers: the lines for errors, and the part of them that boots have reached."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from privilege import lacking

from tlplab.torture.coverage import IS_ERROR, Counters, by_driver

SOURCE = """#include <errno.h>
int check(int value)
{
	if (value > 2)
		return -EINVAL;
	return 0;
}

int never(void)
{
	return -EIO;
}
"""
MAIN = """int check(int value);
int main(int count, char **unused)
{
	return check(count) < -100;
}
"""


@pytest.mark.parametrize(
    ("line", "is_error"),
    [
        ("\t\treturn -ENODEV;", True),
        ("\tret_val = -E1000_ERR_NVM;", True),
        ("\t\tgoto out_unmap;", True),
        ("\t\tgoto err_sw_init;", True),
        ('\tdev_warn(dev->ctrl.device, "timeout");', True),
        ('\t\te_dbg("Error reading PHY register\\n");', True),
        ('\te_dbg("Setting link\\n");', False),
        ("\treturn PCI_ERS_RESULT_NEED_RESET;", True),
        ("\treturn 0;", False),
        ("\tgoto again;", False),
        ("\tpci_set_master(pdev);", False),
    ],
)
def test_lines_for_errors_are_known_by_their_text(line: str, is_error: bool) -> None:
    assert (IS_ERROR.search(line) is not None) == is_error


def test_boots_add_up_and_functions_that_never_ran_are_left_out(tmp_path: Path) -> None:
    if shutil.which("gcov-tool") is None:
        lacking("gcov-tool, which comes with gcc")
    build = tmp_path / "build"
    folder = build / "drivers/host"
    folder.mkdir(parents=True)
    (folder / "thing.c").write_text(SOURCE)
    (folder / "main.c").write_text(MAIN)
    subprocess.run(
        ["gcc", "--coverage", "-c", "drivers/host/thing.c", "-o", "drivers/host/thing.o"], cwd=build, check=True
    )
    subprocess.run(
        ["gcc", "--coverage", "-o", "run", "drivers/host/thing.o", "drivers/host/main.c"], cwd=build, check=True
    )
    counters = Counters()

    def boot(*arguments: str) -> dict[str, dict[int, int]]:
        subprocess.run([build / "run", *arguments], check=True)
        share = tmp_path / "share"
        # As the guest copies them: below the folder in which the kernel was built.
        there = share / "gcov/cache/kernel-1.partial/build/drivers/host"
        there.mkdir(parents=True)
        shutil.move(folder / "thing.gcda", there / "thing.gcda")
        counters.add(share)
        return counters.lines(build)

    before = boot()
    boot()
    after = boot("x", "y")
    file = "drivers/host/thing.c"
    assert [before[file][line] for line in (2, 4, 5, 6)] == [1, 1, 0, 1]
    assert [after[file][line] for line in (2, 4, 5, 6)] == [3, 3, 1, 2]
    assert 11 not in after[file], "the function there never ran"
    ((first,), (last,)) = (by_driver(of, after, build) for of in (before, after))
    assert (first.driver, first.known, first.errors, first.errors_reached) == ("drivers", last.known, 1, 0)
    assert (last.errors, last.errors_reached, last.reached) == (1, 1, first.reached + 1)
    assert (first.left, last.ran, last.left) == (last.ran, first.left, ())
    assert last.ran == ("drivers/host/thing.c:5: return -EINVAL;",)
