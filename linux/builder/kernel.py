"""The guest's kernel: its source, our patches and configuration, and the modules."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import debian
from .report import BuildError, run, say

# The Debian package that is taken, and what is taken when it is gone: the newest of these series, for which the patches are made.
PACKAGE, VERSION = "linux-source-7.3", "7.3.4-1~bpo13+1"
SHA256 = "703e369ddd4cce971452f5a593ee55df3a5c10c83caf0fa0df039633ed181ee3"
SERIES = ("linux-source-7.3", "linux-source-7.2")
# What the kernel's build writes into it instead of the time, the user and the machine.
FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01 00:00:00 UTC",
    "KBUILD_BUILD_USER": "tlplab",
    "KBUILD_BUILD_HOST": "tlplab",
    "KBUILD_BUILD_VERSION": "1",
}
# How many files the build compiles, more or less, and the processor time that one takes: for what is said while it runs.
FILES, SECONDS_EACH = 950, 0.55
# Of the source, what no configuration for ARCH=um compiles; a build that misses something here fails.
NOT_UNPACKED = (
    "*/Documentation/*.rst",
    "*/Documentation/*.yaml",
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/testing/*",
)
# The drivers whose branches a build for coverage counts.
PROFILED = ("drivers/nvme/host", "drivers/net/ethernet/intel/e1000e", "drivers/pci/pcie")
# Of the build, what modules are built against.
KEPT_FOLDERS = ("scripts", "include", "arch/um/include", "arch/x86/include", "arch/x86/um", "arch/um/scripts")
KEPT_FILES = (".config", "Module.symvers", "Makefile", "Kbuild", "Kconfig")


@dataclass
class Source:
    """The kernel's source as it was found."""

    path: Path
    name: str
    sha256: str
    packed: bool
    """In a Debian package, not a tarball."""


def pinned(archive: debian.Archive) -> Source:
    """The pinned package, or the newest that the patches are for."""
    for package, versions in ((name, archive.versions(name)) for name in SERIES):
        if package == PACKAGE and VERSION in versions:
            path = archive.download([f"{PACKAGE}={VERSION}"])[0]
            found = debian.sha256(path)
            if found != SHA256:
                raise BuildError(f"{path} has the SHA-256 {found}, not {SHA256}; remove it and try again")
            return Source(path, f"{PACKAGE} {VERSION}", found, packed=True)
        if versions:
            say(f"{PACKAGE} {VERSION} is gone from the archive; {package} {versions[0]} is taken")
            path = archive.download([f"{package}={versions[0]}"])[0]
            return Source(path, f"{package} {versions[0]}", debian.sha256(path), packed=True)
    raise BuildError(
        f"Debian's archive has none of {', '.join(SERIES)}; name a tarball of Linux 7.2 or 7.3 with --source"
    )


def named(path: Path) -> Source:
    """A tarball that the user names."""
    if not path.is_file():
        raise BuildError(f"--source {path}: there is no such file")
    if path.suffix != ".deb":
        try:
            with tarfile.open(path) as tarball:
                tarball.next()
        except tarfile.TarError:
            raise BuildError(f"{path} is not a tarball, or is damaged") from None
    return Source(path.resolve(), path.name, debian.sha256(path), packed=path.suffix == ".deb")


def unpack(source: Source, to: Path) -> None:
    """Unpacks the source, without its uppermost folder."""
    to.mkdir(parents=True)
    exclude = [f"--exclude={pattern}" for pattern in NOT_UNPACKED]
    tarball = source.path
    if source.packed:
        tarball = to.parent / "source.tar.xz"
        member = f"./usr/src/{source.name.split()[0].split('_')[0]}.tar.xz"
        with (
            tarball.open("wb") as file,
            subprocess.Popen(["dpkg-deb", "--fsys-tarfile", source.path], stdout=subprocess.PIPE) as packed,
        ):
            done = subprocess.run(["tar", "-xO", member], stdin=packed.stdout, stdout=file, stderr=subprocess.PIPE)
        if done.returncode or packed.returncode:
            raise BuildError(f"{source.path} holds no {member}, or is damaged; remove it and try again")
    try:
        run(["tar", "-xf", tarball, "-C", to, "--strip-components=1", *exclude])
    except BuildError as problem:
        raise BuildError(f"{source.path} cannot be unpacked: {problem}") from None
    if not (to / "arch/um/kernel/time.c").exists():
        raise BuildError(f"{source.path} is not a kernel's source: it has no arch/um/kernel/time.c")
    if source.packed:
        tarball.unlink()


def patch(tree: Path, patches: list[Path]) -> None:
    """Applies the patches, in order."""
    for one in patches:
        with one.open("rb") as content:
            done = subprocess.run(
                ["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-d", tree],
                stdin=content,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            raise BuildError(f"{one.name} does not apply to this source; the patches are for Linux 7.2 and 7.3")


def make(tree: Path, *goals: str) -> list[str]:
    """The command that makes something of the kernel, with as many processes as there are processors."""
    return ["make", "-C", str(tree), "ARCH=um", f"-j{os.cpu_count() or 1}", *goals]


def environment() -> dict[str, str]:
    """The user's, without variables that would change the result."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "ARCH", "KCFLAGS")}
    return {**kept, **FIXED, "LC_ALL": "C"}


def wanted(config: str) -> dict[str, str]:
    """The options that a fragment sets; those it unsets have the value n."""
    set_to = dict(re.findall(r"(?m)^(CONFIG_\w+)=(.*)$", config))
    return {**set_to, **dict.fromkeys(re.findall(r"(?m)^# (CONFIG_\w+) is not set$", config), "n")}


def profile(tree: Path) -> None:
    """Has the compiler count in the drivers that are `PROFILED`."""
    for folder in PROFILED:
        with (tree / folder / "Makefile").open("a", encoding="utf-8") as makefile:
            makefile.write("\nGCOV_PROFILE := y\n")


def configure(tree: Path, fragments: Sequence[Path]) -> None:
    """Makes .config, and sees that the fragments came through."""
    run(make(tree, "-s", "tinyconfig"), env=environment())
    config = tree / ".config"
    text = "".join(fragment.read_text(encoding="utf-8") for fragment in fragments)
    # The last of two lines for one option holds.
    config.write_text(config.read_text(encoding="utf-8") + text, encoding="utf-8")
    run(make(tree, "-s", "olddefconfig"), env=environment())
    got = wanted(config.read_text(encoding="utf-8"))
    lost = [f"{name}={value}" for name, value in wanted(text).items() if got.get(name, "n") != value]
    if lost:
        names = " and ".join(fragment.name for fragment in fragments)
        raise BuildError(f"{names}: this kernel does not take {', '.join(lost)}")


def compile_all(tree: Path, log: Path) -> None:
    """Compiles the kernel and the files that modules need. Prints the progress every 15 seconds."""
    start = said = time.monotonic()
    done = 0
    # The second, without a module, makes the list of symbols that modules are linked with.
    command = make(tree, "linux", "modules")
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            done += line.startswith("  CC")
            now = time.monotonic()
            if now - said >= 15:
                said = now
                left = (now - start) * max(FILES / max(done, 1) - 1, 0)
                share = min(done / FILES, 0.99)
                say(f"  {share:.0%} compiled, about {left:.0f} s left")
    if process.returncode:
        text = log.read_text(encoding="utf-8")
        errors = [line for line in text.splitlines() if "error" in line or "No space" in line]
        if "No space left on device" in text:
            raise BuildError("the disk is full; make room or name another folder with XDG_CACHE_HOME")
        raise BuildError(
            f"the kernel does not compile: {errors[0] if errors else 'make failed'}; all of it is in {log}"
        )


def release(tree: Path) -> str:
    """The guest's `uname -r`."""
    return (tree / "include/config/kernel.release").read_text(encoding="utf-8").strip()


def prune(tree: Path) -> None:
    """Leaves of the build the files against which modules are built."""
    for folder, folders, files in os.walk(tree):
        inside = Path(folder).relative_to(tree)
        if any(inside == Path(kept) or Path(kept) in inside.parents for kept in KEPT_FOLDERS):
            for name in files:
                if name.endswith((".o", ".cmd")) and "scripts" not in inside.parts:
                    (Path(folder) / name).unlink()
            continue
        # gcov needs both to tell what was counted.
        counted = any(name.endswith(".gcno") for name in files)
        for name in files:
            kept = name in KEPT_FILES or name.startswith(("Makefile", "Kconfig"))
            if not (kept or (counted and name.endswith((".gcno", ".c")))):
                (Path(folder) / name).unlink()
        folders.sort()
    for folder, _, _ in os.walk(tree, topdown=False):
        if not os.listdir(folder):
            os.rmdir(folder)
