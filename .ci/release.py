"""Builds everything that is published into one folder, and checks each file as its users would use it: `make release`.

    source (clean copy) ──▶ sdist ──▶ wheel ──▶ an empty virtual environment: runs, a report, captures, a scan
    crates ──▶ unpacked, with nothing else of the workspace ──▶ an example runs
    libtlp ──▶ tarball and .deb, unpacked elsewhere ──▶ a program in C reads memory from the wheel's adapter
    all ──▶ one version, a section in CHANGELOG.md, SHA256SUMS

The wheel is built from the sdist, so that both are complete. The first check that fails ends the release with status 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import release_checks as checks
from release_checks import ReleaseError, ran

ROOT = Path(__file__).resolve().parent.parent
TOOLS = {
    "cargo": "https://rustup.rs",
    "cc": "apt-get install gcc",
    "pkg-config": "apt-get install pkg-config",
    "readelf": "apt-get install binutils",
    "dpkg-deb": "apt-get install dpkg",
    "dpkg-shlibdeps": "apt-get install dpkg-dev",
}
CRATES = re.compile(r"^PACKAGES := (.*)$", re.MULTILINE)
MATURIN = str(Path(sys.executable).with_name("maturin"))
# Of which there are wheels.
MACHINES = ("x86_64", "aarch64")
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")


@dataclass
class Release:
    """The files that are built, their version and their folder."""

    version: str
    profile: str
    out: Path
    work: Path
    """Folders that are not kept."""
    epoch: int
    """The commit's time, which files in archives get."""
    others: list[str]
    """Processors besides this machine's that get a wheel."""
    files: list[Path] = field(default_factory=list)

    @property
    def target(self) -> Path:
        """The folder in which cargo builds the copies, separate from the workspace's own builds, which cargo would take for fresh."""
        return built() / "release-copies"

    @property
    def machine(self) -> str:
        """The processor, as wheels and tarballs call it."""
        return platform.machine()

    def publish(self, file: Path) -> Path:
        """Adds a file to the release."""
        there = self.out / file.name
        if file.resolve() != there.resolve():
            shutil.copyfile(file, there)
        self.files.append(there)
        return there


def main() -> int:
    """The command; see --help."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the files (default: dist)")
    parser.add_argument("--profile", default="release", help="cargo's profile; dev is quicker to build")
    parser.add_argument("--check-only", action="store_true", help="check version, changelog and tag, and build nothing")
    parser.add_argument("--here-only", action="store_true", help="no wheels for other processors")
    arguments = parser.parse_args()
    try:
        version = checks.versions(ROOT)
        if not arguments.check_only:
            checks.tools(TOOLS)
            others = [] if arguments.here_only else other_machines()
            build(version, arguments.profile, arguments.out.resolve(), others)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def build(version: str, profile: str, out: Path, others: list[str]) -> None:
    """Builds and checks all of it."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("tlplab*"), *out.glob("libtlp*"), out / "SHA256SUMS"]:
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="tlplab-release-") as work:
        release = Release(version, profile, out, Path(work), commit_time(), others)
        tlplab = checks.in_empty_environment(python_packages(release), version, ROOT, release.work / "empty")
        crates(release)
        tarball, deb = c_library(release)
        checks.c_library(tarball, deb, version, ROOT / "examples/c/gather.c", tlplab, release.work / "c")
        sums(release)
    print(f"tlplab {version} is in {out}:")
    for file in [*sorted(release.files), out / "SHA256SUMS"]:
        print(f"  {file.name:60} {file.stat().st_size / 1e6:8.2f} MB")


def built() -> Path:
    """The folder in which cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def commit_time() -> int:
    """Seconds since 1970 of the commit, or of SOURCE_DATE_EPOCH."""
    if told := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(told)
    return int(ran(["git", "log", "-1", "--format=%ct"], ROOT))


def make(release: Release, *targets: str) -> None:
    """Runs targets of the Makefile."""
    ran(["make", "--no-print-directory", f"RUST_PROFILE={release.profile}", *targets], ROOT)


def clean_copy(release: Release) -> Path:
    """The files of the working tree that git tracks, as a folder; the package has the experiments, which in a clone are in the root."""
    folder = release.work / "source"
    for name in ran(["git", "ls-files", "-z"], ROOT).split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copytree(folder / "experiments", folder / "python/tlplab/experiments")
    return folder


def python_packages(release: Release) -> Path:
    """The sdist, and the wheels that are built from it. Gives the wheel for this machine."""
    ran([MATURIN, "sdist", "--out", str(release.work / "sdist")], clean_copy(release))
    sdist = release.publish(next((release.work / "sdist").glob("tlplab-*.tar.gz")))
    checks.same_version(sdist.name, sdist.name.removesuffix(".tar.gz").removeprefix("tlplab-"), release.version)
    unpacked = unpack(sdist, release.work / "from-sdist")
    for machine in release.others:
        checks.wheel(wheel(release, unpacked, machine), release.version, machine, release.work / machine)
    own = wheel(release, unpacked, release.machine)
    checks.wheel(own, release.version, release.machine, release.work / release.machine)
    return own


def wheel(release: Release, unpacked: Path, machine: str) -> Path:
    """The wheel for a processor. Zig links it, as it has the symbols of old C libraries, and of other processors."""
    folder = release.work / f"wheel-{machine}"
    how = ["--quiet", "--locked", "--zig", "--target", f"{machine}-unknown-linux-gnu", "--profile", release.profile]
    ran(
        [MATURIN, "build", *how, "--out", str(folder)],
        unpacked,
        CARGO_TARGET_DIR=str(release.target),
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    )
    return release.publish(next(folder.glob("tlplab-*.whl")))


def other_machines() -> list[str]:
    """Processors besides this one for which Rust is installed; the others are named."""
    found = []
    for machine in MACHINES:
        if machine == platform.machine():
            continue
        target = f"{machine}-unknown-linux-gnu"
        libraries = Path(ran(["rustc", "--print", "target-libdir", "--target", target], ROOT).strip())
        if libraries.is_dir():
            found.append(machine)
        else:
            print(
                f"skipped: the wheel for {machine} needs `rustup target add {target}`; without it, users build the sdist"
            )
    return found


def unpack(archive: Path, folder: Path) -> Path:
    """The folder that an archive holds. Its files are new, as cargo goes by their times."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    for path in folder.rglob("*"):
        os.utime(path)
    (top,) = folder.iterdir()
    return top


def crates(release: Release) -> None:
    """The crates as packages; an example of the crate tlplab is built of them alone, and run."""
    make(release, "package")
    found = CRATES.search((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert found, "the Makefile lists the crates"
    folders = {}
    for name in found[1].split():
        crate = built() / f"package/{name}-{release.version}.crate"
        folders[name] = unpack(release.publish(crate), release.work / "crates" / name)
    patches = [f'--config=patch.crates-io.{name}.path="{path}"' for name, path in folders.items() if name != "tlplab"]
    shutil.copy(ROOT / "Cargo.lock", folders["tlplab"])
    manifest = str(folders["tlplab"] / "Cargo.toml")
    command = ["cargo", "run", "--quiet", "--manifest-path", manifest, "--example", "two_devices", *patches]
    printed = ran(command, release.work, CARGO_TARGET_DIR=str(release.target))
    checks.expect("Gb/s" in printed, "the example two_devices of the crate tlplab prints no rate", printed)
    print(f"ok  {len(folders)} crates: two_devices runs")


def c_library(release: Release) -> tuple[Path, Path]:
    """libtlp as a tarball that may be unpacked anywhere, and as a package of Debian."""
    name = f"libtlp-{release.version}-{release.machine}-linux"
    folder = release.work / name
    make(release, "install-lib", f"PREFIX={folder}", "DESTDIR=")
    for library, level in ((f"libtlp.so.{release.version}", "--strip-unneeded"), ("libtlp.a", "--strip-debug")):
        ran(["strip", level, str(folder / "lib" / library)])
    pkg_config = folder / "lib/pkgconfig/libtlp.pc"
    relocate(pkg_config, "${pcfiledir}/../..", "${prefix}/lib")
    for licence in LICENCES:
        shutil.copy(ROOT / licence, folder)
    tarball = release.work / f"{name}.tar.gz"
    ran(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{release.epoch}", "-czf", str(tarball), name], release.work)  # fmt: skip
    deb = debian(release, folder)
    # Which the checks must not find.
    shutil.rmtree(folder)
    return release.publish(tarball), release.publish(deb)


def relocate(pkg_config: Path, prefix: str, libraries: str) -> None:
    """Changes where a pkg-config file says that its library is."""
    text = pkg_config.read_text(encoding="utf-8")
    text = re.sub(r"^prefix=.*$", lambda _: f"prefix={prefix}", text, flags=re.MULTILINE)
    text = re.sub(r"^libdir=.*$", lambda _: f"libdir={libraries}", text, flags=re.MULTILINE)
    pkg_config.write_text(text, encoding="utf-8")


def debian(release: Release, installed: Path) -> Path:
    """The .deb of an installed library; its dependencies are found from the symbols that it needs."""
    architecture = ran(["dpkg", "--print-architecture"]).strip()
    multiarch = ran(["cc", "-print-multiarch"]).strip() or f"{release.machine}-linux-gnu"
    package = release.work / "deb"
    libraries = package / "usr/lib" / multiarch
    shutil.copytree(installed / "lib", libraries, symlinks=True)
    shutil.copytree(installed / "include", package / "usr/include")
    relocate(libraries / "pkgconfig/libtlp.pc", "/usr", f"${{prefix}}/lib/{multiarch}")
    documents = package / "usr/share/doc/libtlp"
    documents.mkdir(parents=True)
    texts = [(ROOT / licence).read_text(encoding="utf-8") for licence in LICENCES]
    (documents / "copyright").write_text("\n\n".join(["MIT or Apache-2.0, at your choice.", *texts]), encoding="utf-8")
    for path in [package, *package.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        elif not path.is_symlink() and ".so" not in path.name:
            path.chmod(0o644)
    control = package / "DEBIAN"
    control.mkdir()
    (control / "triggers").write_text("activate-noawait ldconfig\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) // 1024
    (control / "control").write_text(
        f"Package: libtlp\nVersion: {release.version}\nArchitecture: {architecture}\nMaintainer: tlplab developers\n"
        f"Depends: {depends(release, libraries)}\nSection: libdevel\nPriority: optional\nInstalled-Size: {size}\n"
        "Homepage: https://github.com/tlplab/tlplab\n"
        "Description: PCI Express devices in software, over NetTLP\n"
        " Shared and static library, headers and pkg-config file.\n",
        encoding="utf-8",
    )
    deb = release.work / f"libtlp_{release.version}_{architecture}.deb"
    ran(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(package), str(deb)],
        SOURCE_DATE_EPOCH=str(release.epoch),
    )
    return deb


def depends(release: Release, libraries: Path) -> str:
    """The packages that the shared library needs, as dpkg-shlibdeps finds them."""
    folder = release.work / "shlibdeps"
    (folder / "debian").mkdir(parents=True)
    (folder / "debian/control").write_text("Source: libtlp\n\nPackage: libtlp\nArchitecture: any\n", encoding="utf-8")
    library = next(path for path in libraries.glob("libtlp.so.*") if not path.is_symlink())
    printed = ran(["dpkg-shlibdeps", "-O", str(library)], folder)
    return printed.strip().removeprefix("shlibs:Depends=")


def sums(release: Release) -> None:
    """SHA256SUMS, as `sha256sum -c` reads it."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(release.files)]
    (release.out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    ran(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], release.out)
    print(f"ok  SHA256SUMS of {len(lines)} files")


if __name__ == "__main__":
    sys.exit(main())
