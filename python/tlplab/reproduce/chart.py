"""Bar charts as SVG, and the page that holds them: one file, no scripts, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt

from tlplab.reproduce import Drawing

COLOURS = ("#7a7f87", "#b2452f", "#2f6cb2")
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 480, 290, 46, 10, 48, 66
# Of the widest letters that a legend has, at its size.
LETTER = 6.2


@dataclass(frozen=True)
class Chart:
    """Bars in groups: for each point on the axis one bar of each series; None draws none."""

    title: str
    axis: str
    unit: str
    points: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]

    def svg(self) -> str:
        """The chart."""
        high, wide = HEIGHT - TOP - BOTTOM, WIDTH - LEFT - RIGHT
        step, top = scale(max((value for _, values in self.series for value in values if value is not None), default=0))
        group = wide / len(self.points)
        bar = group * 0.84 / len(self.series)
        parts = [text(8, 17, self.title, size=13, weight="bold"), text(8, TOP - 10, self.unit), *self.legend()]
        for number in range(round(top / step) + 1):
            y = TOP + high * (1 - number * step / top)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(text(LEFT - 5, y + 4, f"{number * step:g}", anchor="end"))
        for row, (name, values) in enumerate(self.series):
            for column, value in enumerate(values):
                if value is None:
                    continue
                x, size = LEFT + group * (column + 0.08) + bar * row, high * value / top
                parts.append(
                    f'<rect x="{x:.1f}" y="{TOP + high - size:.1f}" width="{bar * 0.92:.1f}" height="{size:.1f}" '
                    f'fill="{self.colour(row)}"><title>{escape(name)}: {value:.4g} {escape(self.unit)}</title></rect>'
                )
                parts.append(text(x + bar * 0.46, TOP + high - size - 3, f"{value:.3g}", anchor="middle", size=9))
        for column, point in enumerate(self.points):
            parts.append(text(LEFT + group * (column + 0.5), HEIGHT - BOTTOM + 16, point, anchor="middle"))
        parts.append(text(LEFT + wide / 2, HEIGHT - BOTTOM + 36, self.axis, anchor="middle"))
        inside = "".join(parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self.title)}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{inside}</svg>'
        )

    def colour(self, row: int) -> str:
        """Of a series: published figures are grey."""
        published = self.series[0][0] == "published"
        return COLOURS[(row if published else row + 1) % len(COLOURS)]

    def legend(self) -> list[str]:
        """The series, above the bars."""
        parts, x = [], 8.0
        for row, (name, _) in enumerate(self.series):
            parts.append(f'<rect x="{x:.1f}" y="27" width="10" height="10" fill="{self.colour(row)}"/>')
            parts.append(text(x + 14, 36, name))
            x += 14 + LETTER * len(name) + 12
        return parts


def scale(most: float) -> tuple[float, float]:
    """The distance of the lines of an axis, 1, 2 or 5 of some power of ten, and where it ends: above `most`, with room for its figure."""
    if most <= 0:
        return 1, 1
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    return step, step * math.ceil(most * 1.04 / step)


def text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 11, weight: str = "normal") -> str:
    """A piece of text."""
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" font-family="sans-serif" fill="#222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


@dataclass(frozen=True)
class Section:
    """A part of a page: figures under a heading and a text in Markdown, each of which may be empty."""

    title: str
    text: str
    drawings: Sequence[Drawing]

    def html(self) -> str:
        """The part."""
        heading = f"<h2>{escape(self.title)}</h2>" if self.title else ""
        words: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(self.text)
        return heading + words + "".join(f"<figure>{drawing.svg()}</figure>" for drawing in self.drawings)


def page(title: str, sections: Sequence[Section], heading: tuple[str, ...], lines: list[list[str]]) -> str:
    """The figures, and a table below them."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    figures = "".join(section.html() for section in sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<style>body{font:14px/1.5 sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#222}"
        "figure{display:inline-block;margin:8px;max-width:100%}table{border-collapse:collapse}"
        "td,th{border-bottom:1px solid #ddd;padding:3px 8px;text-align:left;vertical-align:top}"
        ".rows{margin-top:2em}.rows td:nth-child(n+2):nth-child(-n+5){white-space:nowrap}.rows td:first-child{width:32%}svg{max-width:100%;height:auto}"
        # On a phone each row is a paragraph: its result, its figures, its note.
        "@media(max-width:720px){figure{margin:8px 0}.rows tr:first-child{display:none}"
        ".rows tr{display:block;padding:8px 0;border-bottom:1px solid #ddd}"
        ".rows td,.rows td:nth-child(n+2):nth-child(-n+5){display:inline-block;border:0;padding:0 12px 0 0;white-space:normal}"
        ".rows td:first-child,.rows td:last-child{display:block}.rows td:first-child{font-weight:bold;width:auto}}</style>"
        f'<h1>{escape(title)}</h1>{figures}<table class="rows"><tr>{head}</tr>{body}</table></html>\n'
    )
