"""`linux/guest-tools`: QEMU, a distribution's kernel and an initial file system for guests that are ordinary machines, or finds them in the cache."""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from . import cpio, debian, headers, initramfs, kernel, modules, programs
from .cache import build_once, cache, check_machine, check_tools, exit_status, is_there, made, named, point_to
from .report import BuildError, need_space, phase, run

LINUX = Path(__file__).resolve().parent.parent
ROOT = LINUX.parent
DRIVER = modules.DRIVERS / "tlpdma"
# Each program that the build runs, and the Debian package it is in.
TOOLS = {
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "g++": "g++",
    "gcc": "gcc",
    "make": "make",
    "perl": "perl",
    "readelf": "binutils",
    "strip": "binutils",
    "tar": "tar",
}
SPACE_GB = 1.8
# The link in the cache that points to the last result.
LINK = "machine"
# The release that has a QEMU with vfio-user, and its packages; others are only for boards, sound and graphics.
RELEASE = f"{debian.RELEASE}-backports"
QEMU = (f"qemu-system-x86/{RELEASE}", f"qemu-system-common/{RELEASE}", f"qemu-system-data/{RELEASE}", "seabios")
FIRST_WITH_VFIO_USER = (10, 1)
PROGRAM = "qemu-system-x86_64"
# The kernel for ordinary machines: with drivers of network cards, VFIO and IOMMUs, which that for clouds has not.
KERNEL = f"linux-image-amd64/{RELEASE}"
# Its drivers that the guest gets, with the modules that these need.
DRIVERS = (
    "9p",
    "9pnet_virtio",
    "e1000e",
    "ext4",
    "macvlan",
    "nvme",
    "tun",
    "uio_pci_generic",
    "vfio-pci",
    "vfio_iommu_type1",
)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="linux/guest-tools", description="Fetches QEMU and a guest for it: linux/README.md."
    )
    parser.add_argument("--where", action="store_true", help="print the folder of the result, if it is there, and stop")
    parser.add_argument("--rebuild", action="store_true", help="fetch the newest packages and build again")
    return parser.parse_args()


def inputs() -> dict[str, str]:
    """The hash of each file of ours that the result depends on."""
    files = [
        LINUX / "init",
        LINUX / "fstab",
        *LINUX.glob("builder/*.py"),
        *programs.sources(LINUX, DRIVER),
        *modules.sources(),
    ]
    return {str(path.relative_to(ROOT)): debian.sha256(path) for path in sorted(files)}


def installed_qemu() -> str | None:
    """This machine's QEMU, if it has devices by vfio-user."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\d+)\.(\d+)", said)
    return program if version and (int(version[1]), int(version[2])) >= FIRST_WITH_VFIO_USER else None


def unpack_qemu(packages: Iterable[Path], folder: Path) -> list[str]:
    """Unpacks QEMU with its libraries; the command, of paths relative to the folder of the result."""
    for package in packages:
        debian.unpack(package, folder)
    name = folder.name
    libraries = [f"{name}/{path}" for path in ("usr/lib/x86_64-linux-gnu", "usr/lib64")]
    data = [part for path in ("qemu", "seabios") for part in ("-L", f"{name}/usr/share/{path}")]
    return [f"{name}/{initramfs.LOADER}", "--library-path", ":".join(libraries), f"{name}/usr/bin/{PROGRAM}", *data]


def newest_kernel(archive: debian.Archive) -> str:
    """The release of the newest kernel, as `7.3.4+deb13-amd64`."""
    image = next((name for name in archive.dependencies(KERNEL) if re.match(r"linux-image-\d", name)), None)
    if image is None:
        raise BuildError(f"Debian's archive has no {KERNEL}; check that the mirror is complete")
    return image.removeprefix("linux-image-")


def kernel_packages(archive: debian.Archive, kernel: str) -> list[str]:
    """The packages with the kernel and with its modules, which are one in older releases."""
    image = f"linux-image-{kernel}"
    parts = [
        name
        for name in archive.dependencies(f"{image}/{RELEASE}")
        if name.startswith(("linux-binary-", "linux-modules-"))
    ]
    return [f"{name}/{RELEASE}" for name in parts or [image]]


class Modules:
    """A kernel's modules, by name."""

    def __init__(self, folder: Path) -> None:
        """The modules in a folder `lib/modules/RELEASE`, which may be compressed."""
        self.folder = folder
        self.files = {self.name_of(path): path for path in folder.rglob("*.ko*")}

    @staticmethod
    def name_of(path: Path) -> str:
        """As the kernel calls it."""
        return path.name.partition(".ko")[0].replace("-", "_")

    def copy(self, names: Iterable[str], to: Path) -> None:
        """Copies modules, with their dependencies, and the tables from which modprobe knows dependencies and devices."""
        needs: dict[str, list[str]] = {}
        aliases = []
        waiting = [name.replace("-", "_") for name in names]
        while waiting:
            name = waiting.pop()
            if name in needs:
                continue
            if name not in self.files:
                raise BuildError(f"the kernel has no module {name}; change DRIVERS in linux/builder/machine.py")
            place = to / "kernel" / f"{name}.ko"
            place.parent.mkdir(parents=True, exist_ok=True)
            source = self.files[name]
            place.write_bytes(lzma.decompress(source.read_bytes()) if source.suffix == ".xz" else source.read_bytes())
            told_by = run(["readelf", "-p", ".modinfo", place])
            needs[name] = [one.replace("-", "_") for one in self.told(told_by, "depends").split(",") if one]
            aliases += [f"alias {alias} {name}" for alias in re.findall(r"\] +alias=(\S+)", told_by)]
            waiting += needs[name]
        lines = [
            f"kernel/{name}.ko:" + "".join(f" kernel/{one}.ko" for one in self.all_of(name, needs))
            for name in sorted(needs)
        ]
        (to / "modules.dep").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (to / "modules.alias").write_text("\n".join(sorted(aliases)) + "\n", encoding="utf-8")

    @staticmethod
    def told(modinfo: str, key: str) -> str:
        """The value of a key in the output of modinfo, or an empty string."""
        found = re.search(rf"\] +{key}=(\S*)", modinfo)
        return found[1] if found else ""

    @staticmethod
    def all_of(name: str, needs: dict[str, list[str]]) -> list[str]:
        """The modules that a module needs, each followed by its own needs."""
        found: list[str] = []
        waiting = list(needs[name])
        while waiting:
            one = waiting.pop(0)
            # What is needed twice is loaded before both.
            if one in found:
                found.remove(one)
            found.append(one)
            waiting += needs[one]
        return found


def unpack_headers(packages: Iterable[Path]) -> Path:
    """Unpacks a kernel's headers in the cache, unless they are there; the folder for `make -C`."""
    by = (LINUX / "builder/headers.py").read_text("utf-8")
    folder = cache() / f"headers-{named(sorted(path.name for path in packages), by)}"
    if not folder.exists():
        with phase("unpacking the kernel's headers"), made(folder) as work:
            headers.unpack(packages, work, folder)
    return headers.build_in(folder)


def build_ours(tree: Path, work: Path) -> tuple[list[Path], list[Path]]:
    """Builds our modules, against unpacked headers, and programs."""
    # The compiler of the distribution's kernel is another one than this machine's, as a rule, which Debian's makefile would refuse.
    command = ["make", "-C", str(tree), f"-j{os.cpu_count() or 1}", "CC=gcc"]
    with phase("building the modules"):
        built = modules.build_all(command, work / "modules", kernel.environment())
    with phase("building the programs"):
        return built, programs.build_all(LINUX, DRIVER, work / "programs")


def build(result: Path, ours: dict[str, str]) -> None:
    """Fetches and assembles the parts that are not in the cache."""
    need_space(cache(), SPACE_GB)
    packages = debian.Archive(cache() / "debian")
    with phase("fetching Debian's lists of packages"):
        packages.update()
    program = installed_qemu()
    qemu: list[Path] = []
    if program is None:
        with phase("fetching QEMU", "40 MB"):
            qemu = packages.with_libraries(QEMU, without=())
    with phase("fetching the guest's kernel", "135 MB"):
        newest = newest_kernel(packages)
        of_kernel = packages.download(kernel_packages(packages, newest))
        against = headers.packages(packages, newest, RELEASE)
    with phase("fetching the guest's programs", "15 MB"):
        wanted = packages.with_libraries(initramfs.PACKAGES)
    with made(result) as work:
        command = [program] if program is not None else unpack_qemu(qemu, work / "qemu")
        tree = unpack_headers(against)
        (work / "build").symlink_to(Path("..", tree.relative_to(cache())))
        made_modules, made_programs = build_ours(tree, work / "ours")
        with phase("assembling the initial file system"), tempfile.TemporaryDirectory(dir=work) as scratch:
            for package in of_kernel:
                debian.unpack(package, Path(scratch) / "kernel")
            folder = next((Path(scratch) / "kernel/usr/lib/modules").iterdir())
            image = next(path for path in (Path(scratch) / "kernel").rglob("vmlinuz*") if path.is_file())
            shutil.copy2(image, work / "vmlinuz")
            root = initramfs.assemble(wanted, LINUX, made_programs, Path(scratch) / "unpacked")
            initramfs.add_modules(root, made_modules)
            place = root / "lib/modules" / folder.name
            Modules(folder).copy(DRIVERS, place)
            initramfs.add_indices(place)
            (work / "initramfs.cpio").write_bytes(cpio.archive(root))
        manifest = {
            "qemu": command,
            "kernel": {"file": "vmlinuz", "sha256": debian.sha256(work / "vmlinuz"), "release": folder.name},
            "initramfs": {"file": "initramfs.cpio", "sha256": debian.sha256(work / "initramfs.cpio")},
            "packages": [
                dict(zip(("name", "version"), debian.named(p), strict=True), sha256=debian.sha256(p))
                for p in sorted({*qemu, *of_kernel, *against, *wanted})
            ],
            "inputs": ours,
        }
        shutil.rmtree(work / "ours")
        (work / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def obtain() -> Path:
    """The result, fetched if it has to be. Raises `BuildError`, `OSError`."""
    chosen = arguments()
    check_machine()
    check_tools(TOOLS)
    ours = inputs()
    result = cache() / f"machine-{named(ours, installed_qemu())}"
    if chosen.where:
        return is_there(result, "QEMU and its guest are not here yet: make guest-tools")
    build_once(result, lambda: build(result, ours), again=chosen.rebuild)
    point_to(result, LINK)
    return result


if __name__ == "__main__":
    sys.exit(exit_status(obtain))
