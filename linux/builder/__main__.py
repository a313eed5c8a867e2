"""`linux/build`: builds the guest's kernel and initial file system, or finds them in the cache."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
from pathlib import Path

from . import cpio, debian, drivers, initramfs, kernel, modules, programs
from .cache import build_once, cache, check_machine, check_tools, exit_status, is_there, made, named, point_to
from .report import BuildError, need_space, phase, run

LINUX = Path(__file__).resolve().parent.parent
ROOT = LINUX.parent
SPACE_GB = 2.0
DRIVER = modules.DRIVERS / "tlpdma"
# Each program that the build runs, and the Debian package it is in.
TOOLS = {
    "apt-get": "apt",
    "bc": "bc",
    "bison": "bison",
    "dpkg-deb": "dpkg",
    "flex": "flex",
    "g++": "g++",
    "gcc": "gcc",
    "make": "make",
    "patch": "patch",
    "perl": "perl",
    "readelf": "binutils",
    "strip": "binutils",
    "tar": "tar",
    "xz": "xz-utils",
}
# What is built: the guest as it is, with the kernel's own judges, or with counters in its drivers. The latter two have a configuration of their own.
PLAIN, DEBUG, COVERAGE = "plain", "debug", "coverage"
# The link in the cache that points to the last result.
LINKS = {PLAIN: "current", DEBUG: DEBUG, COVERAGE: COVERAGE}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="linux/build", description="Builds the Linux guest for virtual time: linux/README.md."
    )
    parser.add_argument("--source", type=Path, metavar="TARBALL", help="a kernel's source, instead of Debian's package")
    parser.add_argument("--sha256", metavar="HASH", help="expected SHA-256 of the tarball")
    parser.add_argument("--where", action="store_true", help="print the folder of the result, if it is there, and stop")
    parser.add_argument(
        "--compress", action="store_true", help="compress the initial file system: smaller, boots slower"
    )
    parser.add_argument(
        "--variant", choices=LINKS, default=PLAIN, help="with KASAN, lockdep and others, or with counters for gcov"
    )
    parser.add_argument("--rebuild", action="store_true", help="build even if the result is in the cache")
    chosen = parser.parse_args()
    if chosen.sha256 and not chosen.source:
        parser.error("--sha256 is for --source")
    return chosen


def fragments(variant: str) -> list[Path]:
    """The configuration of the kernel."""
    return [LINUX / "kernel.config", *([] if variant == PLAIN else [LINUX / f"{variant}.config"])]


def inputs(variant: str) -> dict[str, str]:
    """The hash of each file of ours that the result depends on."""
    files = [
        LINUX / "init",
        LINUX / "fstab",
        LINUX / "fio_clock.c",
        *fragments(variant),
        *LINUX.glob("patches/*.patch"),
        *LINUX.glob("builder/*.py"),
        *programs.sources(LINUX, DRIVER),
        *modules.sources(),
    ]
    return {str(path.relative_to(ROOT)): debian.sha256(path) for path in sorted(files)}


def compiler() -> str:
    """The version of the compiler that builds the kernel."""
    return run(["gcc", "--version"]).splitlines()[0]


def name_of_kernel(ours: dict[str, str], source: str, variant: str) -> str:
    """The kernel depends on less than the whole, and takes most of the time."""
    builders = ("linux/builder/kernel.py", *(() if variant == PLAIN else ("linux/builder/drivers.py",)))
    parts = {
        file: hash
        for file, hash in ours.items()
        if file.startswith("linux/patches/") or file in builders or file.endswith(".config")
    }
    return f"kernel-{named(parts, source, compiler())}"


def build_kernel(folder: Path, source: kernel.Source, variant: str) -> None:
    """Builds the kernel and the folder against which modules are built."""
    need_space(folder.parent, SPACE_GB)
    with made(folder) as work:
        tree = work / "build"
        with phase("unpacking and patching", "30 s"):
            kernel.unpack(source, tree)
            kernel.patch(tree, sorted(LINUX.glob("patches/*.patch")))
        with phase("configuring", "20 s"):
            kernel.configure(tree, fragments(variant))
            if variant != PLAIN:
                drivers.keep_whole(tree)
            if variant == COVERAGE:
                kernel.profile(tree)
        minutes = kernel.FILES * kernel.SECONDS_EACH / (os.cpu_count() or 1) / 60
        with phase("compiling the kernel", f"{max(minutes, 1):.0f} min"):
            kernel.compile_all(tree, folder.parent / "build.log")
        shutil.copy2(tree / "linux", work / "linux")
        ranges = drivers.ranges(tree) if variant != PLAIN else None
        kernel.prune(tree)
        if ranges is not None:
            (tree / drivers.RESULT).write_text(json.dumps(ranges, indent=1) + "\n", encoding="utf-8")


def build(result: Path, ours: dict[str, str], chosen: argparse.Namespace) -> None:
    """Builds the parts that are not in the cache."""
    cache().mkdir(parents=True, exist_ok=True)
    archive = debian.Archive(cache() / "debian")
    if chosen.source:
        source = kernel.named(chosen.source)
        if chosen.sha256 and source.sha256 != chosen.sha256.lower():
            raise BuildError(f"{source.path} has the SHA-256 {source.sha256}, not {chosen.sha256}")
    with phase("fetching Debian's lists of packages"):
        archive.update()
    if not chosen.source:
        with phase("fetching the kernel's source", "170 MB"):
            source = kernel.pinned(archive)
    with phase("fetching the guest's programs", "15 MB"):
        packages = archive.with_libraries(initramfs.PACKAGES)
    built = cache() / name_of_kernel(ours, source.sha256, chosen.variant)
    if chosen.rebuild or not built.exists():
        build_kernel(built, source, chosen.variant)
    with made(result) as work:
        shutil.copy2(built / "linux", work / "linux")
        (work / "build").symlink_to(Path("..", built.name, "build"))
        with phase("building the modules"):
            modules_built = modules.build_all(kernel.make(built / "build"), work / "modules", kernel.environment())
        with phase("building the programs"):
            ours_built = programs.build_all(LINUX, DRIVER, work / "programs")
        with phase("assembling the initial file system"):
            release = kernel.release(built / "build")
            root = initramfs.assemble(packages, LINUX, ours_built, work / "unpacked")
            initramfs.take_the_guests_clock(root, LINUX / "fio_clock.c")
            initramfs.add_modules(root, modules_built)
            initramfs.add_indices(root / "lib/modules" / release)
            content = cpio.archive(root)
            name = "initramfs.cpio.gz" if chosen.compress else "initramfs.cpio"
            (work / name).write_bytes(gzip.compress(content, mtime=0) if chosen.compress else content)
        manifest = {
            "kernel": {"file": "linux", "sha256": debian.sha256(work / "linux")},
            "initramfs": {"file": name, "sha256": debian.sha256(work / name), "bytes": (work / name).stat().st_size},
            "source": {"name": source.name, "sha256": source.sha256},
            "config": {"file": "build/.config", "sha256": debian.sha256(work / "build/.config")},
            "compiler": compiler(),
            "modules": {module.name: debian.sha256(module) for module in modules_built},
            "programs": {program.name: debian.sha256(program) for program in ours_built},
            "packages": [
                dict(zip(("name", "version"), debian.named(p), strict=True), sha256=debian.sha256(p)) for p in packages
            ],
            "inputs": ours,
        }
        (work / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        for left in ("unpacked", "programs", "modules"):
            shutil.rmtree(work / left)


def obtain() -> Path:
    """The result, built if it has to be. Raises `BuildError`, `OSError`."""
    chosen = arguments()
    check_machine()
    source = kernel.named(chosen.source).sha256 if chosen.source else kernel.SHA256
    check_tools(TOOLS)
    ours = inputs(chosen.variant)
    result = cache() / named(ours, source, compiler(), chosen.compress)
    if chosen.where:
        return is_there(result, "the guest is not built yet: make linux")
    build_once(result, lambda: build(result, ours, chosen), again=chosen.rebuild)
    point_to(result, LINKS[chosen.variant])
    return result


if __name__ == "__main__":
    sys.exit(exit_status(obtain))
