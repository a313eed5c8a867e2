"""Devices from files: found, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from carrier import Memory

from tlplab.loader import LoadError, load_device, load_driver

DEVICE = """\
import tlplab as tl

class Board(tl.Device):
    class regs(tl.Bar, size="4KiB"):
        a = tl.Reg32(0)

    def __init__(self, depth=4):
        if depth > 8:
            raise ValueError("too deep")
        self.depth = depth

async def driver(host, dev):
    pass

other = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "board.py"
    path.write_text(DEVICE, encoding="utf-8")
    return str(path)


def refusal(path: str, name: str, parameters: str = "{}") -> str:
    with pytest.raises(LoadError) as caught:
        load_device(path, name, parameters)
    return str(caught.value)


def test_a_device_gets_its_parameters(file: str) -> None:
    first, second = load_device(file, "Board", "{}"), load_device(file, "Board", '{"depth": 7}')
    assert (first.device.depth, second.device.depth) == (4, 7)  # type: ignore[attr-defined]
    assert type(first.device) is type(second.device), "the file is run once"
    assert first.bars[0] is not second.bars[0]


def test_a_driver_is_found(file: str) -> None:
    assert load_driver(file, "driver", Memory()).driver.__name__ == "driver"


def test_a_missing_class_is_named_with_the_existing_ones(file: str, tmp_path: Path) -> None:
    assert refusal(file, "Bord") == "there is no Bord in it; it has Board, driver"
    assert refusal(str(tmp_path / "none.py"), "Board") == "there is no such file"


def test_an_object_that_is_not_a_device_is_refused(file: str) -> None:
    assert refusal(file, "driver") == "driver is not a device; write class driver(tlplab.Device)"
    with pytest.raises(LoadError, match="3 is not a driver"):
        load_driver(file, "other", Memory())


def test_a_refusal_by_the_class_names_the_line(file: str) -> None:
    assert refusal(file, "Board", '{"depth": 9}') == f"Board cannot be created: {file}:9: ValueError: too deep"
    assert "unexpected keyword argument 'width'" in refusal(file, "Board", '{"width": 1}')


def test_a_broken_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("a = 1\nb = c\n", encoding="utf-8")
    assert refusal(str(path), "Board") == f"{path}:2: NameError: name 'c' is not defined"
    path.write_text("a = 1\nb = (\n", encoding="utf-8")
    assert refusal(str(path), "Board").startswith(f"{path}:2: SyntaxError")
