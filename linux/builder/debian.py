"""Packages of Debian 13, with a state of apt's own: nothing on this machine changes, and Debian 12 can use them, too.

apt checks the signatures and the hash of each package.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterable, Sequence
from pathlib import Path

from .report import BuildError, run

RELEASE = "trixie"
MIRROR = "http://deb.debian.org/debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Since 3.16 iperf3 has threads that wait for each other without a system call, in which no virtual time passes. Debian 12's is older.
OLDER = "bookworm"
FROM_OLDER = {"iperf3", "libiperf0"}
# Its library is in libssl3t64, too, which the newer programs bring.
REPLACED = {"libssl3"}
# Packages with libraries of storage clusters and networks that fio can use, 60 MB that no test here needs, with the names of the
# library and of its functions. initramfs.py stands in for them.
LEFT_OUT = {
    "libgfapi0": ("libgfapi", "glfs_"),
    "libibverbs1": ("libibverbs", "ibv_"),
    "libnbd0": ("libnbd", "nbd_"),
    "libnfs14": ("libnfs", "nfs_"),
    "libpmem1": ("libpmem", "pmem_"),
    "librados2": ("librados", "rados_"),
    "librbd1": ("librbd", "rbd_"),
    "librdmacm1t64": ("librdmacm", "rdma_"),
}


def sha256(path: Path) -> str:
    """The hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


class Archive:
    """Debian's archive as apt sees it from a folder that is ours."""

    def __init__(self, folder: Path) -> None:
        """Nothing is fetched yet."""
        self.folder = folder
        self.packages = folder / "packages"
        options = {
            "Dir::State": folder / "state",
            "Dir::State::lists": folder / "state/lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": folder / "sources.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::Etc::Preferences": "-",
            "Dir::Etc::PreferencesParts": "-",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        self.options = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]

    def update(self) -> None:
        """Fetches the lists of packages."""
        if not KEYRING.exists():
            raise BuildError(f"{KEYRING} is missing, which holds Debian's keys; install debian-archive-keyring")
        for part in ("state/lists/partial", "cache/archives/partial", "packages"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        lines = [
            f"deb [signed-by={KEYRING}] {MIRROR} {suite} main" for suite in (RELEASE, f"{RELEASE}-backports", OLDER)
        ]
        (self.folder / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(
            ["apt-get", *self.options, "-qq", "-o", "APT::Update::Error-Mode=any", "update"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
            raise BuildError(
                f"Debian's lists of packages are not available from {MIRROR}; check the network. "
                f"apt-get says: {said[0][3:] if said else done.stderr.strip()}"
            )

    def versions(self, package: str) -> list[str]:
        """The versions there are, newest first."""
        lines = run(["apt-cache", *self.options, "madison", package]).splitlines()
        return [line.split("|")[1].strip() for line in lines]

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Fetches packages, NAME, NAME=VERSION or NAME/RELEASE, that are not here already; their files."""
        lines = run(["apt-get", *self.options, "-qq", "--print-uris", "download", *packages]).splitlines()
        # In apt's order, not in ours.
        files = {name.split("_")[0]: self.packages / name for name in (line.split()[1] for line in lines)}
        paths = [files[re.split("[=/]", package)[0]] for package in packages]
        missing = [package for package, path in zip(packages, paths, strict=True) if not path.exists()]
        if missing:
            run(["apt-get", *self.options, "-qq", "download", *missing], cwd=self.packages)
        return paths

    def dependencies(self, package: str) -> list[str]:
        """The packages that a package depends on, by name."""
        lines = run(["apt-cache", *self.options, "depends", package]).splitlines()
        return [line.split()[1] for line in lines if line.strip().startswith(("Depends:", "PreDepends:"))]

    def with_libraries(self, packages: Iterable[str], without: Iterable[str] = LEFT_OUT) -> list[Path]:
        """Packages and the libraries that they depend on, without other packages that they would drag in, and without `without`."""
        waiting = set(packages)
        files: dict[str, Path] = {}
        while waiting:
            names = sorted(waiting)
            wanted = [f"{name}/{OLDER}" if name in FROM_OLDER else name for name in names]
            files.update(zip(names, self.download(wanted), strict=True))
            libraries = {library for name in names for library in libraries_of(files[name])}
            waiting = libraries - files.keys() - REPLACED - set(without)
        return sorted(files.values())


def libraries_of(package: Path) -> set[str]:
    """The libraries that a package depends on, as packages."""
    fields = run(["dpkg-deb", "-f", package, "Depends", "Pre-Depends"])
    names = re.findall(r"(?:[:,] )([a-z0-9][a-z0-9.+-]+)", fields)
    return {name for name in names if name.startswith(("lib", "zlib"))}


def named(path: Path) -> tuple[str, str]:
    """Name and version of a package, from its file's name."""
    package, version, _ = urllib.parse.unquote(path.name).split("_")
    return package, version


def unpack(package: Path, root: Path) -> None:
    """Unpacks a package in a folder. Merged /usr is made so first, as packages expect it."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as packed:
        run(["tar", "-x", "--no-same-owner", "--keep-directory-symlink", "-C", root], stdin=packed.stdout)
    if packed.returncode:
        raise BuildError(f"{package} is not a package, or is damaged; remove it and try again")


def lacking(tools: dict[str, str]) -> list[str]:
    """The packages of the tools, by name, that are not installed."""
    return sorted({package for tool, package in tools.items() if not shutil.which(tool)})
