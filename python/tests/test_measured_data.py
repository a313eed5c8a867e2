"""The whole data of pcie-bench, which does not come with tlplab: TLPLAB_DATA names the folder that holds `pciebench/`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tlplab import _core, cli
from tlplab.bench.calibration.dataset import read_dataset
from tlplab.bench.calibration.hosts import shipped_for
from tlplab.bench.calibration.pauses import Pauses
from tlplab.bench.calibration.predict import planned
from tlplab.bench.calibration.states import labels_of

DATA = Path(os.environ.get("TLPLAB_DATA", "")) / "pciebench"
pytestmark = pytest.mark.skipif(
    not (os.environ.get("TLPLAB_DATA") and DATA.is_dir()),
    reason="TLPLAB_DATA does not name a folder that holds pciebench/, the data sets of pcie-bench",
)
ROOT = Path(__file__).resolve().parents[2]
T630 = "hsw-Xeon-E5-2620v3_dell-t630"
SUPERMICRO = "hsw-Xeon-E5-2637v3_supermicro"
IVY = "ib-Xeon-E5-2620v2_dell-t620"
SHIPPED = {
    "xeon-e5-2620v3": (T630, f"{T630}-iommu-nosp"),
    "xeon-e5-2637v3": (SUPERMICRO, f"{SUPERMICRO}-iommu-nosp"),
    "xeon-e5-2620v2": (f"{IVY}-s0-s0-s0", f"{IVY}-s0-s1-s1"),
    "xeon-e5-2630": ("snb-Xeon-E5-2630_dell-t620",),
}


def test_every_data_set_is_read_and_has_a_host() -> None:
    folders = sorted(path for path in DATA.iterdir() if path.is_dir())
    sets = [read_dataset(folder) for folder in folders]
    servers = [data for data in sets if not data.tailed]
    assert {shipped_for(data) for data in servers} == set(SHIPPED)
    assert sum(len(data.points()) for data in servers) == 18096
    kinds = [plan.kind for plan in planned(servers)]
    assert (kinds.count("bandwidth"), kinds.count("IOMMU")) == (8, 2)


def test_the_desktop_machine_is_asleep_by_its_latencies() -> None:
    [data] = [one for one in map(read_dataset, DATA.glob("hsw-Xeon-E3-*")) if one.tailed]
    pauses = Pauses(data, labels_of(data))
    assert (pauses.asleep, pauses.awake) == ("dma", "command")
    [plan] = planned([data])
    assert plan.kind == "halves"
    assert not {one.name for one in plan.own[0].series} & {one.name for one in plan.data.series}


@pytest.mark.full
def test_the_page_of_the_hosts_matches_the_output_of_validate(tmp_path: Path) -> None:
    # In the order of the shell's `*/`.
    folders = sorted(f"{path}/" for path in DATA.iterdir() if path.is_dir())
    page = tmp_path / "page.md"
    assert cli.status(["validate", *folders, "--markdown", str(page), "--quiet"]) == 0
    written = (ROOT / "studies/pcie_bench/hosts.md").read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == written, "run `make generate`"


@pytest.mark.full
@pytest.mark.parametrize("host", SHIPPED)
def test_a_shipped_profile_matches_the_output_of_calibrate(host: str, tmp_path: Path) -> None:
    output = tmp_path / "host.toml"
    assert cli.status(["calibrate", *(str(DATA / name) for name in SHIPPED[host]), "-o", str(output), "--quiet"]) == 0
    assert output.read_text(encoding="utf-8") == dict(_core.hosts())[host]
