"""The state of a link, compared with the abilities of both of its ends."""

from __future__ import annotations

from dataclasses import dataclass

from tlplab.scan.facts import Function
from tlplab.scan.tree import Link

FULL = "full"
LIMITED = "limited"
"""Software or firmware allows no more."""
DEGRADED = "degraded"
IDLE = "idle"
"""Slower to save power, which is not a fault."""
UNKNOWN = "unknown"
EMPTY = "empty"

ASLEEP = ("D1", "D2", "D3", "D3hot", "D3cold")
# Base classes of devices that lower the speed of their link when they have nothing to do: display controllers, accelerators.
LOWERS_SPEED = (0x03, 0x12)
LOWERS_SPEED_NAMES = ("VGA compatible controller", "3D controller", "Display controller", "Processing accelerators")


@dataclass(frozen=True)
class State:
    """The state of a link, and the reason for this verdict."""

    name: str
    why: str


def called(generation: int | None, width: int | None) -> str:
    """`gen3 x8`"""
    speed = "gen?" if generation is None else f"gen{generation}"
    return f"{speed} x{'?' if width is None else width}"


def state(link: Link) -> State:
    """The state of a link. Facts that the source lacks make it unknown, never degraded."""
    if link.width == 0 or (link.width is None and link.upper is not None and link.upper.width == 0):
        return State(EMPTY, "nothing is connected, or the link is down")
    if link.speed is None or link.width is None:
        return State(UNKNOWN, "the source lacks the current speed or width of the link")
    if not link.ends_known:
        end = "the port above" if link.upper is None or not link.upper.speed_possible else "the device"
        lower = called(link.speed_possible, link.width_possible)
        here = link.speed == link.speed_possible and link.width == link.width_possible
        if here:
            return State(UNKNOWN, f"it runs at {lower}, the maximum of one end; the capability of {end} is unknown")
        return State(UNKNOWN, f"one end supports {lower}; the capability of {end} is unknown")
    narrow = (link.width_possible or 0) > link.width
    slow = (link.speed_possible or 0) > link.speed
    if not narrow and not slow:
        return State(FULL, "")
    return below(link, narrow=narrow)


def below(link: Link, *, narrow: bool) -> State:
    """The reason why a link runs below the ability of both ends."""
    ends = [end for end in (link.upper, link.lower) if end is not None]
    asleep = next((end for end in ends if end.power_state in ASLEEP or end.runtime_suspended), None)
    if asleep is not None:
        how = asleep.power_state if asleep.power_state in ASLEEP else "suspended"
        return State(IDLE, f"{asleep.address} sleeps ({how})")
    if any(end.autonomous_changed for end in ends):
        return State(IDLE, "the hardware changed it to save power (ABWMgmt+)")
    if narrow:
        return State(DEGRADED, "the link trained with fewer lanes than both ends have")
    target = None if link.upper is None else link.upper.target_speed
    if target is not None and target <= (link.speed or 0):
        return State(LIMITED, f"the target speed of {ends[0].address} is gen{target}")
    if lowers_speed(link.lower):
        return State(IDLE, "devices of this class lower the speed while idle")
    if link.speed == 1:
        return State(UNKNOWN, "2.5 GT/s is also the speed of a link that saves power")
    if target is None or link.lower.power_state is None:
        return State(UNKNOWN, "the source lacks the target speed or the power state")
    return State(DEGRADED, "the link trained at a lower speed than both ends support")


def lowers_speed(function: Function) -> bool:
    """True if devices of this kind are known for lowering the speed of their links."""
    code = function.class_code
    return code >> 8 in LOWERS_SPEED if code is not None else function.class_name in LOWERS_SPEED_NAMES
