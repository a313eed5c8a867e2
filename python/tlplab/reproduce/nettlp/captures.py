"""Figures 13 to 15, from captures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tlplab.nettlp.capture import ranges, summarise
from tlplab.reproduce import Beside, Row
from tlplab.reproduce.nettlp.rows import PAPER, absent

# Figure 14: the least and the largest tag of each device, as the text tells them.
TAGS = {"x520": (0, 15), "p4600": (0, 15), "pm1725": (0, 63), "xl710": (24, 249)}
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


def passage(place: Path, name: str) -> dict[str, Any]:
    """The one request that another device passed on. Raises ValueError if the capture shows none, or several."""
    passages = [one for crossing in read(place, name)["crossings"] for one in crossing["passages"]]
    if len(passages) != 1:
        raise ValueError(f"{name}.pcap shows {len(passages) or 'no'} requests passed on, where one is looked for")
    only: dict[str, Any] = passages[0]
    return only


def figure_13(place: Path) -> list[Row]:
    """A read of 512 B by way of a switch, and of a root complex."""
    found = []
    for what, name, behind, size in (("switch", "mrd-512byte-plx", 1, 512), ("root complex", "mrd-512byte-rc", 8, 64)):
        if not (place / f"{name}.pcap").is_file():
            found.append(absent(f"captured, figure 13, {what}", behind, "", f"{name}.pcap is not in {place}"))
            continue
        try:
            passed = passage(place, name)
        except ValueError as error:
            found.append(absent(f"captured, figure 13, {what}", behind, "", str(error)))
            continue
        sizes = (
            f"each of {passed['behind']['bytes']} B; {passed['completions_behind']['count']} completions came back, "
        )
        note = f"{sizes}{passed['completions_before']['count']} of {passed['completions_before']['bytes']} B left"
        found.append(row(f"captured, figure 13, {what}: reads behind it", behind, passed["behind"]["count"], "", note))
        found.append(row(f"captured, figure 13, {what}: bytes of each", size, passed["behind"]["bytes"], "B"))
        found.append(
            row(f"captured, figure 13, {what}: completions rebuilt", 2, passed["completions_before"]["count"], "")
        )
    return found


def figure_14(place: Path) -> list[Row]:
    """The tags that devices use."""
    found = []
    for device, (least, most) in TAGS.items():
        name = f"captured, figure 14, {device}: tags up to"
        try:
            used = tags_used(sorted(place.glob(f"{device}-*.pcap")))
        except ValueError as error:
            found.append(absent(name, most, "", str(error)))
            continue
        if not used:
            found.append(absent(name, most, "", f"no capture of it in {place}"))
            continue
        listed = ranges(used)
        note = f"{len(used)} different ones" if len(listed) > 20 else listed
        found.append(row(f"captured, figure 14, {device}: tags from", least, used[0], ""))
        found.append(row(name, most, used[-1], "", note))
    return found


def tags_used(captures: list[Path]) -> list[int]:
    """Of all of a device's captures. Raises ValueError."""
    return sorted(
        {
            tag
            for capture in captures
            for direction in summarise(str(capture))["directions"]
            for tag in direction["tags"]["used"]
        }
    )


def figure_15(place: Path) -> list[Row]:
    """What the simple NIC sends for a ping."""
    name = "captured, figure 15a: requests of the NIC"
    if not (place / "simple-nic-ping.pcap").is_file():
        return [absent(name, len(TRANSMIT), "", f"no simple-nic-ping.pcap in {place}")]
    try:
        directions = read(place, "simple-nic-ping")["directions"]
    except ValueError as error:
        return [absent(name, len(TRANSMIT), "", str(error))]
    requests = {(request["op"], request["bytes"]) for direction in directions for request in direction["requests"]}
    found = sum(("read" if kind == "MRd" else "write", size) in requests for kind, size in TRANSMIT)
    note = "descriptor and packet read, interrupt written"
    return [row(name, len(TRANSMIT), found, "", note)]
