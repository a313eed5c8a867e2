"""Facts of a source about address translation, as keys of an experiment: the IOMMU (`host.iommu`) and the ATS of devices (`ats`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlplab.scan import sysfs
from tlplab.scan.facts import Function

if TYPE_CHECKING:
    from tlplab.scan.scanned import Scan

# Kinds of domains of IOMMU groups in which addresses are translated (Linux: /sys/kernel/iommu_groups/*/type).
TRANSLATING = ("DMA", "DMA-FQ", "unmanaged")
IDENTITY = "identity"
# Keys that have no default and are in no register. Pages of 2 MiB cost the least.
MODE = "superpages"
FIGURES = ("entries = 64", 'walk = "230ns"')
CACHE = "{ entries = 64, outstanding = 8 }"


@dataclass
class Translation:
    """The IOMMU of a machine and the ATS of its devices."""

    present: bool
    """An IOMMU shows."""
    translates: bool | None
    """It translates addresses; None: the source does not tell."""
    why: str
    """The evidence."""
    on: list[Function] = field(default_factory=list)
    """The functions whose ATS is on."""
    off: list[Function] = field(default_factory=list)
    """Components whose ATS is off."""
    here: bool = False
    """The source is the running kernel, which shows an IOMMU that it uses."""

    def host(self) -> list[str]:
        """The table of the IOMMU."""
        if not self.present:
            return []
        mode = f'mode = "{MODE}"' if self.translates else 'mode = "off"'
        comment = {
            True: 'or "4KiB", the pages; they, entries and walk are in no register',
            False: 'as the kernel has it; "superpages" or "4KiB": it translates',
            None: 'the source does not show if it translates; "superpages" or "4KiB": it does',
        }[self.translates]
        lines = ["[host.iommu]".ljust(26) + f" # {self.why}", f"{mode.ljust(26)} # {comment}", *FIGURES]
        if self.off and not self.on:
            lines.append("ats = false".ljust(26) + " # it is off at all devices that have it")
        return [*lines, ""]

    def device(self, function: Function) -> list[str]:
        """The key of a device. Where ATS is on at others, it would be on here, too."""
        if function.ats_enabled is None:
            return []
        key = f"ats = {CACHE}"
        if function.ats_enabled:
            return [f"{key}  # it is on; its sizes are in no register"]
        return [f"# {key}  # it is off here, and would be on"] if self.on else [f"{key}  # it is off"]

    def notes(self, ats: list[str]) -> list[str]:
        """The gaps and assumptions of the experiment, and the keys for them; `ats` names the components with the key."""
        told = []
        if not self.present and not self.here:
            told.append(
                "the source does not show whether there is an IOMMU; the experiment has none, [host.iommu] adds it"
            )
        elif self.present and self.translates is None:
            told.append(
                f'the source does not show if the IOMMU translates ({self.why}); host.iommu.mode is "off", '
                '"superpages" or "4KiB" switches it on, with entries and walk that are assumed'
            )
        elif self.translates:
            told.append(f"mode, entries and walk of host.iommu are assumed ({self.why}): no register has them")
        if ats:
            places = "device.*.ats" if len(ats) > 1 else f"device.{ats[0]}.ats"
            told.append(f"entries and outstanding of {places} are assumed: no register has them")
        if self.on and self.off:
            others = f" and {len(self.off) - 1} more" * (len(self.off) > 1)
            told.append(
                f"ATS is off at {self.off[0].address}{others}, and left out: with the key ats it would be on, as at the others"
            )
        return told


def found(scan: Scan) -> Translation:
    """The facts of a source."""
    ends = [one for one in scan.functions if not one.is_bridge]
    on = [one for one in ends if one.ats_enabled and one.physical_function is None]
    off = [one for one in ends if one.ats_enabled is False and one.physical_function is None]
    kinds = {one.iommu_domain for one in scan.functions if one.iommu_domain is not None}
    translating = sorted(kinds & set(TRANSLATING))
    iommu = next((one for one in scan.functions if one.class_code == 0x0806 or one.class_name == "IOMMU"), None)
    grouped = any(one.iommu_group is not None for one in scan.functions)
    result = Translation(True, True, "", on, off, here=scan.source.startswith(str(sysfs.HERE)))
    if translating:
        result.why = f"the kernel has IOMMU groups of type {' and '.join(translating)}"
    elif on:
        result.why = f"ATS is on at {on[0].address}"
    elif IDENTITY in kinds:
        result.translates, result.why = False, "IOMMU groups of type identity pass addresses through"
    elif grouped or iommu is not None:
        result.translates = None
        result.why = "functions are in IOMMU groups" if grouped or iommu is None else f"{iommu.address} is one"
    else:
        result.present, result.translates = False, None
    return result
