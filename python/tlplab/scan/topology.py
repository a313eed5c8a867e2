"""The experiment that a machine becomes: root ports, switches and devices with the links they run at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tlplab import _core
from tlplab.scan import access, translation
from tlplab.scan.facts import ACCESS_CONTROLS, Address, Function
from tlplab.scan.state import EMPTY, called, state

if TYPE_CHECKING:
    from tlplab.scan.scanned import Scan
    from tlplab.scan.tree import Link

# What a function at the lower end of a link becomes; of some a source does not tell what they are.
KINDS = {
    "upstream port": "switch",
    "PCIe-to-PCI bridge": "bus",
    "end point": "device",
    "legacy end point": "device",
    None: "device",
}
# Of a bus in PCI-X mode, as the bridge's Secondary Status has it.
FREQUENCY = re.compile(r"Freq=(66|100|133)MHz")
DEVICE_SELECT = re.compile(r"DEVSEL=(fast|medium|slow)")
# The controls of access between peers, as lspci has them, and as an experiment does.
CONTROLS = dict(
    zip(
        ACCESS_CONTROLS,
        (
            "source-validation",
            "translation-blocking",
            "request-redirect",
            "completion-redirect",
            "upstream-forwarding",
            "egress-control",
            "direct-translated",
        ),
        strict=True,
    )
)
WIDTHS = _core.widths()
FLITS_ONLY = {generation for generation, _, flits in _core.generations() if flits}
"""Generations whose links are all in flit mode."""
# What the devices do until somebody says otherwise.
LOAD = 'op = "write", size = "4KiB", outstanding = 8'


class Writer:
    """Writes the tables, and functions without one as comments."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.tree = scan.tree
        self.names: dict[Address, str] = {}
        """Of a component, by the address of its function: the first function at the lower end of a link."""
        self.tables: list[str] = []
        self.left_out: list[str] = []
        self.root_ports: list[str | None] = []
        self.devices: list[str] = []
        self.buses: set[Address] = set()
        """The bridges to parallel buses that are in the experiment."""
        self.on_buses: list[str] = []
        self.translation = translation.found(scan)
        self.ports: dict[str, Function] = {}
        """The port above a component, by its name."""
        self.controlled: list[tuple[int, str]] = []
        """The place of the egress control vector of the port above a component in the tables."""
        self.with_ats: list[str] = []
        self.notes: list[str] = []
        """The facts that the source lacks, and the keys for them."""

    def write(self) -> str:
        """The file."""
        for _, function in self.tree.walk():
            self.place(function)
        self.vectors()
        self.unknown()
        ids = [one or "71ab:0100" for one in self.root_ports]
        head = [
            "# Topology that `tlplab scan` found in " + comment(self.scan.source) + ".",
            "# Links have the speed and width of the scan, with their maximum as a comment. No register has latencies, buffers and loads: these",
            "# are tlplab's defaults; replace them.",
            'title = "Scanned machine"',
            'stop = "100us"',
            'warmup = "10us"',
            'fidelity = "length-only"',
            "",
        ]
        if any(self.root_ports):
            head += ["[host]", "root_ports = [" + ", ".join(f'"{one}"' for one in ids) + "]", ""]
        if self.tables:
            head += self.translation.host()
        loaded = self.devices or self.on_buses
        load = ["[load]", *(f"{name} = {{ {LOAD} }}" for name in loaded), ""] if loaded else []
        left = ["# Not in this experiment:", *(f"# {line}" for line in self.left_out), ""] if self.left_out else []
        notes = (
            ["# The source does not tell everything:", *(f"# {line}" for line in self.notes), ""] if self.notes else []
        )
        return "\n".join([*head, *self.tables, *load, *left, *notes]).rstrip("\n") + "\n"

    def unknown(self) -> None:
        """Notes the facts that no register has or the source lacks."""
        if not self.tables:
            return
        self.notes += self.translation.notes(self.with_ats)
        hidden = sum(one.port is not None and not one.extended_known for one in self.scan.functions)
        if hidden:
            what = f"the extended capabilities of {hidden} function{'s' * (hidden != 1)}"
            self.notes.append(
                f"the source lacks {what}; link.NAME.upper.acs and device.NAME.ats add access control and ATS"
            )

    def vectors(self) -> None:
        """The egress control vectors, once all components have names."""
        lacking: list[str] = []
        for at, name in reversed(self.controlled):
            port = self.ports[name]
            numbers = port.egress_forbidden
            if numbers is not None:
                self.tables[at:at] = self.vector(port, numbers)
            elif access.on(port, "EgressCtrl"):
                self.tables.insert(
                    at, "# acs_forbids: the source lacks the egress control vector; nothing is forbidden"
                )
                lacking.append(name)
        if lacking:
            more = f" and {len(lacking) - 1} more" * (len(lacking) > 1)
            self.notes.append(
                f"the source lacks the egress control vector of {self.ports[lacking[-1]].address}{more} (lspci -xxxx shows it); the experiment "
                f"forbids nothing, link.{lacking[-1]}.upper.acs_forbids adds it"
            )

    def vector(self, port: Function, numbers: list[int]) -> list[str]:
        """The key of an egress control vector, if a bit is set."""
        beside = {other.port_number: peer for peer, other in self.ports.items() if self.is_beside(port, other)}
        names = [f'"{beside[number]}"' for number in numbers if number in beside]
        absent = [str(number) for number in numbers if number not in beside and number != port.port_number]
        comment = f"  # and ports without a component: {', '.join(absent)}" if absent else ""
        key = f"acs_forbids = [{', '.join(names)}]{comment}"
        if not access.on(port, "EgressCtrl"):
            return [f"# {key}: the vector, without egress control"] if names or absent else []
        return [key] if names or absent else []

    def is_beside(self, port: Function, other: Function) -> bool:
        """True if two ports are of one switch, or both of the root complex."""
        above = self.tree.parent(port)
        if other is port or self.tree.parent(other) is not above:
            return False
        return above is not None or (other.port == port.port and other.address.domain == port.address.domain)

    def place(self, function: Function) -> None:
        """A component for a function, or the reason why there is none. A bridge comes before the functions below it."""
        link = self.tree.links.get(function.address)
        if link is None:
            self.unlinked(function)
        elif function.physical_function is not None:
            self.leave(function, f"a virtual function of {function.physical_function}")
        elif link.lower is not function:
            self.further(function, link)
        else:
            self.component(function, link)

    def unlinked(self, function: Function) -> None:
        """Ports from which links lead down need no table; all else without a link cannot be one."""
        parent = self.tree.parent(function)
        if function.port in ("root port", "downstream port") and function.is_bridge:
            if not self.tree.below.get(function.address):
                self.leave(function, f"a {function.port} with nothing below it")
        elif parent is not None and parent.address in self.buses:
            self.on_bus(function, parent)
        elif parent is not None and parent.port not in (None, "upstream port", "downstream port", "root port"):
            self.leave(function, f"on the parallel bus below {parent.address}")
        elif parent is not None:
            self.leave(function, "without a link in the source")
        elif function.is_bridge:
            self.leave(function, "a bridge of the root complex")
        else:
            self.leave(function, "in the root complex, without a link")

    def component(self, function: Function, link: Link) -> None:
        """A switch or a device."""
        under = self.under(function)
        speed, width = link.speed, link.width
        if state(link).name == EMPTY:
            self.leave(function, "its link is down")
            return
        if not speed or width not in WIDTHS:
            self.leave(function, "the source lacks the current speed or width of its link")
            return
        if under is None:
            self.leave(function, "the function above it is not in this experiment")
            return
        if function.port not in KINDS:
            self.leave(function, f"tlplab has no model of a {function.port}")
            return
        kind = KINDS[function.port]
        name = self.named(function)
        lines = [f"[{kind}.{name}]".ljust(26) + f" # {function.address} {comment(who(function))}".rstrip()]
        lines.append(f'under = "{under}"')
        flit = " flit" if speed in FLITS_ONLY else ""
        possible = called(link.speed_possible, link.width_possible)
        beside = (
            ""
            if possible == called(speed, width)
            else f"  # of {possible}" + ("" if link.ends_known else ", by one end")
        )
        lines.append(f'link = "gen{speed} x{width}{flit}"{beside}')
        if function.mps is not None:
            lines.append(f'mps = "{function.mps}B"')
        if kind == "bus":
            self.buses.add(function.address)
            lines += bus(function)
        if kind == "device":
            lines += self.requester(function, name)
            self.devices.append(name)
        self.tables += [*lines, ""]
        port = self.tree.parent(function)
        if port is not None:
            self.ports[name] = port
        if port is not None and port.access_control is not None:
            self.tables += access_control(name, port)
            self.controlled.append((len(self.tables), name))
            self.tables.append("")

    def requester(self, function: Function, name: str) -> list[str]:
        """The requests of a device."""
        if function.ats_enabled or (function.ats_enabled is False and not self.translation.on):
            self.with_ats.append(name)
        return [*requester(function), *self.translation.device(function)]

    def on_bus(self, function: Function, bridge: Function) -> None:
        """A device on a parallel bus. It gets a load only where no other device does: all would wait for it."""
        if function.is_bridge:
            self.leave(function, f"a bridge on the parallel bus below {bridge.address}")
            return
        at = function.address
        first = self.names.get(Address(at.domain, at.bus, at.device, 0))
        if at.function and first is None:
            self.leave(function, "a further function of a device that is not in this experiment")
            return
        under = f"{first}.fn{at.function}" if at.function else self.names[bridge.address]
        name = self.named(function)
        self.on_buses.append(name)
        head = f"[device.{name}]".ljust(26) + f" # {at} {comment(who(function))}".rstrip()
        self.tables += [head, f'under = "{under}"', *device_select(function), ""]

    def further(self, function: Function, link: Link) -> None:
        """A further function of a device."""
        first = self.names.get(link.lower.address)
        number = function.address.function
        if (
            first is None
            or function.is_bridge
            or link.lower.is_bridge
            or function.address.device != link.lower.address.device
        ):
            self.leave(function, f"a further function of {link.lower.address}")
            return
        name = self.named(function)
        lines = [f"[device.{name}]".ljust(26) + f" # {function.address} {comment(who(function))}".rstrip()]
        lines += [f'under = "{first}.fn{number}"', *self.requester(function, name), ""]
        self.tables += lines

    def under(self, function: Function) -> str | None:
        """The name of the component above a link: a root port, or the switch to which the downstream port belongs."""
        port = self.tree.parent(function)
        if port is None:
            # Nothing above it is shown, as in a virtual machine: a root port of its own.
            self.root_ports.append(None)
            return f"host.rp{len(self.root_ports) - 1}"
        above = self.tree.parent(port)
        if port.port == "downstream port":
            return None if above is None else self.names.get(above.address)
        if above is not None and port.port != "root port":
            return None
        if port.address not in self.names:
            self.names[port.address] = f"host.rp{len(self.root_ports)}"
            # A function that does not answer reads as all ones.
            self.root_ports.append(None if port.vendor == 0xFFFF else port.ids())
        return self.names[port.address]

    def named(self, function: Function) -> str:
        """A name with the function's address: `d0000_05_00_0`, without the domain if it is 0."""
        at = function.address
        kind = {"upstream port": "sw", "PCIe-to-PCI bridge": "bus"}.get(function.port or "", "d")
        domain = f"{at.domain:04x}_" if at.domain else ""
        self.names[at] = f"{kind}{domain}{at.bus:02x}_{at.device:02x}_{at.function:x}"
        return self.names[at]

    def leave(self, function: Function, why: str) -> None:
        """Gives the reason why a function is not here."""
        self.left_out.append(f"{function.address} {comment(who(function))}: {why}")


def access_control(name: str, port: Function) -> list[str]:
    """The access control of the port above a component."""
    on = ", ".join(f'"{CONTROLS[control]}"' for control in port.access_control or [])
    return [f"[link.{name}.upper]".ljust(26) + f" # {port.address}", f"acs = [{on}]"]


def bus(function: Function) -> list[str]:
    """The bus below a bridge, as far as it is known how it runs."""
    told = next(
        (one.text for cap in function.capabilities for one in cap.registers if one.name == "Secondary Status"), ""
    )
    clock = FREQUENCY.search(told)
    lines = ['mode = "pci 33"  # unknown; the slowest'] if clock is None else [f'mode = "pci-x {clock[1]}"']
    return [*lines, 'width = "64b"'] if "64bit+" in told else lines


def device_select(function: Function) -> list[str]:
    """The speed at which a device on a bus claims its transactions, from its status register."""
    told = next((one.text for one in function.fields if one.name == "Status"), "")
    found = DEVICE_SELECT.search(told)
    return [f'devsel = "{found[1]}"'] if found else []


def requester(function: Function) -> list[str]:
    """The lines that describe a device as requester."""
    lines: list[str] = []
    if function.mrrs is not None:
        lines.append(f'mrrs = "{function.mrrs}B"')
    if function.extended_tags is not None:
        lines.append(f"tags = {768 if function.ten_bit_tags else 256 if function.extended_tags else 32}")
    if function.relaxed_ordering:
        lines.append("relaxed_ordering = true")
    return lines


def who(function: Function) -> str:
    """Its name and IDs."""
    return " ".join(
        part
        for part in (function.name or function.class_name, f"[{function.ids()}]" if function.ids() else None)
        if part
    )


def comment(text: str) -> str:
    """The text as a comment: TOML allows no control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def experiment(scan: Scan) -> tuple[str, list[str]]:
    """The experiment, TOML, and its gaps and assumptions, in sentences that it has as comments, too."""
    writer = Writer(scan)
    return writer.write(), writer.notes
