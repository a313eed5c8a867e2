"""A run in a notebook: the sentence, the flows, and where their time went."""

from __future__ import annotations

import html as escaping
from collections.abc import Mapping

from tlplab import quantities
from tlplab.document import CAUSES, Document, Flow

# Flows shown, the fastest first, and the least share of a cause that is named.
FLOWS = 12
NAMED = 0.02
WIDTH, HEIGHT = 320, 14

STYLE = (
    "<style>.tlplab td,.tlplab th{text-align:left;padding:2px 10px 2px 0;vertical-align:middle}.tlplab td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".tlplab .legend span{margin-right:12px;white-space:nowrap}.tlplab i{display:inline-block;width:10px;height:10px;margin-right:4px}"
    + "".join(f".tlplab .c{at}{{fill:{one.light};background:{one.light}}}" for at, one in enumerate(CAUSES))
    + "@media(prefers-color-scheme:dark){"
    + "".join(f".tlplab .c{at}{{fill:{one.dark};background:{one.dark}}}" for at, one in enumerate(CAUSES))
    + "}</style>"
)


def html(result: Document) -> str:
    """The run as HTML that needs nothing else."""
    flows = sorted(result["flows"], key=lambda flow: -flow["payload_bps"])
    shown = flows[:FLOWS]
    rest = f"<p>and {len(flows) - FLOWS} more flows</p>" if len(flows) > FLOWS else ""
    return (
        f'<div class="tlplab">{STYLE}<p><b>{text(result["title"])}</b><br>{text(result["verdict"]["sentence"])}</p>'
        + (f'<div style="overflow-x:auto">{table(shown)}</div>{legend(shown)}' if shown else "")
        + rest
        + "</div>"
    )


def table(flows: list[Flow]) -> str:
    head = "".join(
        f"<th>{name}</th>" for name in ("flow", "", "payload", "transactions", "median", "99 %", "where the time goes")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(row, flows))}</tbody></table>"


def row(flow: Flow) -> str:
    latency = flow["latency_ns"]
    times = ["–", "–"] if latency is None else [quantities.time(latency["p50"]), quantities.time(latency["p99"])]
    numbers = [quantities.rate(flow["payload_bps"]), quantities.count(flow["transactions"]), *times]
    cells = "".join(f'<td class="n">{text(number)}</td>' for number in numbers)
    return f"<tr><th>{text(flow['name'])}</th><td>{text(flow['op'])} → {text(flow['target'])}</td>{cells}<td>{bar(flow)}</td></tr>"


def shares(flow: Flow) -> Mapping[int, float]:
    """The part of each cause, wherever it was."""
    found: dict[int, float] = {}
    for one in flow["attribution"]:
        found[one["cause"]] = found.get(one["cause"], 0.0) + one["share"]
    return dict(sorted(found.items()))


def bar(flow: Flow) -> str:
    """The shares of causes as a picture."""
    parts, at = [], 0.0
    for cause, share in shares(flow).items():
        width = share * WIDTH
        told = text(f"{CAUSES[cause].name}: {100 * share:.1f} %. {CAUSES[cause].about}")
        parts.append(
            f'<rect class="c{cause}" x="{at:.2f}" width="{width:.2f}" height="{HEIGHT}"><title>{told}</title></rect>'
        )
        at += width
    return f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="shares of latency">{"".join(parts)}</svg>'


def legend(flows: list[Flow]) -> str:
    """The causes that take more than a sliver of any flow."""
    named = {cause for flow in flows for cause, share in shares(flow).items() if share >= NAMED}
    entries = "".join(f'<span><i class="c{cause}"></i>{CAUSES[cause].name}</span>' for cause in sorted(named))
    return f'<p class="legend">{entries}</p>'


def text(said: str) -> str:
    return escaping.escape(said)
