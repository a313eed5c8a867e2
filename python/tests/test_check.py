"""`make check`: each changed file leads to the checks of its crate or module, and a failed one is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import check
import pytest


def lines(commands: list[list[str]]) -> str:
    return "\n".join(" ".join(command) for command in commands)


def test_a_changed_crate_is_formatted_linted_and_tested() -> None:
    files = [PurePosixPath("crates/fabric/src/link/egress.rs"), PurePosixPath("crates/tlplab/src/lib.rs")]
    assert lines(check.rust(files)).splitlines() == [
        "cargo fmt --all --check",
        "cargo clippy --quiet --all-targets --package tlplab-fabric --package tlplab -- -D warnings",
        "env PROPTEST_CASES=4 cargo test --quiet --package tlplab-fabric --package tlplab",
    ]
    assert check.rust([PurePosixPath("docs/rust.md")]) == []
    assert "--workspace" in lines(check.rust([PurePosixPath("Cargo.lock")]))


def test_every_crate_is_a_package_under_the_name_that_is_tested() -> None:
    for manifest in (check.ROOT / "crates").glob("*/Cargo.toml"):
        command = check.rust([PurePosixPath(manifest.relative_to(check.ROOT))])[-1]
        assert f'name = "{command[-1]}"' in manifest.read_text(encoding="utf-8")


def test_tests_that_name_a_module_are_run_for_it() -> None:
    assert check.tests_of(PurePosixPath("python/tlplab/doctor.py")) == ["python/tests/test_doctor.py"]
    assert "python/tests/test_scan.py" in check.tests_of(PurePosixPath("python/tests/lspci_text.py"))
    assert check.tests_of(PurePosixPath("python/tests/test_model.py")) == ["python/tests/test_model.py"]
    assert check.tests_of(PurePosixPath("site/pages.py")) == []


def test_pages_experiments_report_and_rtl_have_checks_of_their_own() -> None:
    files = ["docs/bench.md", "experiments/ring.toml", "report/src/page.ts", "rtl/core/tags.sv"]
    commands = lines(check.others([PurePosixPath(name) for name in files]))
    for part in ("docs/bench.md or excerpts", "tlplab check experiments/ring.toml", "npm", "rtl-lint", "words.py"):
        assert part in commands


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit of one file."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    (tmp_path / "old.py").write_text("old = 1\n")
    for words in ("init --quiet", "add .", "-c user.name=n -c user.email=e commit --quiet --message=m"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return tmp_path


def test_changed_new_and_committed_files_count(clone: Path) -> None:
    assert check.changed(None) == []
    (clone / "old.py").write_text("old = 2\n")
    (clone / "new.md").write_text("# New\n")
    assert [str(path) for path in check.changed(None)] == ["new.md", "old.py"]
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-am", "m"], cwd=clone, check=True
    )
    assert [str(path) for path in check.changed(None)] == ["new.md"]
    assert [str(path) for path in check.changed("HEAD~1")] == ["new.md", "old.py"]
    with pytest.raises(SystemExit, match="merge-base HEAD nowhere"):
        check.changed("nowhere")


def test_a_failed_check_is_named_and_the_others_run(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone / "old.py").write_text("old = 2\n")
    bad, good = ([sys.executable, "-c", f"print('ran {status}'); raise SystemExit({status})"] for status in (3, 0))
    monkeypatch.setattr(check, "python", lambda _: [bad, good])
    monkeypatch.setattr(check, "others", lambda _: [])
    monkeypatch.setattr(sys, "argv", ["check"])
    assert check.main() == 1
    output = capfd.readouterr().out
    assert "ran 0" in output
    assert "1 of 2 checks failed" in output
    monkeypatch.setattr(check, "python", lambda _: [good])
    assert check.main() == 0
    assert "All 1 checks of 1 changed files passed" in capfd.readouterr().out
