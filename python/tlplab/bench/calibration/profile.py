"""A host profile that is being found: its values, where each comes from, and the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tlplab import __version__

Quantiles = tuple[tuple[float, float], ...]
"""(rank from 0 to 1, ns)"""

# From here on a time is written in microseconds.
LONG_NS = 1e5
# What no data set of pcie-bench shows, and why it is as it is.
FIXED: dict[str, dict[str, tuple[str | int, str]]] = {
    "": {
        "latency": ("100ns", "not measurable apart from the memory's: only their sum was measured"),
        "rcb": ("64B", "Intel root complexes use 64 bytes"),
        "p2p": ("split 64B", "peer-to-peer through the processor travels in cache lines; not measured"),
        "line_interval": (
            "14ns",
            "the slope of latency by size, beyond the wire, on the four machines of pcie-bench; not measured here",
        ),
        "tags": (32, "few uncached reads can be under way; not measured"),
        "completion_timeout": ("50ms", "the largest value of the default range (PCIe 5.0, section 2.8); not measured"),
    },
    "memory": {
        "bandwidth": ("400Gb/s", "more than any single device reaches; not measured"),
        "size": ("64GiB", "enough for every window"),
    },
}


@dataclass(frozen=True)
class Value:
    """A parameter: a number of ns, of bytes or of things, and how it is known."""

    number: float
    unit: str
    """`ns`, `B` or nothing."""
    why: str
    """For the comment in the profile: where it comes from, and how well it fits."""

    def text(self) -> str:
        """As TOML has it."""
        if self.unit == "ns" and self.number >= LONG_NS:
            return f'"{self.number / 1000:.1f}us"'
        if self.unit == "ns":
            return f'"{self.number:.1f}ns"' if self.number else '"0ns"'
        if self.unit == "B":
            mebi, rest = divmod(int(self.number), 1024**2)
            return f'"{int(self.number)}B"' if rest else f'"{mebi}MiB"'
        return str(round(self.number))


@dataclass(frozen=True)
class Profile:
    """A host: values by key, as in `cache.hit`, and tables of quantiles."""

    title: str
    source: str
    values: Mapping[str, Value] = field(default_factory=dict)
    tables: Mapping[str, tuple[Quantiles, str]] = field(default_factory=dict)
    """Quantiles and where they come from, by key, as in `jitter.memory`. Where there is a value of the same key, they are about it."""
    completions: tuple[str, str] = ("split-head", "not known of this processor; as Haswell")
    """The cuts of read completions, and the source of that knowledge."""
    iommu: str = "off"
    """The machine's default setting: `off`, `superpages`, `4KiB`."""
    notes: tuple[str, ...] = ()

    def with_value(self, key: str, value: Value) -> Profile:
        """The same with one value."""
        return replace(self, values={**self.values, key: value})

    def number(self, key: str) -> float:
        """A value; 0 where there is none."""
        return self.values[key].number if key in self.values else 0.0

    def toml(self) -> str:
        """The file."""
        lines = [f"# Written by tlplab {__version__}, `tlplab calibrate`. The comment on each value states how it was obtained.", *(f"# {note}" for note in self.notes),
                 "", f"title = {quoted(self.title)}", f"source = {quoted(self.source)}"]  # fmt: skip
        for table in ("", "memory", "cache", "numa", "iommu", "jitter", "sleep", "stall"):
            rows = self.rows(table)
            if rows:
                lines += ["", f"[host.{table}]" if table else "[host]", *aligned(rows)]
        return "\n".join(lines) + "\n"

    def rows(self, table: str) -> list[tuple[str, str]]:
        """(assignment, comment) of one table."""
        rows = [
            (f"{key} = {value if isinstance(value, int) else quoted(value)}", why)
            for key, (value, why) in FIXED.get(table, {}).items()
        ]
        if not table:
            rows.append((f"completions = {quoted(self.completions[0])}", self.completions[1]))
        if table == "iommu" and any(key.startswith("iommu.") for key in self.values):
            rows.append((f"mode = {quoted(self.iommu)}", "as in the data set"))
        prefix = f"{table}." if table else ""
        mine = {
            key.removeprefix(prefix): value
            for key, value in self.values.items()
            if key.rpartition(".")[0] == table and key not in self.tables
        }
        rows = [row for row in rows if row[0].split(" = ")[0] not in mine]
        rows += [(f"{key} = {value.text()}", value.why) for key, value in mine.items()]
        return rows + [
            (f"{key.removeprefix(prefix)} = {quantiles_text(self.quantiles(key))}", self.why(key))
            for key in self.tables
            if key.rpartition(".")[0] == table
        ]

    def quantiles(self, key: str) -> Quantiles:
        """A table as it holds: about the value of its key, if there is one, and never below 0."""
        middle = self.number(key)
        return tuple((rank, max(ns + middle, 0.0)) for rank, ns in self.tables[key][0])

    def why(self, key: str) -> str:
        """The source of a table, and the derivation of its middle."""
        own = self.tables[key][1]
        return f"{own}; median {self.values[key].number:.1f} ns: {self.values[key].why}" if key in self.values else own


def quantiles_text(quantiles: Quantiles) -> str:
    """A table of jitter, as TOML has it."""
    return (
        "[" + ", ".join(f'"{100 * rank:.4f}'.rstrip("0").rstrip(".") + f'% {ns:.1f}ns"' for rank, ns in quantiles) + "]"
    )


def quoted(text: str) -> str:
    """A basic string of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def aligned(rows: list[tuple[str, str]]) -> list[str]:
    """Assignments with their comments below each other; long ones have theirs above."""
    wide = max((len(text) for text, _ in rows if len(text) <= 40), default=0)
    lines = []
    for text, why in rows:
        lines += [f"{text:{wide}} # {why}"] if len(text) <= 40 else [f"# {why}", text]
    return lines
