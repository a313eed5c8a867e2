"""Runs a program of Rust tests and ends it at the first test that fails: one is enough for `make mutants`."""

import subprocess
import sys


def main() -> int:
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True, errors="replace") as tests:
        assert tests.stdout is not None
        for line in tests.stdout:
            print(line, end="", flush=True)
            if line.startswith("test ") and line.endswith("... FAILED\n"):
                tests.kill()
                return 101
    return tests.returncode if tests.returncode >= 0 else 128 - tests.returncode


if __name__ == "__main__":
    sys.exit(main())
