"""The guest's initial file system: the programs, the libraries that they load, our programs and modules, and init."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from . import debian
from .report import BuildError, run

PACKAGES = ("busybox-static", "coreutils", "e2fsprogs", "ethtool", "fio", "iperf3", "nvme-cli", "pci.ids", "pciutils")
PROGRAMS = {
    # That of busybox, as Debian builds it, does not say what it measured.
    "usr/bin/dd",
    "usr/bin/lspci",
    "usr/bin/setpci",
    "usr/bin/iperf3",
    "usr/bin/fio",
    "usr/sbin/ethtool",
    "usr/sbin/nvme",
    "usr/sbin/mke2fs",
    "usr/sbin/e2fsck",
}
LINKS = {"usr/sbin/mkfs.ext4": "mke2fs", "usr/sbin/fsck.ext4": "e2fsck"}
FILES = ("etc/mke2fs.conf", "usr/share/misc/pci.ids")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib64")
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
# By its own choice fio reads the processor's cycle counter, which knows nothing of virtual time.
FIO = """#!/bin/sh
# fio's own clock is the host's.
LD_PRELOAD=/usr/lib/tlplab/fio_clock.so exec /usr/lib/tlplab/fio --clocksource=clock_gettime "$@"
"""
SHARED = ("gcc", "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-O1", "-s", "-Wl,--build-id=none")
# libkmod, which lspci loads, complains without its indices; these have nothing in them.
INDICES = ("dep", "alias", "symbols", "builtin", "builtin.alias")
EMPTY_INDEX = bytes.fromhex("b007f457 00020001 00000000")


def needed(path: Path) -> list[str]:
    """The libraries that a program or a library loads."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-dW", path]))


def stand_ins(program: Path, where: Path) -> None:
    """Builds libraries in place of omitted ones, with the symbols that the program needs; every call of them fails.

    The linker looks for each name and its version when the program starts.
    """
    symbols = re.findall(r"\bUND ([a-z]+_\w+)(?:@(\w[\w.]*))?", run(["readelf", "--dyn-syms", "-W", program]))
    for library, prefix in debian.LEFT_OUT.values():
        wanted = sorted({(name, version) for name, version in symbols if name.startswith(prefix)})
        soname = next((name for name in needed(program) if name.startswith(f"{library}.so")), None)
        if soname is None:
            continue
        source, script = where / f"{soname}.c", where / f"{soname}.map"
        source.write_text("".join(f"long {name}(void) {{ return -1; }}\n" for name, _ in wanted), encoding="utf-8")
        versions = sorted({version for _, version in wanted if version})
        script.write_text(
            "".join(f"{v} {{ {' '.join(f'{name};' for name, of in wanted if of == v)} }};\n" for v in versions),
            encoding="utf-8",
        )
        options = [f"-Wl,--version-script={script}"] if versions else []
        run([*SHARED, f"-Wl,-soname,{soname}", *options, "-o", where / soname, source])
        source.unlink()
        script.unlink()


def find(name: str, folders: Iterable[Path]) -> Path:
    """A library by its name."""
    for folder in folders:
        if (folder / name).exists():
            return (folder / name).resolve()
    raise BuildError(f"{name} is in none of the packages for the guest; add the package that has it to linux/builder")


def closure(programs: Iterable[Path], folders: list[Path]) -> dict[str, Path]:
    """The libraries that programs load, and their libraries, by name."""
    found: dict[str, Path] = {}
    waiting = [name for program in programs for name in needed(program)]
    while waiting:
        name = waiting.pop()
        if name not in found and not name.startswith("ld-linux"):
            found[name] = find(name, folders)
            waiting += needed(found[name])
    return found


def trimmed(ids: str) -> str:
    """The names of vendors, devices and classes, without those of subsystems, which are half of the file."""
    return re.sub(r"(?m)^\t\t[0-9a-f]{4} [0-9a-f]{4}  .*\n|^#.*\n|^\n", "", ids)


def copy(source: Path, to: Path, executable: bool) -> None:
    """Copies a file's content."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    to.chmod(0o755 if executable else 0o644)


def add_programs(full: Path, root: Path, stubs: Path) -> None:
    """Copies programs, the libraries they load, and their files."""
    stand_ins(full / "usr/bin/fio", stubs)
    for program in PROGRAMS:
        copy(full / program, root / program, executable=True)
    libraries = closure([full / name for name in PROGRAMS], [*(full / name for name in LIBRARIES), stubs])
    for name, path in libraries.items():
        copy(path, root / "lib/x86_64-linux-gnu" / name, executable=False)
    copy((full / LOADER).resolve(), root / "lib64/ld-linux-x86-64.so.2", executable=True)
    for name in FILES:
        copy(full / name, root / name, executable=False)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    ids = root / "usr/share/misc/pci.ids"
    ids.write_text(trimmed(ids.read_text(encoding="utf-8")), encoding="utf-8")


def take_the_guests_clock(root: Path, source: Path) -> None:
    """Puts a script before fio, which sees that it uses the guest's clock, for a guest in virtual time."""
    place = root / "usr/lib/tlplab"
    place.mkdir(parents=True)
    (root / "usr/bin/fio").rename(place / "fio")
    (root / "usr/bin/fio").write_text(FIO, encoding="utf-8")
    (root / "usr/bin/fio").chmod(0o755)
    run([*SHARED, "-o", place / "fio_clock.so", source])


def add_busybox(full: Path, root: Path) -> None:
    """Adds busybox, under the names that nothing else has."""
    copy(full / "usr/bin/busybox", root / "usr/bin/busybox", executable=True)
    for applet in run([full / "usr/bin/busybox", "--list-full"]).split():
        place = root / applet
        if not place.exists() and not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to("/bin/busybox")


def add_modules(root: Path, modules: Iterable[Path]) -> None:
    """Adds modules of ours, to be loaded by their files."""
    for module in modules:
        copy(module, root / "lib/modules-tlplab" / module.name, executable=False)


def add_indices(folder: Path) -> None:
    """Adds the indices that libkmod looks for, to the folder of a kernel's release."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in INDICES:
        (folder / f"modules.{index}.bin").write_bytes(EMPTY_INDEX)


def assemble(packages: list[Path], ours: Path, programs: Iterable[Path], work: Path) -> Path:
    """The root of a file system, from packages, our files and programs; `work` is an empty folder."""
    full, root, stubs = work / "packages", work / "root", work / "stand-ins"
    stubs.mkdir(parents=True)
    for package in packages:
        debian.unpack(package, full)
    for name in ("dev", "lib/modules-tlplab", "proc", "root", "share", "sys", "tlplab", "tmp", "usr/bin", "usr/sbin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    add_programs(full, root, stubs)
    for program in programs:
        copy(program, root / "usr/bin" / program.name, executable=True)
    add_busybox(full, root)
    copy(ours / "init", root / "init", executable=True)
    copy(ours / "fstab", root / "etc/fstab", executable=False)
    return root
