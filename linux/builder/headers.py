"""A distribution's headers of a kernel, against which modules are built; nothing is installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from . import debian, initramfs
from .report import BuildError, run

ELF = b"\x7fELF"
# The packages say by this path where the others are.
INSTALLED = "/usr/src/"
# What only a newer compiler understands, and the build does otherwise for an older one.
ALIGNMENT = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT", "-fmin-function-alignment=16")


def packages(archive: debian.Archive, kernel: str, release: str) -> list[Path]:
    """Fetches the headers of a kernel, as `7.3.4+deb13-amd64`, with the programs of its build and the libraries that these load."""
    headers = f"linux-headers-{kernel}"
    others = [
        name
        for name in archive.dependencies(f"{headers}/{release}")
        if name.startswith(("linux-headers-", "linux-kbuild-"))
    ]
    if not others:
        raise BuildError(f"Debian's archive has no {headers}; check that the mirror is complete")
    found = archive.download([f"{name}/{release}" for name in (headers, *others)])
    libraries = sorted({library for package in found for library in debian.libraries_of(package)})
    return [*found, *archive.with_libraries(libraries, without=())]


def unpack(found: Iterable[Path], folder: Path, at: Path) -> None:
    """Unpacks them in a folder that will be at another place: they know where they are."""
    for package in found:
        debian.unpack(package, folder)
    place = build_in(folder)
    makefile = place / "Makefile"
    makefile.write_text(makefile.read_text("utf-8").replace(INSTALLED, f"{at}{INSTALLED}"), encoding="utf-8")
    # Without it no program for BTF is needed.
    (place / "vmlinux").unlink(missing_ok=True)
    if not understood(ALIGNMENT[1]):
        config = place / "include/config/auto.conf"
        lines = config.read_text("utf-8").splitlines(keepends=True)
        config.write_text("".join(line for line in lines if not line.startswith(ALIGNMENT[0])), encoding="utf-8")
    for path in sorted((folder / "usr/lib").glob("linux-kbuild-*/**/*")):
        # Beside NAME.real-x86 and the like, NAME only chooses one of them.
        if is_program(path) and not list(path.parent.glob(f"{path.name}.real-*")):
            start_by_itself(path, at / path.relative_to(folder), at)


def build_in(folder: Path) -> Path:
    """Of unpacked headers, the folder for `make -C`."""
    return next(path for path in (folder / "usr/src").iterdir() if not path.name.endswith("-common"))


def understood(option: str) -> bool:
    """True if this machine's compiler knows an option."""
    try:
        run(["gcc", option, "-E", "-x", "c", "/dev/null"])
    except BuildError:
        return False
    return True


def is_program(path: Path) -> bool:
    """True if the file is an executable for this machine; it may load newer libraries than the machine has."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ELF)) == ELF


def start_by_itself(program: Path, at: Path, root: Path) -> None:
    """Has a program, which will be at another place, load the libraries below a root."""
    program.rename(program.with_name(f"{program.name}.elf"))
    words = (root / initramfs.LOADER, "--library-path", root / "usr/lib/x86_64-linux-gnu", f"{at}.elf")
    program.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
