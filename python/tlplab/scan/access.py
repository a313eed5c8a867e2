"""The way of requests from one device to another under access control (PCIe 5.0 §6.12), and the commands that switch it off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlplab.scan.facts import ACCESS_CONTROLS, Function

if TYPE_CHECKING:
    from tlplab.scan.tree import Tree

STRAIGHT = "straight"
REDIRECTED = "redirected"
"""Up to the root complex, which sends them down again; at a root port, through the IOMMU."""
REFUSED = "refused"
UNKNOWN = "unknown"
"""Egress control is on, and the source lacks the vector or the number of the port."""


def on(port: Function, control: str) -> bool:
    """True if a control is known to be on."""
    return control in (port.access_control or [])


def asks_for_translations(function: Function) -> bool:
    """True if software has enabled its address translation services."""
    return function.ats_enabled is True


def passes_translated(port: Function) -> bool:
    """True if requests with translated addresses go straight, past redirection and egress control."""
    return on(port, "DirectTrans") and not on(port, "TransBlk")


def fate(port: Function, peer: Function | None) -> str:
    """The fate of untranslated requests that come in by a port from below, for devices below `peer`, another port of its switch or root complex."""
    if not on(port, "EgressCtrl"):
        return REDIRECTED if on(port, "ReqRedir") else STRAIGHT
    vector = port.egress_forbidden
    if vector == []:
        return STRAIGHT
    if vector is None or peer is None or peer.port_number is None:
        return UNKNOWN
    return otherwise(port) if peer.port_number in vector else STRAIGHT


def otherwise(port: Function) -> str:
    """The fate of requests that egress control does not allow."""
    return REDIRECTED if on(port, "ReqRedir") else REFUSED


def command(port: Function) -> str:
    """Clears request redirect and egress control of a port, and completion redirect. One alone would not do: without redirection egress
    control refuses the redirected requests, without egress control redirection takes all."""
    there = ("ReqRedir", "CmpltRedir", "EgressCtrl")
    mask = sum(1 << ACCESS_CONTROLS.index(control) for control in there if on(port, control))
    return f"setpci -s {port.address} ECAP_ACS+6.w=0000:{mask:04x}"


def no_way_back(tree: Tree, port: Function) -> list[Function]:
    """Ports above that do not send requests down again that `port`, of a switch, redirects: a switch needs upstream forwarding, and so does a root port
    with access control."""
    above = [one for one in tree.path(port) if one.port in ("downstream port", "root port")]
    needs = (one for one in above if one.port == "downstream port" or one.access_control is not None)
    return [
        one for one in needs if not on(one, "UpstreamFwd") and (one.extended_known or one.access_control is not None)
    ]
