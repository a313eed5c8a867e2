"""The terminal summary: its text, and that it fits."""

import io

import pytest
from documents import direction, flow, link, result

from tlplab import summary


def lines(document: object) -> list[str]:
    return summary.as_text(document).splitlines()  # type: ignore[arg-type]


def test_summary_names_limit_evidence_and_next_limit() -> None:
    text = summary.as_text(result())
    assert "The link sw0 → host.rp0 limits the run" in text
    assert "57.5 Gb/s of 58.0 Gb/s" in text
    assert "Next: the link ssd → sw0, with 41 % to spare" in text


def test_a_flow_has_its_throughput_and_latencies() -> None:
    row = next(line for line in lines(result()) if line.startswith("ssd   write"))
    assert row.split("  ")[-5:] == ["28.73 Gb/s", "176 ns", "2.346 µs", "4.568 µs", "12.35 ms"]


def test_a_direction_has_all_its_shares_and_stalls() -> None:
    row = next(line for line in lines(result()) if "sw0 → host.rp0" in line and line.startswith("gen4"))
    assert row.split()[5:] == ["88.0", "10.1", "1.2", "0.26", "0.40", "3", "1", "31.0"]


def test_a_bus_has_its_time_for_all_ways_together() -> None:
    document = result()
    document["links"] = [
        {**link("disk", "pci", 4, 0.5, 0.4), "bus": "PCI 66 32b"},
        link("pci", "host.rp0", 1, 0.3, 0.6),
        {**link("target", "pci", 4, 0.2, 0.7), "bus": "PCI 66 32b"},
    ]
    for each in document["links"]:
        for way in each["directions"]:
            way["utilization"] |= {"overhead": 0.05, "dllp": 0.0, "ordered_sets": 0.0}
    shown = lines(document)
    first = next(n for n, line in enumerate(shown) if line.startswith("gen4 x1"))
    assert [" ".join(line.split()) for line in shown[first : first + 7]] == [
        "gen4 x1 pci → host.rp0 30.0 5.0 60.0 3 1 31.0",
        "host.rp0 → pci – 5.0 97.0 3 1 –",
        "PCI 66 32b pci, total 70.0 20.0 10.0 – – –",
        "disk → pci 50.0 5.0 40.0 3 1 31.0",
        "pci → disk – 5.0 97.0 3 1 –",
        "target → pci 20.0 5.0 70.0 3 1 31.0",
        "pci → target – 5.0 97.0 3 1 –",
    ]


def test_a_column_of_nothing_is_left_out_and_a_full_one_fits() -> None:
    document = result()
    assert not any("buffer" in line for line in lines(document))
    for each in document["links"]:
        for way in each["directions"]:
            way["stalls"] = {"credits": 0.311, "tags": 0.422, "replay_buffer": 0.999}
            way["utilization"]["replay"] = 0.123
        each["mode"] = "flit"
    shown = lines(document)
    assert sum(line.endswith(" 99.9") for line in shown) == sum(len(each["directions"]) for each in document["links"])
    assert max(map(len, shown)) <= 100


def test_attribution_names_place_and_flow_ahead() -> None:
    row = next(line for line in lines(result()) if "queueing  " in line)
    assert row.split() == ["ssd", "72.0", "1.459", "µs", "queueing", "sw0", "→", "host.rp0", "nic"]
    assert not any("flight" in line for line in lines(result())), "a cause of 0.1 % is not worth a line"


def test_errors_of_a_flow_are_listed() -> None:
    assert "ssd: 2 completion timeouts" in lines(result())


def test_replay_has_a_column_only_when_there_was_some() -> None:
    document = result()
    assert not any(" replay " in line for line in lines(document))
    document["links"][0]["directions"][0]["utilization"]["replay"] = 0.034
    assert any(" replay " in line for line in lines(document))
    assert any(" 3.4 " in line for line in lines(document))


def test_nothing_ran() -> None:
    document = result()
    document["flows"] = [
        {**flow("ssd", "nic"), "latency_ns": None, "transactions": 0, "payload_bps": 0.0, "attribution": []}
    ]
    document["flows"][0]["errors"] = {}
    document["verdict"]["next"] = None
    text = summary.as_text(document)
    assert "no transactions: ssd" in text
    assert "Next" not in text


def test_summary_fits_a_hundred_columns_with_long_names() -> None:
    document = result()
    long = "a-name-of-a-component-that-somebody-thought-about-for-a-long-time-{}"
    document["flows"] = [flow(long.format(n), long.format(n + 1)) for n in range(40)]
    document["links"] = [link(long.format(n), long.format(n + 1), 16, 0.5, 0.3) for n in range(60)]
    document["links"][0]["directions"][0]["utilization"]["replay"] = 0.034
    document["verdict"]["sentence"] = "[bold]" + long * 5
    shown = lines(document)
    assert max(map(len, shown)) <= 100
    assert "… and 24 more flows: --report or --json shows them all" in shown
    assert "… and 96 more directions, less busy: --report or --json shows them all" in shown
    assert any(line.startswith("[bold]") for line in shown), "names are shown as they are, not taken for markup"


def test_the_busiest_directions_are_kept() -> None:
    document = result()
    document["links"] = [link(f"d{n}", "sw0", 4, 0.1, 0.8) for n in range(20)]
    document["links"].append(
        {**link("busy", "sw0", 4, 0.9, 0.01), "directions": [direction("busy", "sw0", 0.9, 0.01)] * 2}
    )
    assert any("busy → sw0" in line for line in lines(document))


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_a_narrow_terminal_keeps_names_and_figures(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    document = result()
    document["links"][0]["directions"][0]["utilization"]["replay"] = 0.034
    document["links"][0]["directions"][0]["stalls"] = {"credits": 0.311, "tags": 0.422, "replay_buffer": 0.999}
    summary.show(document, stream)
    shown = stream.getvalue().splitlines()
    assert any("Links, per cent of each direction's time" in line for line in shown)
    for wanted in ("direction", "sw0 → host.rp0", "write → host", "28.73 Gb/s", "12.35 ms", "3.4", "99.9"):
        assert any(wanted in line for line in shown), wanted
    assert not any(line.endswith(" ") for line in shown)


@pytest.mark.parametrize("columns", ["60", "80", "100", "250"])
def test_follows_the_terminals_width(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    summary.show(result(), stream)
    assert max(len(line.rstrip()) for line in stream.getvalue().splitlines()) <= min(int(columns), 100)


def test_sentences_have_the_forms_of_the_tables() -> None:
    document = result()
    document["verdict"]["limit"]["evidence"] = ["1 transactions of 1.23 us each, 21 transactions to the usb"]
    assert " • 1 transaction of 1.23 µs each, 21 transactions to the usb" in lines(document)


def test_a_figure_stays_with_its_unit() -> None:
    document = result()
    for length in range(40):
        document["verdict"]["limit"]["evidence"] = ["x" * (40 + length) + " payload of 57.4 Gb/s is 0.3 %"]
        assert not any(line.strip().startswith(("Gb/s", "%")) for line in lines(document))


def test_a_fault_is_shown_with_its_strikes_even_if_there_are_none() -> None:
    document = result()
    document["faults"] = [
        {"link": "ssd", "direction": "up", "damage": "lose", "of": "MRd", "first": 1725, "struck": 1},
        {"link": "ssd", "direction": "down", "damage": "corrupt", "of": None, "first": 9, "struck": 0},
    ]
    shown = lines(document)
    start = shown.index("Faults")
    assert shown[start + 3].split() == ["ssd", "up", "lose", "MRd", "1", "725", "1"]
    assert shown[start + 4].split() == ["ssd", "down", "corrupt", "–", "9", "0"]


def test_links_that_went_down_have_their_times() -> None:
    document = result()
    us = 1_000_000_000
    document["outages"] = [
        {"link": "sw1", "down_fs": 40 * us, "heard_fs": 41 * us, "up_fs": 70 * us, "configured_fs": 90 * us},
        {"link": "ssd", "down_fs": 100 * us, "heard_fs": 101 * us, "up_fs": None, "configured_fs": None},
    ]
    shown = lines(document)
    start = shown.index("Outages of links")
    assert shown[start + 1].split("  ")[0] == "below"
    rows = [line.split() for line in shown[start + 3 : start + 5]]
    assert rows[0] == ["sw1", "40", "µs", "41", "µs", "70", "µs", "90", "µs"]
    assert rows[1] == ["ssd", "100", "µs", "101", "µs", "–", "–"]


def test_cache_and_iommu_figures_of_the_host_are_listed() -> None:
    document = result()
    assert not any("found" in line for line in lines(document))
    document["host"] = {
        "cache": {"hits": 1500, "misses": 500, "hit_rate": 0.75},
        "iommu": {
            "hits": 90,
            "walks": 10,
            "hit_rate": 0.9,
            "waited_ns": 5.0,
            "busy": 0.5,
            "faults": [
                {
                    "device": "gpu",
                    "requester": "01:00.0",
                    "reason": "no-write",
                    "operation": "write",
                    "address": "0x1000",
                    "count": 3,
                    "first_fs": 2_000_000_000,
                }
            ],
            "answered": None,
        },
    }
    document["translations"] = [
        {
            "device": "gpu",
            "hits": 100,
            "waited": 8,
            "asked": 7,
            "denied": 2,
            "evicted": 5,
            "invalidations": 1,
            "invalidated": 4,
        }
    ]
    shown = lines(document)
    start = shown.index("Host cache and IO-TLB")
    rows = [line.split("  ") for line in shown[start + 3 : start + 5]]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["lines of the cache", "1 500", "500", "75.0"],
        ["pages of the IO-TLB", "90", "10", "90.0"],
    ]
    start = shown.index("Refused by the IOMMU")
    row = [cell.strip() for cell in shown[start + 3].split("  ") if cell]
    assert row == ["gpu", "not writable", "3", "2 µs", "write", "0x1000"]
    start = shown.index("Cached translations of devices")
    assert shown[start + 3].split() == ["gpu", "100", "8", "7", "2", "5", "4"]


def test_lost_frames_are_listed() -> None:
    document = result()
    document["frames"] = [{"device": "nic", "sent": 0, "received": 1667, "missed": 301, "too_long": 0}]
    assert "nic: 1 667 frames received, 301 lost, no room" in [line.replace("\u202f", " ") for line in lines(document)]
