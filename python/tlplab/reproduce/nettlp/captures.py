"""Figures 13 to 15, from captures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tlplab.nettlp.capture import ranges, summarise
from tlplab.reproduce import Beside, Row
from tlplab.reproduce.nettlp.rows import PAPER, absent

# Figure 14: the tags of each device, as the text tells them.
TAGS = {"x520": 16, "p4600": 16, "pm1725": 64}
# Figure 15a: what the simple NIC and the host send for one packet of 98 B.
TRANSMIT = (("MRd", 16), ("MRd", 98), ("MWr", 4))


def beside(folder: str | None) -> Beside:
    """The rows; one that says why, if there are no captures."""
    place = folder or os.path.join(os.environ.get("TLPLAB_DATA", ""), "captures")
    if not os.path.isdir(place):
        why = "needs the published captures: --captures DIR, or TLPLAB_DATA with a folder captures"
        return Beside([absent("captured, figures 13 to 15", None, "", why)], [], "")
    return Beside([*figure_13(Path(place)), *figure_14(Path(place)), *figure_15(Path(place))], [], "")


def row(result: str, published: float, ours: float, unit: str, note: str = "") -> Row:
    """Counted, so right or wrong."""
    return Row(PAPER, result, published, ours, unit, "reproduced" if ours == published else "not reproducible", note)


def read(place: Path, name: str) -> dict[str, Any]:
    """The summary of a capture."""
    return summarise(str(place / f"{name}.pcap"))


def figure_13(place: Path) -> list[Row]:
    """A read of 512 B by way of a switch, and of a root complex."""
    found = []
    for what, name, behind, size in (("switch", "mrd-512byte-plx", 1, 512), ("root complex", "mrd-512byte-rc", 8, 64)):
        if not (place / f"{name}.pcap").is_file():
            found.append(absent(f"captured, figure 13, {what}", behind, "", f"{name}.pcap is not in {place}"))
            continue
        (passage,) = (one for crossing in read(place, name)["crossings"] for one in crossing["passages"])
        sizes = (
            f"each of {passage['behind']['bytes']} B; {passage['completions_behind']['count']} completions came back, "
        )
        note = f"{sizes}{passage['completions_before']['count']} of {passage['completions_before']['bytes']} B left"
        found.append(row(f"captured, figure 13, {what}: reads behind it", behind, passage["behind"]["count"], "", note))
        found.append(row(f"captured, figure 13, {what}: bytes of each", size, passage["behind"]["bytes"], "B"))
        found.append(
            row(f"captured, figure 13, {what}: completions rebuilt", 2, passage["completions_before"]["count"], "")
        )
    return found


def figure_14(place: Path) -> list[Row]:
    """The tags that devices use."""
    found = []
    for device, tags in TAGS.items():
        captures = sorted(place.glob(f"{device}-*.pcap"))
        used = {
            tag
            for capture in captures
            for direction in summarise(str(capture))["directions"]
            for tag in direction["tags"]["used"]
        }
        name = f"captured, figure 14, {device}: tags up to"
        if not used:
            found.append(absent(name, tags - 1, "", f"no capture of it in {place}"))
            continue
        listed = ranges(sorted(used))
        note = f"{len(used)} different ones" if len(listed) > 20 else listed
        found.append(row(name, tags - 1, max(used), "", note))
    found.append(absent("captured, figure 14, xl710: tags up to", 249, "", "no capture of it was published"))
    return found


def figure_15(place: Path) -> list[Row]:
    """What the simple NIC sends for a ping."""
    if not (place / "simple-nic-ping.pcap").is_file():
        return [
            absent(
                "captured, figure 15a: requests of the NIC", len(TRANSMIT), "", f"no simple-nic-ping.pcap in {place}"
            )
        ]
    requests = {
        (request["op"], request["bytes"])
        for direction in read(place, "simple-nic-ping")["directions"]
        for request in direction["requests"]
    }
    found = sum(("read" if kind == "MRd" else "write", size) in requests for kind, size in TRANSMIT)
    note = "descriptor and packet read, interrupt written"
    return [row("captured, figure 15a: requests of the NIC", len(TRANSMIT), found, "", note)]
