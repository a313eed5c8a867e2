"""The commands of docs/libtlp.md: the C library is built, found by pkg-config, and a program linked with it runs behind `tlplab adapter`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="needs pkg-config")
def test_the_program_built_as_documented_reads_host_memory(tmp_path: Path) -> None:
    block = re.search(r"^```sh\n(.*?)^```$", (ROOT / "docs/libtlp.md").read_text(encoding="utf-8"), re.M | re.S)
    assert block
    commands, run = block.group(1).strip().rsplit("\n", 1)
    built = subprocess.run(["bash", "-ec", commands], cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert built.returncode == 0, built.stderr

    image = tmp_path / "image"
    image.write_bytes(os.urandom(4096))
    options = ["--local", "127.0.0.2", "--peer", "127.0.0.1=1b:00.0", "--memory", "1MiB", "--load-memory", f"{image}@0"]
    with subprocess.Popen([sys.executable, "-m", "tlplab", "adapter", *options, "--seconds", "60"]) as adapter:
        try:
            for _ in range(100):
                done = subprocess.run(["bash", "-ec", run], cwd=ROOT, capture_output=True, text=True, timeout=30)
                if done.returncode == 0:
                    break
                time.sleep(0.2)
            assert done.returncode == 0, done.stderr
        finally:
            adapter.terminate()
    assert (ROOT / "out/memory.bin").read_bytes() == image.read_bytes()
