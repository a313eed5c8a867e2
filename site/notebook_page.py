"""A notebook as a page of the site. Standard library only: mkdocs runs it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any


def as_page(text: str) -> str:
    """The file of a notebook as Markdown: its text, its code, and the outputs that are stored."""
    return "\n\n".join(part for cell in json.loads(text)["cells"] for part in parts(cell)) + "\n"


def parts(cell: Any) -> Iterator[str]:
    """A cell and its outputs; long texts are lists of lines in the file."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        kinds = {
            kind: "".join(data) for kind, data in output.get("data", {"text/plain": output.get("text", "")}).items()
        }
        if "image/png" in kinds:
            yield f"![{kinds['text/plain']}](data:image/png;base64,{kinds['image/png'].strip()})"
        elif "text/html" in kinds:
            # An empty line would end the HTML.
            yield re.sub(r"\n\s*\n", "\n", kinds["text/html"])
        else:
            yield f"```text\n{kinds['text/plain'].rstrip()}\n```"
