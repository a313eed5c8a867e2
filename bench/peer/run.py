"""Runs the peer: `run.py write|read COUNT`, with the Python of bench/.venv. Prints one line of JSON: hops and CPU seconds."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent


def main() -> int:
    op, count = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as build:
        result = Path(build, "result.json")
        os.environ.update(COCOTB_LOG_LEVEL="WARNING", GPI_LOG_LEVEL="WARNING")
        os.environ["PYTHONPATH"] = str(HERE)
        runner = get_runner("icarus")
        # What the simulator says is for those who look for a fault: standard error.
        with contextlib.redirect_stdout(sys.stderr):
            runner.build(sources=[HERE / "top.v"], hdl_toplevel="top", build_dir=build)
            runner.test(
                test_module="dma",
                hdl_toplevel="top",
                build_dir=build,
                test_dir=build,
                extra_env={"BENCH_OP": op, "BENCH_COUNT": str(count), "BENCH_RESULT": str(result)},
                log_file=Path(build, "log"),
            )
        if not result.exists():
            print(Path(build, "log").read_text(encoding="utf-8"), file=sys.stderr)
            return 1
        print(result.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
