"""The notebooks run from top to bottom, and show the outputs that are stored in them."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from types import ModuleType

import notebook_page
import pages
import pytest

import tlplab as tl

notebooks = pytest.importorskip("notebooks", reason="nbclient runs notebooks")
pytest.importorskip("pandas", reason="the notebooks show tables with pandas")

NAMES = ["device", "sweep", "tags"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_reproduces_its_stored_outputs(name: str, tmp_path: Path) -> None:
    stored = notebooks.read(notebooks.FOLDER / f"{name}.ipynb")
    found = notebooks.differences(stored, notebooks.execute(stored, tmp_path))
    assert not found, "run `make generate`\n" + "\n".join(found)
    assert list(tmp_path.iterdir()) == [], "a notebook leaves files beside itself"


def test_all_notebooks_are_run() -> None:
    assert [path.stem for path in notebooks.all_of_them()] == NAMES


def test_a_stale_output_is_noticed() -> None:
    stored = notebooks.read(notebooks.FOLDER / "tags.ipynb")
    changed = copy.deepcopy(stored)
    assert notebooks.differences(stored, changed) == []
    html = next(output for cell in changed.cells for output in cell.get("outputs", ()) if "text/html" in output.data)
    html.data["text/html"] = html.data["text/html"].replace("Gb/s", "Mb/s")
    assert [line.split(" shows")[0] for line in notebooks.differences(stored, changed)] == ["cell 2"]
    for output in changed.cells[4].outputs:
        output.data.pop("image/png")
    assert len(notebooks.differences(stored, changed)) == 2, "a picture that is gone"


def test_a_cell_that_raises_is_noticed(tmp_path: Path) -> None:
    stored = notebooks.read(notebooks.FOLDER / "device.ipynb")
    stored.cells = stored.cells[:2]
    stored.cells[1].source = "raise ValueError('as it should')"
    with pytest.raises(Exception, match="as it should"):
        notebooks.execute(stored, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_links_of_notebooks_lead_to_files(name: str) -> None:
    text = notebook_page.as_page((notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    targets = [target for _, target in pages.links(text) if not target.startswith("data:")]
    assert targets
    for target in targets:
        assert (notebooks.FOLDER / target).exists(), target


def test_a_device_of_a_notebook_needs_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    text = "import tlplab as tl\nclass Card(tl.Device):\n    ids = tl.Ids(1, 2)\n    class regs(tl.Bar, size='4KiB'):\n        go = tl.Reg32(0)\n"
    exec(compile(text, "<cell>", "exec"), main.__dict__)
    assert not hasattr(main, "__file__")
    assert tl.simulate(main.Card(), stop="1us").title == "Card, simulated"
