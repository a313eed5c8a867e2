"""The matrix of classes and faults as a page that needs nothing else."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

# Nothing in a script may look like its end.
CLOSING = "</"


def render(document: dict[str, Any]) -> str:
    """The page of a torture document."""
    template = files("tlplab.torture").joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace(CLOSING, "<\\/")
    return template.replace("@TITLE@", escape(document["title"])).replace("@DATA@", data)
