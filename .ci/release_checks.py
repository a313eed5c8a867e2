"""Checks that each file of a release has to pass; release.py builds the files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Libraries that a module of the package may need beyond the declared ones: those of extras, and pytest's, for its plugin.
OPTIONAL = {"SALib", "distributed", "optuna", "pandas", "pyarrow", "pytest"}
IMPORT_ALL = """
import importlib, importlib.metadata, json, pkgutil, tlplab
names, missing = ["pytest_tlplab", *(one.name for one in pkgutil.walk_packages(tlplab.__path__, "tlplab."))], {}
for name in names:
    try:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing[name] = error.name
print(json.dumps([len(names), missing, [one.name for one in importlib.metadata.distributions()]]))
"""
# As readelf calls them.
PROCESSORS = {"x86_64": "X86-64", "aarch64": "AArch64"}
BYTES = 4096


class ReleaseError(Exception):
    """A check that failed: the problem and its fix."""


def expect(holds: bool, fact: str, printed: str = "") -> None:
    """Raises ReleaseError with the fact, and a program's output, unless it holds."""
    if not holds:
        raise ReleaseError(f"{fact}\n{printed}".rstrip())


def ran(command: Sequence[str], folder: Path | None = None, **environment: str) -> str:
    """The standard output of a command. Raises ReleaseError unless it ends with 0."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(command)}: exit status {done.returncode}", done.stdout + done.stderr)
    return done.stdout


def tools(needed: Mapping[str, str]) -> None:
    """The programs that a release needs are installed."""
    missing = [f"{name}: {how}" for name, how in needed.items() if shutil.which(name) is None]
    expect(not missing, "programs are missing:\n  " + "\n  ".join(missing))


def same_version(place: str, found: str, version: str) -> None:
    """A file's version is the workspace's."""
    expect(found == version, f"{place}: version {found}; the workspace has {version}")


def versions(root: Path) -> str:
    """The version of the workspace, which its files, the changelog and a tag of the commit have, too."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    version: str = workspace["package"]["version"]
    for name, one in workspace["dependencies"].items():
        if isinstance(one, dict) and "path" in one and "version" in one:
            same_version(f"Cargo.toml: workspace.dependencies.{name}", one["version"], version)
    page = json.loads((root / "report/package.json").read_text(encoding="utf-8"))
    same_version("report/package.json", page["version"], version)
    headings = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    heading = next((one for one in headings if re.match(rf"{re.escape(version)}(\s|$)", one)), None)
    first = headings[0] if headings else "no section"
    expect(heading is not None, f'CHANGELOG.md has no section "## {version}", its first is "{first}"; rename it')
    expect(heading == first, f'CHANGELOG.md: "## {first}" is before "## {heading}"; the newest version comes first')
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=root, capture_output=True, text=True
    ).stdout.split()
    tags = [tag for tag in tags if re.match(r"v\d", tag)]
    for tag in tags:
        same_version(f"the tag {tag} of this commit", tag[1:], version)
    print(f"ok  version {version}: crates, page and changelog, " + (f"tag {tags[0]}" if tags else "no tag yet"))
    return version


def wheel(path: Path, version: str, machine: str, folder: Path) -> None:
    """A wheel is for its processor, for every Python from 3.10 on, and for C libraries as old as its tag says."""
    parts = re.fullmatch(
        rf"tlplab-(.*)-cp310-abi3-(?:manylinux2014_{machine}\.)?manylinux_2_(\d+)_{machine}\.whl", path.name
    )
    if parts is None:
        raise ReleaseError(f"{path.name}: no wheel for the stable interface of Python 3.10 on manylinux and {machine}")
    same_version(path.name, parts[1], version)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        library = archive.extract("tlplab/_core.abi3.so", folder)
    strange = [n for n in names if not n.startswith(("pytest_tlplab/", "tlplab/", "tlplab-")) or "__pycache__" in n]
    expect(not strange, f"{path.name} holds other files: {' '.join(strange)}")
    header = ran(["readelf", "--file-header", library], LC_ALL="C")
    expect(PROCESSORS[machine] in header, f"{path.name} holds a library for another processor", header)
    needed = newest_symbol(Path(library))
    expect(needed <= int(parts[2]), f"{path.name}: needs glibc 2.{needed}, and its tag says 2.{parts[2]}")
    print(f"ok  {path.name}: needs glibc 2.{needed}")


def newest_symbol(library: Path) -> int:
    """The minor version of the C library 2 that a shared library needs."""
    found = re.findall(r"GLIBC_2\.(\d+)", ran(["readelf", "--version-info", "--wide", str(library)]))
    return max(map(int, found))


def in_empty_environment(path: Path, version: str, root: Path, folder: Path) -> Path:
    """Commands of an installed wheel, with its declared dependencies alone, in a folder and a home that are empty."""
    venv.create(folder / "venv", with_pip=True)
    bin_, away = folder / "venv/bin", folder / "away"
    (folder / "home").mkdir()
    away.mkdir()
    clean = {"PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8"}
    # The locked versions, so that a release of a dependency cannot break yesterday's commit.
    locked = str(root / "python/requirements.txt")
    ran([str(bin_ / "pip"), "install", "--quiet", "--constraint", locked, str(path)])

    def said(*command: str) -> str:
        done = subprocess.run(
            [str(bin_ / command[0]), *command[1:]], cwd=away, env=clean, capture_output=True, text=True
        )
        printed = done.stdout + done.stderr
        expect(done.returncode == 0, f"{' '.join(command).splitlines()[0]}: exit status {done.returncode}", printed)
        return printed

    def says(command: str, holds: Callable[[str], bool]) -> None:
        printed = said(*command.split())
        expect(holds(printed), f"{command} prints something else than expected", printed)

    count, missing, installed = json.loads(said("python", "-c", IMPORT_ALL))
    expect(
        not OPTIONAL & set(installed), f"the wheel installs packages of an extra: {sorted(OPTIONAL & set(installed))}"
    )
    undeclared = {name: library for name, library in missing.items() if str(library).split(".")[0] not in OPTIONAL}
    expect(not undeclared, f"modules import packages that the wheel does not declare: {undeclared}")
    says("pip check", lambda text: "No broken requirements" in text)
    says("tlplab --version", lambda text: text.split()[-1] == version)
    says("tlplab list experiments", lambda text: "quickstart " in text and "p2p/acs " in text)
    says("tlplab run quickstart --report run.html --pcap run.pcapng", lambda text: "limits the run" in text)
    expect((away / "run.html").stat().st_size > 10_000, "tlplab run --report: the page is empty")
    says("tlplab lspci quickstart", lambda text: "downstream port" in text)
    says("tlplab dump run.pcapng", lambda text: "NetTLP: MWr, len 64" in text)
    machine = root / "examples/dumps/workstation.txt"
    expect("x16" in said("tlplab", "scan", "--from", str(machine)), "tlplab scan finds no link of 16 lanes")
    says("tlplab dissector -o dissector", lambda _: (away / "dissector/tlplab.lua").exists())
    says("tlplab doctor", lambda text: version in text)
    print(f"ok  wheel in an empty environment: {count} modules, run, report, lspci, dump, scan, dissector, experiments")
    return bin_ / "tlplab"


def c_library(tarball: Path, deb: Path, version: str, source: Path, tlplab: Path, folder: Path) -> None:
    """A program builds with the files of tarball and .deb, unpacked in any folder, and reads memory of the adapter."""
    moved = folder / "moved elsewhere"
    moved.mkdir(parents=True)
    ran(["tar", "-xzf", str(tarball), "-C", str(moved), "--strip-components=1"])
    program(moved / "lib", None, version, source, tlplab, folder / "tarball")
    print(f"ok  {tarball.name}: a program with the shared and one with the static library")
    same_version(deb.name, ran(["dpkg-deb", "--field", str(deb), "Version"]).strip(), version)
    needs = ran(["dpkg-deb", "--field", str(deb), "Depends"]).strip()
    expect("libc6" in needs, f"{deb.name}: depends on {needs!r}, not on the C library")
    system = folder / "system"
    ran(["dpkg-deb", "--extract", str(deb), str(system)])
    libraries = next(system.glob("usr/lib/*/libtlp.so")).parent
    program(libraries, system, version, source, tlplab, folder / "deb")
    print(f"ok  {deb.name}: depends on {needs}")


def program(libraries: Path, system: Path | None, version: str, source: Path, tlplab: Path, folder: Path) -> None:
    """Builds and runs a program with the shared and with the static library, as pkg-config says."""
    folder.mkdir()
    places = {"PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig"), "PKG_CONFIG_PATH": ""}
    if system is not None:
        places["PKG_CONFIG_SYSROOT_DIR"] = str(system)
    same_version("libtlp.pc", ran(["pkg-config", "--modversion", "libtlp"], None, **places).strip(), version)
    expect((libraries / f"libtlp.so.{version}").exists(), f"{libraries} has no libtlp.so.{version}")
    # A shell reads the words of pkg-config, in which a space is escaped.
    shared = 'cc -Wall -Werror -o shared "$SOURCE" $FLAGS'
    static = 'cc -Wall -Werror -o static "$SOURCE" $FLAGS "$LIBRARIES/libtlp.a" $OTHERS'
    flags = ran(["pkg-config", "--cflags", "--libs", "libtlp"], None, **places).strip()
    cflags = ran(["pkg-config", "--cflags", "libtlp"], None, **places).strip()
    others = ran(["pkg-config", "--libs", "--static", "libtlp"], None, **places).split("-ltlp")[1].strip()
    for script, words in ((shared, flags), (static, cflags)):
        text = script.replace("$FLAGS", words).replace("$OTHERS", others)
        ran(["sh", "-c", text], folder, SOURCE=str(source), LIBRARIES=str(libraries))
    for name in ("shared", "static"):
        reads_memory(folder / name, tlplab, folder, {"LD_LIBRARY_PATH": str(libraries)} if name == "shared" else {})


def reads_memory(program: Path, tlplab: Path, folder: Path, environment: dict[str, str]) -> None:
    """The program reads the adapter's memory, every byte of it."""
    image = bytes((n * 7 + n // 256) % 256 for n in range(BYTES))
    (folder / "image").write_bytes(image)
    # Addresses of its own, as others may run adapters.
    here = f"127.{os.getpid() % 199 + 3}.{os.getpid() // 199 % 250}"
    serve = [str(tlplab), "adapter", "--local", f"{here}.2", "--peer", f"{here}.1=1b:00.0"]
    adapter = subprocess.Popen(
        [*serve, "--memory", "1MiB", "--load-memory", "image@0x1000", "--seconds", "60"],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    command = [str(program), f"{here}.2", f"{here}.1", "1b00", "0x1000", str(BYTES)]
    try:
        until = time.monotonic() + 30
        while True:
            done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True)
            ended = adapter.poll() is not None
            if done.returncode == 0 or ended or time.monotonic() > until:
                break
            time.sleep(0.2)  # the adapter starts
    finally:
        adapter.terminate()
        told = adapter.communicate()[1]
    printed = done.stderr.decode() + (told if ended else "")
    expect(done.returncode == 0, f"{program.name}: exit status {done.returncode}", printed)
    expect(done.stdout == image, f"{program.name} reads other bytes than the adapter's memory has")
