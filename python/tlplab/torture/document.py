"""All verdicts of a torture and their evidence, as `--json` writes them and the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlplab import outline
from tlplab.guest import kernel
from tlplab.torture import verdict
from tlplab.torture.boot import Machine, Told
from tlplab.torture.cases import Judged, command, findings
from tlplab.torture.classes import TlpClass
from tlplab.torture.evidence import Evidence
from tlplab.torture.faults import Fault

FORMAT = "tlplab/torture/2"


def document_of(
    machine: Machine, faults: Sequence[Fault], classes: Sequence[TlpClass], reference: Told, judged: Sequence[Judged]
) -> dict[str, Any]:
    """All verdicts. What a console has in common with the reference is in both as the same numbers of `lines`."""
    evidence = Evidence()
    without = evidence.of(reference.boot.console, ())
    tried = {one.case.tlp_class for one in judged}
    return {
        "format": FORMAT,
        "title": outline.read(machine.experiment, overrides=machine.overrides)["title"],
        "experiment": machine.experiment,
        "kernel": kernel.find(machine.linux).sha256,
        "verdicts": list(verdict.VERDICTS),
        "faults": [{"name": fault.name, "doc": fault.doc} for fault in faults],
        "findings": [
            {"verdict": one.minimal.verdict.word, "minimal": one.minimal.case.name, "cases": [of.case.name for of in one.cases]}
            for one in findings(judged)
        ],
        "classes": [one.name for one in classes if one.name in tried],
        "reference": without["console"],
        "cases": [case(machine, one) | evidence.of(one.console, one.ladder) for one in judged],
        **evidence.document(),
    }


def case(machine: Machine, one: Judged) -> dict[str, Any]:
    """A case without its evidence."""
    return {
        "name": one.case.name,
        "class": one.case.tlp_class,
        "fault": one.case.fault,
        "device": one.case.tlp.device,
        "time_fs": one.case.tlp.time,
        "verdict": one.verdict.word,
        "why": one.verdict.why,
        "struck": one.struck,
        "new": list(one.verdict.new),
        "command": command(machine, one.case),
    }
