"""All verdicts of a torture and their evidence, as `--json` writes them and the page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tlplab import outline
from tlplab.torture import verdict
from tlplab.torture.boot import Machine, Told
from tlplab.torture.cases import Judged, command, findings
from tlplab.torture.classes import Tlp
from tlplab.torture.evidence import Evidence
from tlplab.torture.memory import Allocation

FORMAT = "tlplab/torture/2"


def document_of(
    machine: Machine, faults: Mapping[str, str], reference: Told, judged: Sequence[Judged], *, interrupted: bool = False
) -> dict[str, Any]:
    """All verdicts, or those of the cases that were over when it was `interrupted`; `faults` has the meaning of each. The lines that a console shares with the reference are in both as the same numbers of `lines`."""
    evidence = Evidence()
    without = evidence.of(reference.boot.console, ())
    return {
        "format": FORMAT,
        "title": outline.read(machine.experiment, overrides=machine.overrides)["title"],
        "experiment": machine.experiment,
        "kernel": machine.kernel.sha256,
        "interrupted": interrupted,
        "verdicts": list(verdict.VERDICTS),
        "faults": [{"name": name, "doc": doc} for name, doc in faults.items()],
        "findings": [
            {
                "verdict": one.minimal.verdict.word,
                "minimal": one.minimal.case.name,
                "cases": [of.case.name for of in one.cases],
            }
            for one in findings(judged)
        ],
        "classes": list(dict.fromkeys(one.case.row for one in judged)),
        "reference": without["console"],
        "cases": [case(machine, one) | evidence.of(one.console, one.ladder) for one in judged],
        **evidence.document(),
    }


def target(of: Tlp | Allocation) -> dict[str, Any]:
    """Of a TLP its link and when it is sent; of an allocation its driver."""
    return {"device": of.device, "time_fs": of.time} if isinstance(of, Tlp) else {"driver": of.driver}


def case(machine: Machine, one: Judged) -> dict[str, Any]:
    """A case without its evidence."""
    return {
        "name": one.case.name,
        "class": one.case.row,
        "fault": one.case.fault,
        **target(one.case.target),
        "verdict": one.verdict.word,
        "why": one.verdict.why,
        "struck": one.struck,
        "new": list(one.verdict.new),
        "command": command(machine, one.case),
    }
