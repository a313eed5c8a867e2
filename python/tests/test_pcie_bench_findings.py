"""Every finding of pcie-bench's measured hosts comes out on the shipped profiles, or has a reason why not."""

from __future__ import annotations

import pytest

from studies.pcie_bench import hosts
from tlplab.reproduce import Row

# What does not come out, and is explained in its note; all else is reproduced.
EXPLAINED = {
    "xeon-e5-2630: 8 B read, DMA engine less command interface",
    "xeon-e5-2620v3: 256 B reads, IOMMU without super-pages, 64 MiB against 256 KiB",
    "xeon-e5-2620v3: 512 B reads, IOMMU without super-pages, 64 MiB against 256 KiB",
    "xeon-e5-2620v3: 512 B writes, IOMMU off",
    "H100, gen5 x16: copies to the host",
    "H100, gen5 x16: copies from the host",
    "H100, gen5 x16: reads of 128 B",
}


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    """The rows by their subject."""
    found = hosts.rows({})
    assert len({row.result for row in found}) == len(found)
    return {row.result: row for row in found}


@pytest.mark.parametrize(
    ("about", "many"),
    [
        ("64 B read, warm, 8 KiB", 3),
        ("8 B read, DMA engine less command interface", 2),
        ("8 B read, warm less cold", 3),
        ("8 B write and read, cold", 2),
        ("64 B read, warm, remote less local", 1),
        ("reads, remote against local", 4),
        ("reads, IOMMU without super-pages", 3),
        ("writes, IOMMU without super-pages", 2),
        ("512 B writes, IOMMU", 2),
        ("pages that the IO-TLB keeps", 2),
        ("an IO-TLB miss", 2),
        ("page walks", 2),
        ("IOMMU with super-pages", 1),
        ("saw-tooth", 3),
        ("writes of 64 B", 4),
        ("reads under way, by Little's law", 4),
        ("reads under way, under IO-TLB misses", 2),
        ("rate of the wire", 1),
        ("H100", 4),
    ],
)
def test_a_finding_comes_out(rows: dict[str, Row], about: str, many: int) -> None:
    found = {result: row for result, row in rows.items() if about in result}
    assert len(found) == many
    for result, row in found.items():
        if result in EXPLAINED:
            assert row.verdict == "explained"
            assert row.note
        else:
            assert row.verdict == "reproduced", f"{result}: published {row.published}, ours {row.ours}"


def test_a_figure_outside_its_range_is_not_reproducible() -> None:
    assert [hosts.within("", 1, 2, ours, "", 0.5, "remark").verdict for ours in (0.5, 2.6)] == [
        "reproduced",
        "not reproducible",
    ]
    assert [hosts.near("", 1, 3, "", 1, note).verdict for note in ("", "why")] == ["not reproducible", "explained"]


def test_no_finding_is_left_out(rows: dict[str, Row]) -> None:
    assert set(rows) >= EXPLAINED
    assert len(rows) == 47
