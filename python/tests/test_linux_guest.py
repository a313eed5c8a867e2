"""`make linux`: its messages when it cannot build, its results, and a guest that keeps the simulation's time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guest_fabric
import pytest
from privilege import lacking

from linux.builder import cache as builds
from linux.builder import cpio, debian, initramfs, kernel, programs, report

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted((ROOT / "linux/patches").glob("*.patch"))


def build(*options: str, cache: Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    """Calls linux/build with a cache of its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PATH": path, "PYTHON": sys.executable}
    return subprocess.run(
        [ROOT / "linux/build", *options], env=environment, capture_output=True, text=True, check=False, timeout=600
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The sentence with which a build ended."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def guest() -> Path:
    """The guest, where it is built."""
    done = subprocess.run([ROOT / "linux/build", "--where"], capture_output=True, text=True, check=False)
    if done.returncode:
        lacking(f"the guest is not built: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def test_a_tarball_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no such file" in refused(build("--source", "none.tar.xz", cache=tmp_path))


def test_a_missing_tool_is_named_with_its_package(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", *(t for t in ("gcc", "make", "tar") if shutil.which(t))):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    sentence = refused(build(cache=tmp_path, path=str(tools)))
    assert "bison" in sentence
    assert "apt-get install" in sentence


def test_a_full_tree_of_names_is_one_archive(tmp_path: Path) -> None:
    (tmp_path / "root/bin").mkdir(parents=True)
    (tmp_path / "root/bin/x").write_bytes(b"12345")
    (tmp_path / "root/bin/x").chmod(0o755)
    (tmp_path / "root/bin/y").symlink_to("x")
    first = cpio.archive(tmp_path / "root", {"bin/null": (1, 3)})
    os.utime(tmp_path / "root/bin/x", (1, 1))
    assert cpio.archive(tmp_path / "root", {"bin/null": (1, 3)}) == first
    listing = shutil.which("cpio")
    if listing is None:
        lacking("cpio is not installed")
    shown = subprocess.run([listing, "-tv", "--numeric-uid-gid"], input=first, capture_output=True, check=True)
    lines = [line.split() for line in shown.stdout.decode().splitlines()]
    assert [(line[0], line[2], line[3]) for line in lines] == [
        ("drwxr-xr-x", "0", "0"),
        ("crw-rw-rw-", "0", "0"),
        ("-rwxr-xr-x", "0", "0"),
        ("lrwxrwxrwx", "0", "0"),
    ]
    assert [line[-1] for line in lines] == ["bin", "bin/null", "bin/x", "x"]


def test_subsystems_are_left_out_of_the_names() -> None:
    ids = "# comment\n\n8086  Intel\n\t10d3  82574L\n\t\t8086 a01f  CT Desktop\nC 01  Storage\n\t08  NVM\n\t\t02  NVM Express\n"
    assert initramfs.trimmed(ids) == "8086  Intel\n\t10d3  82574L\nC 01  Storage\n\t08  NVM\n\t\t02  NVM Express\n"


def test_the_kernel_configuration_is_parsed_by_lines() -> None:
    lines = 'CONFIG_A=y\n# CONFIG_B is not set\n# a remark\nCONFIG_C="x"\n'
    assert kernel.wanted(lines) == {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": '"x"'}


def test_a_bad_tarball_and_a_bad_hash(tmp_path: Path) -> None:
    junk, other = tmp_path / "junk.tar", tmp_path / "other.tar"
    junk.write_bytes(b"junk" * 1000)
    with tarfile.open(other, "w") as file:
        file.add(ROOT / "README.md", "linux/README.md")
    assert "junk.tar is not a tarball" in refused(build("--source", str(junk), cache=tmp_path))
    digest = hashlib.sha256(other.read_bytes()).hexdigest()
    sentence = refused(build("--source", str(other), "--sha256", "00" * 32, cache=tmp_path))
    # Before the hash is looked at, tools may be missing.
    assert f"has the SHA-256 {digest}, not {'00' * 32}" in sentence or sentence.startswith("linux: missing: ")
    with pytest.raises(report.BuildError, match="is not a kernel's source"):
        kernel.unpack(kernel.named(other), tmp_path / "tree")


def test_a_build_that_fails_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = builds.cache()
    folder.mkdir(parents=True)
    # Of one that was killed.
    (folder / "kernel-0123.partial/build").mkdir(parents=True)
    (folder / "current.partial").symlink_to("nowhere")
    result = folder / "kernel-4567"

    def fail() -> None:
        with builds.made(result) as work:
            (work / "half").write_text("half")
            raise report.BuildError("the compiler is tired")

    def succeed() -> None:
        with builds.made(result) as work:
            (work / builds.MANIFEST).write_text("{}")

    with pytest.raises(report.BuildError, match="tired"):
        builds.build_once(result, fail, again=False)
    assert sorted(path.name for path in folder.iterdir()) == ["lock"]
    builds.build_once(result, succeed, again=False)
    # A build that fails later leaves the one before.
    with pytest.raises(report.BuildError, match="tired"):
        builds.build_once(result, fail, again=True)
    assert sorted(path.name for path in folder.iterdir()) == ["kernel-4567", "lock"]
    assert (result / builds.MANIFEST).exists()


def test_builds_that_end_together_point_to_their_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds that wait for one another end at the same moment, while a third begins and clears the remains of killed ones."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = builds.cache() / "kernel-0123"
    result.mkdir(parents=True)

    def point(name: str) -> None:
        for _ in range(200):
            builds.point_to(result, name)
            with builds.alone():
                pass

    with ThreadPoolExecutor() as builders:
        list(builders.map(point, ["current", "current", "machine"]))
    assert sorted(path.name for path in builds.cache().iterdir()) == ["current", "kernel-0123", "lock", "machine"]
    assert (builds.cache() / "current").resolve() == result


@pytest.mark.full
def test_the_patches_apply_in_order(tmp_path: Path) -> None:
    """To the source in the cache; without fuzz, as the build applies them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlplab/linux/debian/packages"
    found = sorted(cache.glob("linux-source-7.*.deb"))
    if not found:
        lacking("no source of the kernel in the cache: make linux")
    for package in found:
        tree = tmp_path / package.stem
        tree.mkdir()
        name, _ = debian.named(package)
        unpacked = f"dpkg-deb --fsys-tarfile '{package}' | tar -xO ./usr/src/{name}.tar.xz"
        only = f"tar -xJ -C '{tree}' --strip-components=1 --wildcards '*/arch/um/*'"
        subprocess.run(["bash", "-ec", f"{unpacked} | {only}"], check=True)
        kernel.patch(tree, PATCHES)


@pytest.mark.full
def test_the_manifest_lists_files_packages_and_inputs(guest: Path) -> None:
    manifest = json.loads((guest / "manifest.json").read_text(encoding="utf-8"))
    for part in ("kernel", "initramfs", "config"):
        assert manifest[part]["sha256"] == debian.sha256(guest / manifest[part]["file"])
    assert manifest["initramfs"]["bytes"] < 40e6
    assert {"tlpdma.ko", "mmio_latency.ko"} <= manifest["modules"].keys()
    assert {"config-latency", "tlpdma-compare", "tlpdma-test", "tlpdma-device-test"} == manifest["programs"].keys()
    assert {"busybox-static", "fio", "libc6"} <= {package["name"] for package in manifest["packages"]}
    for file, digest in manifest["inputs"].items():
        assert debian.sha256(ROOT / file) == digest


@pytest.mark.full
def test_the_initial_file_system_is_the_same_each_time(guest: Path, tmp_path: Path) -> None:
    packages = sorted((guest.parent / "debian/packages").glob("*.deb"))
    wanted = {(p["name"], p["version"]) for p in json.loads((guest / "manifest.json").read_text())["packages"]}
    packages = [package for package in packages if debian.named(package) in wanted]
    roots = [initramfs.assemble(packages, ROOT / "linux", [], tmp_path / name) for name in ("a", "b")]
    assert cpio.archive(roots[0]) == cpio.archive(roots[1])


@pytest.mark.full
def test_our_programs_are_the_same_each_time(tmp_path: Path) -> None:
    """And need no library of the guest."""
    both = [programs.build_all(ROOT / "linux", ROOT / "driver/tlpdma", tmp_path / name) for name in ("a", "b")]
    assert [path.read_bytes() for path in both[0]] == [path.read_bytes() for path in both[1]]
    assert [initramfs.needed(path) for path in both[0]] == [[]] * len(both[0])


@pytest.mark.full
@pytest.mark.parametrize(("latency", "count"), [(713, 1000), (7_300_001, 40)])
def test_a_read_takes_the_simulated_time(guest: Path, tmp_path: Path, latency: int, count: int) -> None:
    """Also when timers become due while the processor is stalled: a tick is 10 ms."""
    script = f"insmod /lib/modules-tlplab/mmio_latency.ko device=0000:00:01.0 offset=0x10 count={count}\n"
    script += "cat /sys/kernel/debug/mmio_latency/*\nsleep 1\ncat /proc/uptime; exit 7"
    said, clock = guest_fabric.boot(guest, tmp_path, guest_fabric.Function(latency), script)
    numbers = said.split()
    # Each read; then max, median, min, sum and value, in the order of their names.
    assert numbers[:count] == [str(latency)] * count
    assert numbers[count : count + 4] == [str(latency)] * 3 + [str(latency * count)]
    assert int(numbers[count + 4], 16) == 0x13121110
    # In hundredths of a second.
    assert float(numbers[count + 5]) >= 1 + latency * count / 1e9 - 0.01
    assert clock.heard == [0x746C7000 + 7]


@pytest.mark.full
def test_two_runs_are_the_same(guest: Path, tmp_path: Path) -> None:
    script = "dmesg; lspci -vv; cat /proc/uptime /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | od -x; fio --version"
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        function = guest_fabric.Function(713)
        runs.append(guest_fabric.boot(guest, tmp_path / name, function, script, "um_syscall_ns=200")[0])
    assert runs[0] == runs[1]
    assert re.search("[0-9a-f]{8}-[0-9a-f]{4}-", runs[0])
