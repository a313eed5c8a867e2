"""Bar charts as SVG, and the page that holds them: one file, no scripts, nothing to load."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

COLOURS = ("#b2452f", "#2f6cb2", "#7a7f87")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 460, 260, 48, 46, 34


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
        top = max((value for _, values in self.series for value in values if value is not None), default=0) or 1
        high, wide = HEIGHT - TOP - BOTTOM, WIDTH - LEFT - 10
        group = wide / len(self.points)
        bar = group * 0.8 / len(self.series)
        parts = [text(8, 16, self.title, weight="bold"), text(8, TOP - 4, self.unit)]
        for number in range(5):
            y = TOP + high * (1 - number / 4)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(text(LEFT - 4, y + 4, f"{top * number / 4:.3g}", anchor="end"))
        for row, (_, values) in enumerate(self.series):
            for column, value in enumerate(values):
                if value is None:
                    continue
                x, size = LEFT + group * (column + 0.1) + bar * row, high * value / top
                parts.append(
                    f'<rect x="{x:.1f}" y="{TOP + high - size:.1f}" width="{bar * 0.92:.1f}" height="{size:.1f}" '
                    f'fill="{COLOURS[row % len(COLOURS)]}"><title>{value:.4g} {escape(self.unit)}</title></rect>'
                )
                parts.append(text(x + bar * 0.46, TOP + high - size - 3, f"{value:.3g}", anchor="middle", size=9))
        for column, point in enumerate(self.points):
            parts.append(text(LEFT + group * (column + 0.5), HEIGHT - BOTTOM + 14, point, anchor="middle"))
        parts.append(text(LEFT + wide / 2, HEIGHT - BOTTOM + 28, self.axis, anchor="middle"))
        for row, (name, _) in enumerate(self.series):
            x = LEFT + row * wide / len(self.series)
            parts.append(
                f'<rect x="{x:.1f}" y="{HEIGHT - 12}" width="9" height="9" fill="{COLOURS[row % len(COLOURS)]}"/>'
            )
            parts.append(text(x + 13, HEIGHT - 4, name))
        inside = "".join(parts)
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{inside}</svg>'


def text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 11, weight: str = "normal") -> str:
    """A piece of text."""
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" font-family="sans-serif" fill="#222"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def page(title: str, charts: list[Chart], heading: tuple[str, ...], lines: list[list[str]]) -> str:
    """The charts, and a table below them."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    figures = "".join(f"<figure>{chart.svg()}</figure>" for chart in charts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font:14px/1.5 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}"
        "figure{display:inline-block;margin:8px}table{border-collapse:collapse}"
        "td,th{border-bottom:1px solid #ddd;padding:3px 8px;text-align:left;vertical-align:top}</style>"
        f"<h1>{escape(title)}</h1>{figures}<table><tr>{head}</tr>{body}</table></html>\n"
    )
