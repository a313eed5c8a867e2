"""Parts that the plots of all commands share: colours, kinds of files, and writing of a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from tlplab import outputs

if TYPE_CHECKING:  # matplotlib takes a while to import: no command waits for it that draws nothing
    from matplotlib.figure import Figure

# Colour-blind safe (Okabe and Ito), then repeated.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 130


def check_ending(option: str, path: str) -> None:
    """Refuses a file that no plot can be. Raises `click.UsageError`."""
    outputs.check_ending(option, path, ENDINGS)


def write_figure(path: str, figure: Figure) -> None:
    """Writes a figure as the ending of `path` says, without the time of day: the same figure makes the same bytes. A file is replaced whole or stays as it was."""
    import matplotlib

    kind = Path(path).suffix.lower().lstrip(".")
    drawn = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with matplotlib.rc_context({"svg.hashsalt": "tlplab"}):
        figure.savefig(drawn, format=kind, dpi=DOTS_PER_INCH, metadata=undated.get(kind))
    outputs.write_bytes(path, drawn.getvalue())
