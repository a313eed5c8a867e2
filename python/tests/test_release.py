"""`make release`: its checks refuse faulty files, and its parts build files that their users can use."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import release
import release_checks as checks
from release_checks import ReleaseError

from tlplab import _core

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files of a clone that state a version, in a repository with one commit."""
    for name in ("Cargo.toml", "CHANGELOG.md", "report/package.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message=m")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_clone_has_one_version(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    version = checks.versions(clone)
    assert "no tag yet" in capsys.readouterr().out
    git(clone, "tag", f"v{version}")
    git(clone, "tag", "another")
    assert checks.versions(clone) == version
    assert f"tag v{version}\n" in capsys.readouterr().out


def test_a_tag_of_another_version_is_refused(clone: Path) -> None:
    git(clone, "tag", "v9.9.9")
    with pytest.raises(ReleaseError, match=r"the tag v9\.9\.9 of this commit: version 9\.9\.9; the workspace has"):
        checks.versions(clone)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "CHANGELOG.md",
            "## 0.1.0",
            "## Unreleased",
            'CHANGELOG.md has no section "## 0.1.0", its first is "Unreleased',
        ),
        ("CHANGELOG.md", "## 0.1.0", "## 0.1.01", 'CHANGELOG.md has no section "## 0.1.0"'),
        ("CHANGELOG.md", "## 0.1.0", "## Later\n\n## 0.1.0", 'CHANGELOG.md: "## Later" is before "## 0.1.0'),
        (
            "Cargo.toml",
            'crates/wire", version = "0.1.0"',
            'crates/wire", version = "0.2.0"',
            "dependencies.tlplab-wire",
        ),
        ("report/package.json", '"version": "0.1.0"', '"version": "0.1.1"', "report/package.json: version 0.1.1"),
    ],
)
def test_a_file_of_another_version_is_refused(clone: Path, file: str, old: str, new: str, said: str) -> None:
    change(clone / file, old, new)
    with pytest.raises(ReleaseError, match=re.escape(said)):
        checks.versions(clone)


def test_a_missing_program_is_named_with_its_install_command() -> None:
    with pytest.raises(ReleaseError, match="no-such-program: apt-get install it"):
        checks.tools({"sh": "", "no-such-program": "apt-get install it"})


def test_a_command_that_fails_is_shown_with_its_output() -> None:
    assert checks.ran(["sh", "-c", "echo $A"], A="b") == "b\n"
    with pytest.raises(ReleaseError, match=r"exit status 3\nout\nerr"):
        checks.ran(["sh", "-c", "echo out; echo err >&2; exit 3"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tlplab-0.1.0-cp310-abi3-linux_x86_64.whl", "no wheel for the stable interface"),
        ("tlplab-0.1.0-cp311-cp311-manylinux_2_17_x86_64.whl", "no wheel for the stable interface"),
        ("tlplab-0.1.0-cp310-abi3-manylinux_2_17_aarch64.whl", "no wheel for the stable interface"),
        ("tlplab-0.2.0-cp310-abi3-manylinux_2_17_x86_64.whl", "version 0.2.0; the workspace has 0.1.0"),
        ("tlplab-0.1.0-cp310-abi3-manylinux_2_1_x86_64.whl", "and its tag says 2.1"),
        ("tlplab-0.1.0-cp310-abi3-manylinux2014_x86_64.manylinux_2_99_x86_64.whl", "holds other files: stray"),
    ],
)
def test_a_wheel_that_promises_something_else_is_refused(name: str, said: str, tmp_path: Path) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the library is one for x86-64")
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.write(_core.__file__, "tlplab/_core.abi3.so")
        archive.writestr("stray" if "_2_99_" in name else "tlplab/fine", "")
    with pytest.raises(ReleaseError, match=re.escape(said)):
        checks.wheel(tmp_path / name, "0.1.0", "x86_64", tmp_path)


def test_a_wheel_for_another_processor_is_refused(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    path = tmp_path / f"tlplab-0.1.0-cp310-abi3-manylinux_2_99_{other}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(_core.__file__, "tlplab/_core.abi3.so")
    with pytest.raises(ReleaseError, match="a library for another processor"):
        checks.wheel(path, "0.1.0", other, tmp_path)


def test_a_program_that_reads_other_bytes_is_refused(tmp_path: Path) -> None:
    tlplab = Path(sys.executable).with_name("tlplab")
    program = tmp_path / "reader"
    program.write_text("#!/bin/sh\nhead -c 4096 /dev/zero\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(ReleaseError, match="reads other bytes"):
        checks.reads_memory(program, tlplab, tmp_path, {})


def a_release(tmp_path: Path) -> release.Release:
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    profile = os.environ.get("RUST_PROFILE", "dev")
    return release.Release(checks.versions(ROOT), profile, out, work, release.commit_time(), [])


@pytest.mark.full
def test_the_c_library_builds_programs_wherever_it_is(tmp_path: Path) -> None:
    making = a_release(tmp_path)
    tarball, deb = release.c_library(making)
    tlplab = Path(sys.executable).with_name("tlplab")
    gather = ROOT / "examples/c/gather.c"
    checks.c_library(tarball, deb, making.version, gather, tlplab, tmp_path / "c")
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", fixed], check=True)
    (pkg_config,) = fixed.glob("*/lib/pkgconfig/libtlp.pc")
    release.relocate(pkg_config, "/nowhere", "${prefix}/lib")
    subprocess.run(["tar", "-czf", tmp_path / "fixed.tar.gz", "-C", fixed, *os.listdir(fixed)], check=True)
    with pytest.raises(ReleaseError, match=r"libtlp\.h"):
        checks.c_library(tmp_path / "fixed.tar.gz", deb, making.version, gather, tlplab, tmp_path / "fixed-c")
    release.sums(making)
    (making.out / tarball.name).write_bytes(b"other")
    with pytest.raises(ReleaseError):
        checks.ran(["sha256sum", "--check", "--quiet", "SHA256SUMS"], making.out)


@pytest.mark.full
def test_the_sdist_has_the_files_included_by_its_crates(tmp_path: Path) -> None:
    making = a_release(tmp_path)
    checks.ran([release.MATURIN, "sdist", "--out", str(tmp_path / "sdist")], release.clean_copy(making))
    (sdist,) = (tmp_path / "sdist").iterdir()
    folder = release.unpack(sdist, tmp_path / "unpacked")
    included = [
        source.parent / name
        for source in folder.glob("crates/*/src/**/*.rs")
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text(encoding="utf-8"))
    ]
    assert len(included) > 10
    assert [str(path) for path in included if not path.exists()] == []
    assert (folder / "python/tlplab/experiments/quickstart.toml").exists()
    assert json.loads((ROOT / "report/package.json").read_text(encoding="utf-8"))["version"] in sdist.name


@pytest.mark.full
@pytest.mark.long
def test_a_release_is_built_and_checked(tmp_path: Path) -> None:
    environment = {**os.environ, "CARGO_PROFILE_DEV_OPT_LEVEL": "0"}
    command = [sys.executable, str(ROOT / ".ci/release.py"), "--profile", "dev", "--here-only", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.suffix for path in tmp_path.iterdir()}
    assert names == {"", ".whl", ".gz", ".crate", ".deb"}
