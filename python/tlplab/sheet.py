"""Tables for a terminal that always fit: names are kept and folded, empty figures left out, the others continued below."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

NOTHING = "–"
GAP = 2
# Names are folded so far that all figures fit beside them, but not to less than this.
SHORTEST_NAME = 12
# Where that is not enough, the figures are continued below, and names take at most this share of the width.
NAMES_SHARE = 0.55


@dataclass
class Column:
    """A column of names (left, kept and folded) or of figures (right, never broken)."""

    heading: str
    name: bool = False
    style: str = ""
    fold: bool = True
    cells: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The width of the widest cell, columns of the terminal."""
        return max(Text(line).cell_len for cell in (self.heading, *self.cells) for line in cell.split("\n"))

    @property
    def empty(self) -> bool:
        """True if no cell has content."""
        return all(cell in ("", NOTHING) for cell in self.cells)


class Sheet:
    """A table with a title. Fill the columns by `add`; `print` lays it out."""

    def __init__(self, title: str, columns: list[Column]) -> None:
        self.title = title
        self.columns = columns
        self.sections: set[int] = set()

    def add(self, *cells: str, ends_section: bool = False) -> None:
        """A row, in the order of the columns."""
        for column, cell in zip(self.columns, cells, strict=True):
            column.cells.append(cell)
        if ends_section:
            self.sections.add(self.rows)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0].cells)

    def print(self, console: Console) -> None:
        """Prints the table in at most the width of the console."""
        console.print(Text(self.title, style="bold"))
        for number, (shown, widths) in enumerate(self.blocks(console.width)):
            if number:
                console.print()
            self.print_block(console, shown, widths)

    def blocks(self, width: int) -> list[tuple[list[Column], list[int]]]:
        """The columns that stand side by side, and their widths; names stand in every block."""
        kept = [column for column in self.columns if column.name or not column.empty]
        names = [column for column in kept if column.name]
        widths = {id(column): column.width for column in kept}

        def total(columns: list[Column]) -> int:
            return sum(widths[id(column)] + GAP for column in columns) - GAP

        if total(kept) > width:
            beside = width - GAP - total([column for column in kept if not column.name])
            short = sum(min(widths[id(c)], SHORTEST_NAME if c.fold else width) + GAP for c in names) - GAP
            most = beside if beside >= short else round(width * NAMES_SHARE)
            while total(names) > most and (long := [c for c in names if c.fold and widths[id(c)] > 1]):
                widths[id(max(long, key=lambda column: widths[id(column)]))] -= 1
        blocks: list[list[Column]] = [[]]
        for column in (column for column in kept if not column.name):
            if blocks[-1] and total([*names, *blocks[-1], column]) > width:
                blocks.append([])
            blocks[-1].append(column)
        shown = [[column for column in kept if column.name or column in block] for block in blocks]
        return [(block, [widths[id(column)] for column in block]) for block in shown]

    def print_block(self, console: Console, columns: list[Column], widths: list[int]) -> None:
        """Prints some of the columns."""
        headings = [column.heading.split("\n") for column in columns]
        deepest = max(map(len, headings))
        for line in range(deepest):
            cells = [([""] * (deepest - len(heading)) + heading)[line] for heading in headings]
            print_line(console, [Text(cell, style="dim") for cell in cells], columns, widths)
        console.print(Text("─" * (sum(widths) + GAP * (len(widths) - 1))), soft_wrap=True)
        for row in range(self.rows):
            folded = [
                list(Text(column.cells[row], style=column.style).wrap(console, width, overflow="fold"))
                for column, width in zip(columns, widths, strict=True)
            ]
            for line in range(max(map(len, folded))):
                print_line(console, [part[line] if line < len(part) else Text() for part in folded], columns, widths)
            if row + 1 in self.sections and row + 1 < self.rows:
                console.print()


def print_line(console: Console, cells: list[Text], columns: list[Column], widths: list[int]) -> None:
    """One line of the terminal, without blanks at its end."""
    line = Text()
    for number, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        cell.rstrip()
        blanks = " " * max(width - cell.cell_len, 0)
        line.append(" " * GAP if number else "")
        line = line + cell + blanks if column.name else line + blanks + cell
    line.rstrip()
    console.print(line, soft_wrap=True)
