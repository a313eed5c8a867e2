"""Devices from libraries, as tests need them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copier_in_c(folder: Path) -> Path:
    """`examples/c/copier.c` as a library in the folder."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler, "a C compiler, cc or $CC"
    library = folder / "copier.so"
    options = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "crates/device-library/include")]
    subprocess.run([compiler, *options, "-o", library, ROOT / "examples/c/copier.c"], check=True, timeout=60)
    return library
