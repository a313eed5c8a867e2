"""The examples in Python, on the smallest fabric there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from carrier import Carrier

from tlplab.loader import find

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/python"


@pytest.mark.parametrize(("file", "name"), [("copier", "Copier"), ("memory", "Memory"), ("ring", "Ring")])
def test_examples_need_no_simulator(file: str, name: str) -> None:
    path = str(EXAMPLES / f"{file}.py")
    carrier = Carrier(find(path, name)(), find(path, "driver"))
    carrier.run()
    assert carrier.finished
