"""Result documents for tests: a small one with figures by hand, and ways to make it larger."""

from __future__ import annotations

import copy

from tlplab.result import SCHEMA, Direction, Document, Flow, Latency, Link


def direction(source: str, to: str, payload: float, idle: float, credits: float = 0.0) -> Direction:
    """A direction whose overhead takes the rest of payload, DLLPs, ordered sets and idle."""
    share = {"payload": payload, "dllp": 0.012, "ordered_sets": 0.0026, "replay": 0.0, "idle": idle}
    return {
        "from": source,
        "to": to,
        "interface": 0,
        "utilization": {**share, "overhead": 1 - sum(share.values())},  # type: ignore[typeddict-item]
        "tlps": 44_000,
        "payload_bytes": 11_264_000,
        "dllps": {"ack": 900, "nak": 0, "update_fc": 450, "init_fc": 6, "other": 0, "worked_out": 0},
        "replayed": 3,
        "nullified": 0,
        "replay_timeouts": 1,
        "bad_lcrc": 3,
        "no_room": 0,
        "stalls": {"credits": credits, "tags": 0.0, "replay_buffer": 0.0},
    }


def link(name: str, upper: str, width: int, payload: float, idle: float) -> Link:
    """A link that is busy upwards."""
    return {
        "name": name,
        "upper": upper,
        "lower": name,
        "generation": 4,
        "width": width,
        "mode": "non-flit",
        "mps": 256,
        "raw_bps": 15.75e9 * width,
        "bus": None,
        "directions": [direction(name, upper, payload, idle, 0.31), direction(upper, name, 0.0, 0.97)],
    }


LATENCY: Latency = {
    "min": 176,
    "mean": 2500,
    "p50": 2345.6,
    "p90": 3000,
    "p99": 4567.8,
    "p999": 5000,
    "max": 12_345_678,
}


def flow(name: str, behind: str) -> Flow:
    """A flow of writes that mostly waits behind another."""
    return {
        "name": name,
        "device": name,
        "op": "write",
        "target": "host",
        "transactions": 1_234,
        "bytes": 5_054_464,
        "payload_bps": 28.73e9,
        "errors": {"ur": 0, "ca": 0, "timeout": 2, "poisoned": 0, "lost": 0, "malformed": 0},
        "latency_ns": LATENCY,
        "histogram": [],
        "attribution": [
            {"cause": 3, "place": "sw0 → host.rp0", "behind": behind, "total_ns": 1_800_000, "share": 0.72},
            {"cause": 4, "place": "sw0 → host.rp0", "behind": None, "total_ns": 500_000, "share": 0.2},
            {"cause": 1, "place": f"{name} → sw0", "behind": None, "total_ns": 199_000, "share": 0.079},
            {"cause": 2, "place": f"{name} → sw0", "behind": None, "total_ns": 1_000, "share": 0.001},
        ],
        "failures": [
            {
                "ending": "timeout", "count": 2, "mean_ns": 50_000.0,
                "attribution": [{"cause": 10, "place": name, "behind": None, "total_ns": 100_000, "share": 1.0}],
            },
        ],
    }  # fmt: skip


def result() -> Document:
    """Two writers behind one uplink."""
    return copy.deepcopy(
        {
            "schema": SCHEMA,
            "title": "SSD and NIC share one uplink",
            "version": "0.1.0",
            "seed": 1,
            "experiment": "",
            "trace_hash": "0123456789abcdef",
            "start_fs": 0,
            "end_fs": 200_000_000_000,
            "stop_reason": "stop-time",
            "stop_text": "the stop time",
            "waiting": [],
            "verdict": {
                "sentence": "The link sw0 → host.rp0 limits the run: it is busy 99.2 % of the time, "
                "and both devices wait for it.",
                "limit": {
                    "resource": "link sw0 → host.rp0",
                    "kind": "link",
                    "utilization": 0.992,
                    "evidence": [
                        "57.5 Gb/s of 58.0 Gb/s that gen4 x4 can carry in writes of 256 B",
                        "ssd spends 72 % of its latency queueing at sw0 → host.rp0 behind nic, and nic spends 70 % of "
                        "its own behind ssd, so that either would gain from a wider uplink",
                    ],
                },
                "next": {
                    "resource": "link ssd → sw0",
                    "kind": "link",
                    "headroom": 0.41,
                    "text": "the link ssd → sw0, with 41 % to spare",
                },
            },
            "flows": [flow("ssd", "nic"), flow("nic", "ssd")],
            "errors": [],
            "faults": [],
            "outages": [],
            "problems": [],
            "host": None,
            "translations": [],
            "measured": [],
            "networks": [],
            "frames": [],
            "causes": [
                "processing", "serialisation", "flight", "queueing", "credit wait", "tag wait",
                "replay buffer wait", "replay", "data link", "completer", "link down",
            ],
            "topology": {"nodes": []},
            "links": [
                link("sw0", "host.rp0", 4, 0.88, 0.004),
                link("ssd", "sw0", 4, 0.44, 0.5),
                link("nic", "sw0", 8, 0.22, 0.7),
            ],
            "places": [],
            "series": {"start_fs": 0, "bin_fs": 1, "bins": 0, "flows": [], "directions": [], "resources": []},
            "samples": [],
            "ladder": None,
        }
    )  # type: ignore[return-value]  # fmt: skip
