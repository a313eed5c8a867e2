"""The result of a run: the result document, as a dictionary that knows its types and can show itself.

Its types are in `tlplab.document`, which is generated from the simulator's own. Code of tlplab that is given a document, however it came by it, takes a
`Document`; programs that run an experiment get a `Result`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypedDict, cast

from tlplab import _core
from tlplab.document import *  # noqa: F403
from tlplab.document import ROWS, Cause, Document, Flow, Keys, Verdict  # noqa: F401
from tlplab.rows import Rows


class Share(TypedDict):
    """Time that all transactions of a flow spent for one cause at one place."""

    flow: str
    cause: Cause
    place: str
    behind: str | None
    """The flow one queued behind."""
    total_ns: float
    share: float
    """Part of the sum of all latencies of the flow."""


class Result(Keys):
    """The result of a run, as `tl.run`, `tl.simulate` and the fixture of pytest give it.

    It is the result document: `result["flows"]` and `result.flows` are the same. Lists of dictionaries have `arrow()`.
    """

    def __init__(self, document: str | Mapping[str, Any]) -> None:
        """A document, or its JSON."""
        super().__init__(json.loads(document) if isinstance(document, str) else document)
        self._text = document if isinstance(document, str) else None
        causes = self.get("causes", ())
        for key, kind in ROWS.items():
            if key in self:
                self[key] = Rows(self[key], kind, causes)

    @property
    def result(self) -> Document:
        """The document itself, for functions that take one."""
        return cast(Document, self)

    @property
    def sentence(self) -> str:
        """The limit of the run, in a sentence."""
        return self.verdict["sentence"]

    @cached_property
    def attribution(self) -> Rows[Share]:
        """The parts of the time of all flows, the largest part of each flow first."""
        rows: list[Share] = [
            {
                "flow": flow["name"], "cause": self.causes[one["cause"]], "place": one["place"],
                "behind": one["behind"], "total_ns": one["total_ns"], "share": one["share"],
            }
            for flow in self.flows
            for one in flow["attribution"]
        ]  # fmt: skip
        return Rows(rows, Share, self.causes)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page that shows the run."""
        _core.write_report(os.fspath(path), self._json())

    def json(self, path: str | os.PathLike[str]) -> None:
        """Writes the document."""
        _core.write_text(os.fspath(path), self._json() + "\n")

    def _json(self) -> str:
        return self._text if self._text is not None else json.dumps(self, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"<run of {self.title!r}: {self.sentence}>"

    def _repr_html_(self) -> str:
        from tlplab.notebook import html

        return html(self.result)
