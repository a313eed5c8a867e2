"""The notebooks: each run from top to bottom in a folder of its own, with the outputs kept that a reader sees on a code host.

`python site/notebooks.py` runs all and stores their outputs; the tests run them again and compare.
"""

from __future__ import annotations

import copy
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
# Seconds for one cell.
TIMEOUT = 120


def all_of_them() -> list[Path]:
    """The notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    """A notebook."""
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)


def execute(notebook: Any, folder: Path) -> Any:
    """A copy of the notebook with the outputs of a run in `folder`. Raises `CellExecutionError` if a cell does."""
    done = copy.deepcopy(notebook)
    with tempfile.TemporaryDirectory() as own:
        # Sockets in files: on a network, others could listen.
        sockets = Config({"KernelManager": {"transport": "ipc", "ip": f"{own}/kernel"}})
        place = {"metadata": {"path": str(folder)}}
        client = NotebookClient(done, kernel_name="python3", timeout=TIMEOUT, resources=place, config=sockets)
        inline = "module://matplotlib_inline.backend_inline"
        client.execute(env={**os.environ, "XDG_CACHE_HOME": own, "MPLBACKEND": inline})
    for cell in done.cells:
        cell.metadata.pop("execution", None)
    done.metadata["language_info"] = {"name": "python"}
    return done


def outputs(notebook: Any) -> list[list[dict[str, str]]]:
    """The outputs of each cell, by kind: text as it is, of a picture only its presence, as its bytes depend on the version of a library."""
    return [[shown(output) for output in cell.get("outputs", ())] for cell in notebook.cells]


def shown(output: Any) -> dict[str, str]:
    """The contents of one output."""
    if output["output_type"] == "stream":
        return {output["name"]: output["text"]}
    return {kind: "a picture" if kind.startswith("image/") else data for kind, data in output.get("data", {}).items()}


def differences(stored: Any, executed: Any) -> list[str]:
    """One sentence for each cell that shows something else than is stored."""
    pairs = zip(outputs(stored), outputs(executed), strict=True)
    return [
        f"cell {number} shows\n{now}\ninstead of\n{before}"
        for number, (before, now) in enumerate(pairs, 1)
        if now != before
    ]


def main() -> None:
    """Runs all notebooks and stores their outputs."""
    for path in all_of_them():
        with tempfile.TemporaryDirectory() as folder:
            stored = read(path)
            executed = execute(stored, Path(folder))
        if differences(stored, executed):
            path.write_text(nbformat.writes(executed) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
