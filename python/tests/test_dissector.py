"""The Wireshark dissector and `tlplab dump --json` agree about every frame."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TSHARK = shutil.which("tshark")
CAPTURES = Path(os.environ.get("TLPLAB_DATA", "")) / "captures"
ETHERNET, RAW_IP, COOKED, USER0, COOKED_2 = 1, 101, 113, 147, 276
# In the header of a pcap file: frames end with a check sequence of so many 16-bit words (draft-ietf-opsawg-pcap).
CHECK_SEQUENCE = 0x24000000
DISSECTOR = ROOT / "dissector/tlplab.lua"

pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")

# What a key of a line's TLP is called in Wireshark.
TLP = {
    "kind": "tlp.kind", "requester": "tlp.requester", "tag": "tlp.tag", "address": "tlp.address", "length": "tlp.length",
    "first_be": "tlp.first_be", "last_be": "tlp.last_be", "target": "tlp.target", "register": "tlp.register",
    "operand": "tlp.operand", "code": "tlp.code", "routing": "tlp.routing", "content": "tlp.content",
    "completer": "tlp.completer", "status": "tlp.status", "byte_count": "tlp.byte_count",
    "lower_address": "tlp.lower_address", "bcm": "tlp.bcm", "tc": "tlp.tc", "at": "tlp.at",
    "poisoned": "tlp.poisoned", "digest": "tlp.td",
}  # fmt: skip
ATTRIBUTES = {"RO": "tlp.attr.ro", "IDO": "tlp.attr.ido", "NS": "tlp.attr.ns"}
HINTS = {"ph": "tlp.hint.ph", "st": "tlp.hint.st"}
DLLP = {
    key: f"dllp.{key}"
    for key in ("kind", "sequence", "vc", "header_scale", "header", "data_scale", "data", "ack", "supported", "body")
}
CONTROL = {
    key: f"nettlp_control.{key}"
    for key in ("channel", "operation", "mask", "register", "data", "code", "bar4", "device_id", "address")
}
MALFORMED = [
    "tlp.malformed.expert", "dllp.malformed.expert", "nettlp.malformed", "nettlp_control.malformed",
    "nettlp_check.malformed", "pcie_link.malformed", "_ws.malformed",
]  # fmt: skip
OTHERS = [
    "frame.number", "nettlp.seq", "nettlp.tstamp", "nettlp.link.sequence", "nettlp.link.acknowledged", "tlp.prefix", "tlp.ecrc", "tlp.response_to", "tlp.latency",
    "tlp.malformed", "dllp.malformed", "pcie_link.flit.sequence", "tlp.payload", "_ws.lua.error",
]  # fmt: skip
FIELDS = [
    *TLP.values(), *ATTRIBUTES.values(), *HINTS.values(), *DLLP.values(), *CONTROL.values(), *MALFORMED, *OTHERS,
]  # fmt: skip
# Those that only the dissector gives a frame.
OWN = [field for field in FIELDS if field.split(".")[0] not in ("frame", "_ws")]
STATUSES = {"SC": 0, "UR": 1, "CRS": 2, "CA": 4}
ADDRESS_TYPES = {"translation request": 1, "translated": 2}


def tshark(
    capture: Path, *options: str, scripts: Sequence[Path] = (DISSECTOR,), env: dict[str, str] | None = None
) -> str:
    """The standard output of tshark for a capture."""
    assert TSHARK is not None
    loaded = [part for script in scripts for part in ("-X", f"lua_script:{script}")]
    command = [TSHARK, *loaded, "-n", "-r", str(capture), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, env=env)
    assert "Lua" not in done.stderr, done.stderr
    return done.stdout


def theirs(capture: Path) -> dict[int, dict[str, list[str]]]:
    """Fields of each frame, as Wireshark sees it."""
    chosen = [part for field in FIELDS for part in ("-e", field)]
    text = tshark(capture, "-T", "fields", "-E", "separator=\x1f", "-E", "aggregator=\x1e", *chosen)
    frames = {}
    for line in filter(None, text.split("\n")):
        values = dict(zip(FIELDS, (value.split("\x1e") if value else [] for value in line.split("\x1f")), strict=True))
        assert not values["_ws.lua.error"], values
        frames[int(values["frame.number"][0])] = values
    return frames


def ours(capture: Path) -> dict[int, dict[str, Any]]:
    """The lines of `tlplab dump --json`, with the payloads."""
    command = [sys.executable, "-m", "tlplab", "dump", str(capture), "--json", "-", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["frame"]: line for line in lines}


def number(text: str) -> int:
    """A number of tshark, in any base."""
    if text in ("True", "False"):
        return int(text == "True")
    return int(text.split()[0], 0)


def same(wanted: Any, found: Sequence[str]) -> bool:
    """True if a field has the value that tlplab states. False, zero and absent are equal."""
    if wanted is None:
        return all(value in ("False", "") or re.fullmatch("(0x)?0*", value) for value in found)
    if len(found) != 1:
        return False
    if isinstance(wanted, bool | int):
        return number(found[0]) == int(wanted)
    if wanted.startswith("0x"):
        return number(found[0]) == int(wanted, 16)
    return found[0].replace(":", "") == str(wanted).replace(":", "")


def canonical(prefix: str) -> str:
    """A prefix without the reserved bits that PASID has: Wireshark shows bytes as they are."""
    first, second = int(prefix[:2], 16), int(prefix[2:4], 16)
    return f"{first:02x}{second & 0x3F if first == 0x91 else second:02x}{prefix[4:]}"


def differences(line: dict[str, Any], frame: dict[str, list[str]]) -> Iterable[str]:
    """The differences between tlplab and the dissector in a frame."""
    malformed = [text for name in MALFORMED for text in frame[name]]
    if bool(malformed) != ("malformed" in line):
        yield f"malformed: {line.get('malformed')} {malformed}"
        return
    if "malformed" in line:
        named = re.match(r"not a (?:TLP|DLLP): (.+?) at byte", line["malformed"])
        said = [text.split(":")[0] for text in (*frame["tlp.malformed"], *frame["dllp.malformed"])]
        if named and said[:1] != [named[1]]:
            yield f"malformed: {line['malformed']} {said}"
        return
    tlp = dict(line.get("tlp", {}))
    attributes, hint, prefixes = tlp.pop("attr", []), tlp.pop("hint", {}), tlp.pop("prefixes", [])
    if "status" in tlp:
        tlp["status"] = STATUSES[tlp["status"]]
    if "at" in tlp:
        tlp["at"] = ADDRESS_TYPES[tlp["at"]]
    wanted = {TLP[key]: value for key, value in tlp.items()}
    wanted |= {ATTRIBUTES[name]: True for name in attributes} | {HINTS[key]: value for key, value in hint.items()}
    wanted |= {DLLP[key]: value for key, value in line.get("dllp", {}).items()}
    wanted |= {"nettlp.seq": line.get("sequence"), "nettlp.tstamp": line.get("timestamp")}
    wanted |= {"nettlp.link.sequence": line.get("link_sequence")}
    wanted |= {"nettlp.link.acknowledged": line.get("link_acknowledged")}
    wanted |= {"pcie_link.flit.sequence": line.get("flit", {}).get("sequence"), "tlp.ecrc": line.get("ecrc")}
    wanted |= {"tlp.response_to": line.get("response_to"), "tlp.payload": line.get("data")}
    control = line.get("control", {})
    if control.get("address") is None:
        wanted |= {CONTROL[key]: value for key, value in control.items()}
    else:  # the table has sixteen of each
        wanted |= {"nettlp_control.channel": control["channel"], "nettlp_control.operation": control["operation"]}
        frame |= {CONTROL["address"]: [], CONTROL["data"]: []}
    for field in [*TLP.values(), *ATTRIBUTES.values(), *HINTS.values(), *DLLP.values(), *CONTROL.values(), *wanted]:
        if not same(wanted.get(field), frame[field]):
            yield f"{field}: {wanted.get(field)!r} {frame[field]}"
    if [canonical(prefix) for prefix in frame["tlp.prefix"]] != prefixes:
        yield f"tlp.prefix: {prefixes} {frame['tlp.prefix']}"
    if "latency_ns" in line and abs(float(frame["tlp.latency"][0]) * 1e9 - line["latency_ns"]) > 1:
        yield f"tlp.latency: {line['latency_ns']} {frame['tlp.latency']}"


def compare(capture: Path, names: Sequence[str] = ()) -> dict[int, dict[str, Any]]:
    """Asserts that both agree about every frame, also about frames without a TLP; gives tlplab's lines."""
    lines, frames = ours(capture), theirs(capture)
    decoded = {frame for frame, values in frames.items() if any(values[field] for field in OWN)}
    assert decoded == lines.keys()
    wrong = {
        names[frame - 1] if names else frame: found
        for frame, line in lines.items()
        if (found := list(differences(line, frames[frame])))
    }
    assert not wrong
    return lines


def pcap(path: Path, link_type: int, frames: Iterable[tuple[bytes, int]]) -> Path:
    """Writes frames, each with its length on the wire, a microsecond apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link_type))
        for count, (frame, length) in enumerate(frames):
            file.write(struct.pack("<IIII", 1000, count * 1000, len(frame), length) + frame)
    return path


def datagram(payload: bytes, port: int, length: int | None = None, source: str = "0a000001") -> tuple[bytes, int]:
    """An Ethernet frame with a datagram of `length` bytes, of which `payload` was captured."""
    length = len(payload) if length is None else length
    ends = bytes.fromhex(source) + bytes.fromhex("0a000002")
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + length, 0, 0x4000, 64, 17, 0) + ends
    udp = struct.pack(">HHHH", port, port, 8 + length, 0)
    frame = bytes(12) + b"\x08\x00" + ip + udp + payload
    if len(payload) < length:
        return frame, 42 + length
    return frame.ljust(60, b"\0"), max(60, len(frame))


def vectors(name: str) -> Any:
    return json.loads((ROOT / "vectors" / name).read_text(encoding="utf-8"))


def wire_length(tlp: bytes) -> int:
    """Bytes of a TLP that is cut, by its header (no vector that is cut has prefixes)."""
    dw = int.from_bytes(tlp[2:4], "big") & 0x3FF or 1024
    return (16 if tlp[0] & 0x20 else 12) + 4 * dw * (tlp[0] >> 6 & 1) + 4 * (tlp[2] >> 7)


def test_every_tlp_of_the_vectors(tmp_path: Path) -> None:
    all_of_them = vectors("tlp.json")["vectors"]
    frames = []
    for count, vector in enumerate(all_of_them):
        tlp = bytes.fromhex(vector["bytes"])
        length = wire_length(tlp) if vector.get("options", {}).get("truncated") else len(tlp)
        # Each from another host: no completion answers the request of another vector.
        frames.append(datagram(bytes(6) + tlp, 0x3000, 6 + length, source=f"0a01{count:04x}"))
    lines = compare(pcap(tmp_path / "a.pcap", ETHERNET, frames), [vector["name"] for vector in all_of_them])
    malformed = {frame for frame, line in lines.items() if "malformed" in line}
    # Nothing tells that five bits of tag are enabled.
    stated = {n + 1 for n, v in enumerate(all_of_them) if "error" in v and "tag_bits" not in v.get("options", {})}
    assert (len(lines), malformed) == (len(all_of_them), stated)


def test_every_dllp_of_the_vectors(tmp_path: Path) -> None:
    all_of_them = vectors("dllp.json")["vectors"]
    frames = [b"\x01" + bytes.fromhex(vector["bytes"]) for vector in all_of_them]
    frames.append(b"\x02\x01\x23" + bytes(4))  # a flit
    capture = pcap(tmp_path / "a.pcap", USER0, [(frame, len(frame)) for frame in frames])
    lines = compare(capture, [*(vector["name"] for vector in all_of_them), "a flit"])
    malformed = {frame for frame, line in lines.items() if "malformed" in line}
    assert malformed == {n + 1 for n, vector in enumerate(all_of_them) if "error" in vector}
    assert lines[len(frames)]["flit"] == {"sequence": 0x123}


def test_units_of_no_known_kind(tmp_path: Path) -> None:
    frames = [b"\x07\x01\x02", b"\x02\x01", b"\x01" + bytes(6)]  # the third is a DLLP whose CRC does not match
    lines = compare(pcap(tmp_path / "a.pcap", USER0, [(frame, len(frame)) for frame in frames]))
    assert [lines[frame]["malformed"].split(":")[0] for frame in (1, 2, 3)] == [
        "unknown kind 0x07 of link unit", "the link unit header is cut", "not a DLLP",
    ]  # fmt: skip


def test_every_datagram_of_the_vectors(tmp_path: Path) -> None:
    file = vectors("nettlp.json")
    frames = [
        datagram(bytes.fromhex(vector["bytes"]), vector.get("port", 0x3000), source=f"0a01{count:04x}")
        for count, vector in enumerate(file["vectors"])
        if not vector.get("tlp") or len(vector["tlp"]) // 2 == wire_length(bytes.fromhex(vector["tlp"]))
    ]
    assert len(frames) >= 5
    compare(pcap(tmp_path / "a.pcap", ETHERNET, frames))


def test_every_sealed_datagram_of_the_vectors(tmp_path: Path) -> None:
    all_of_them = vectors("nettlp.json")["link"]
    payloads = [bytes.fromhex(vector["bytes"]) for vector in all_of_them]
    frames = [datagram(payload, 0x3000, source=f"0a01{count:04x}") for count, payload in enumerate(payloads)]
    # Of the write all but its last bytes were captured: nobody knows whether it was whole.
    frames.append(datagram(payloads[1][:-6], 0x3005, len(payloads[1]), source="0a020000"))
    lines = compare(pcap(tmp_path / "a.pcap", ETHERNET, frames), [*(vector["name"] for vector in all_of_them), "cut"])
    malformed = {frame for frame, line in lines.items() if "malformed" in line}
    assert malformed == {
        n + 1 for n, v in enumerate(all_of_them) if v.get("sealed") is False and "without" not in v["name"]
    }
    numbers = [
        (line.get("link_sequence"), line.get("link_acknowledged")) for line in lines.values() if "link_sequence" in line
    ]
    assert numbers == [(0x123456, 7), (0xFFFFFF, 0), (0xFFFFFF, 0)]


def test_the_datagrams_beside_the_tlps(tmp_path: Path) -> None:
    table = b"".join(struct.pack("<QI", 0xFEE00000 + n, n) for n in range(16))
    payloads = [
        (0x5001, "3c0000000000"), (0x5001, "3c0477665544" + "00" * 12), (0x4001, "7d0411223344"),
        (0x4001, "3c0400100007" + "00" * 12), (0x5001, "bc0000000000"), (0x5001, "3c00"),
        (12287, "01000000"), (12287, "0200000000000000"), (12287, "001b"), (12287, table.hex()), (12287, "07000000"),
        (0x5002, "100000000000"), (0x5002, "11050100000a"), (0x5002, "100900000000"), (0x5002, "220000000000"),
        (0x4001, "000000000000" + "000000010000010f00001000"), (0x3000, "0000"), (14198, "00" * 6 + "000000010000010f00001000"),
    ]  # fmt: skip
    frames = [datagram(bytes.fromhex(payload), port) for port, payload in payloads]
    lines = compare(pcap(tmp_path / "a.pcap", ETHERNET, frames))
    kinds = ["malformed" if "malformed" in line else "tlp" if "tlp" in line else "control" for line in lines.values()]
    expected = "ccccmmccccmccmmtmt"
    assert "".join(kind[0] for kind in kinds) == expected


def test_frames_that_contradict_themselves(tmp_path: Path) -> None:
    good, length = datagram(bytes(6) + bytes.fromhex("000000801b0000ffa0000000"), 0x3000)

    def change(at: int, value: int) -> tuple[bytes, int]:
        return good[:at] + struct.pack(">H", value) + good[at + 2 :], length

    frames = [
        (good, length), (good + bytes(4), length + 4), change(38, 24), change(38, 90), (good[:58], 58),
        (bytes(12) + b"\x81\x00\x00\x65" + good[12:] + bytes(4), length + 8),
        (bytes(12) + b"\x81\x00\x00\x65" + good[12:], length + 4),
        (good + zlib.crc32(good).to_bytes(4, "little"), length + 4),
    ]  # fmt: skip
    lines = compare(pcap(tmp_path / "a.pcap", ETHERNET, frames))
    assert [("malformed" in line) for line in lines.values()] == [False, True, True, True, True, True, False, False]
    assert lines[7]["vlan"] == 101


def test_encapsulations_of_a_datagram_are_decoded(tmp_path: Path) -> None:
    """Other links than Ethernet, padding, tags within tags, check sequences, and datagrams that are not NetTLP."""
    padded, _ = datagram(bytes(6) + bytes.fromhex("000000801b0000ffa0000000"), 0x3000)
    ip, zeros = padded[14:60], bytes(60)
    asked = datagram(bytes.fromhex("3c0000000000"), 0x5001)[0][14:48]
    tagged = bytes(12) + b"\x88\xa8\x00\x64\x81\x00\x00\x65" + padded[12:]
    old_tags = bytes(12) + b"\x91\x00\x00\x64" + tagged[16:]
    cooked, cooked_2 = bytes(14) + b"\x08\x00" + ip, b"\x08\x00" + bytes(18) + ip
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    elsewhere, _ = datagram(bytes(18), 9)
    tcp = padded[:23] + b"\x06" + padded[24:]
    later = padded[:20] + b"\x00\x10" + padded[22:]  # a fragment that is not the first
    checked = [frame + zlib.crc32(frame).to_bytes(4, "little") for frame in (padded, tagged)]
    long, _ = datagram(bytes(6) + bytes.fromhex("600000201b0000ff0000000100000000") + bytes(range(128)), 0x3000)
    # By link type: frames with their lengths, and what each is: taken, malformed or other.
    links = {
        ETHERNET: ("tttttmmoooo", [
            padded, tagged, old_tags, *checked, tagged + bytes(1), checked[1][:-1] + b"\x01", arp, elsewhere, tcp, later,
        ]),
        ETHERNET | CHECK_SEQUENCE: ("ttmo", [*checked, padded + zeros[:8], arp + bytes(4)]),
        RAW_IP: ("tmtm", [ip, ip + bytes(14), asked, asked + bytes(12)]),
        COOKED: ("ttm", [cooked, cooked + zeros[: 62 - len(cooked)], cooked + zeros[: 63 - len(cooked)]]),
        COOKED_2: ("ttm", [cooked_2, cooked_2 + zeros[: 66 - len(cooked_2)], cooked_2 + zeros[: 67 - len(cooked_2)]]),
    }  # fmt: skip
    for link_type, (expected, frames) in links.items():
        # Lengths on the wire are those of the frames; those that follow are cut.
        sizes = [(frame, len(frame)) for frame in frames]
        check = 4 if link_type & CHECK_SEQUENCE else 0
        if link_type & 0xFF == ETHERNET:
            sizes += [(long[:80], len(long) + check), (long[:80], len(long) + 4), (long[:80], len(long) + 5)]
            expected += "ttm"
        lines = compare(pcap(tmp_path / f"{link_type}.pcap", link_type, sizes))
        kinds = [
            "o" if frame not in lines else "m" if "malformed" in lines[frame] else "t"
            for frame in range(1, len(sizes) + 1)
        ]
        assert "".join(kinds) == expected, link_type
        if link_type == ETHERNET:
            assert [lines[frame].get("vlan") for frame in (1, 2, 3)] == [None, 100, 100]


def test_tags_that_are_used_again(tmp_path: Path) -> None:
    read, half = "000000801b00{tag:02x}ffa0000000", "4a000040190002001b00{tag:02x}00" + "00" * 256
    rest = "4a000040190001001b00{tag:02x}00" + "00" * 256
    up, down = "0a000001", "0a000002"

    def tlp(text: str, source: str, tag: int = 5, count: int = 0) -> tuple[bytes, int]:
        payload = struct.pack(">HI", count, count and 1000 * count) + bytes.fromhex(text.format(tag=tag))
        frame, length = datagram(payload, 0x3000 + tag)
        if source == down:
            frame = frame[:26] + frame[30:34] + frame[26:30] + frame[34:]
        return frame, length

    # The same requester and tag in both directions at once, then the tag again, then an answer too many.
    frames = [
        tlp(read, up), tlp(read, down), tlp(half, up), tlp(rest, up), tlp(half, down), tlp(rest, down),
        tlp(read, up), tlp(half, down), tlp(read, up), tlp(half, down), tlp(rest, down), tlp(rest, down),
    ]  # fmt: skip
    capture = pcap(tmp_path / "a.pcap", ETHERNET, frames)
    lines = compare(capture)
    answers = {frame: line["response_to"] for frame, line in lines.items() if "response_to" in line}
    assert answers == {3: 2, 4: 2, 5: 1, 6: 1, 8: 7, 10: 9, 11: 9}
    shown = tshark(
        capture, "-2", "-Y", "tlp.response_in", "-T", "fields", "-e", "frame.number", "-e", "tlp.response_in"
    )
    assert [line.split() for line in shown.splitlines()] == [["1", "6"], ["2", "4"], ["9", "11"]]
    assert tshark(capture, "-Y", "tlp.unexpected", "-T", "fields", "-e", "frame.number").split() == ["12"]


def test_gaps_in_the_sequence(tmp_path: Path) -> None:
    write = bytes.fromhex("400000011b00000fa000000001020304")

    def numbered(sequence: int, ticks: int) -> tuple[bytes, int]:
        return datagram(struct.pack(">HI", sequence, ticks) + write, 0x3000)

    # A microsecond is 156 ticks. What is doubled or late has an old time stamp; the second adapter has another clock and other numbers,
    # another thread the same clock.
    first = [
        numbered(n, 1_000_000 + ticks) for n, ticks in ((7, 0), (8, 156), (12, 312), (12, 312), (11, 200), (13, 780))
    ]
    second = [numbered(n, 0x9000_0000 + 156 * at) for at, n in ((6, 500), (7, 501))]
    thread = [numbered(n, 1_000_000 + 156 * at) for at, n in ((8, 3), (9, 4))]
    capture = pcap(tmp_path / "a.pcap", ETHERNET, [*first, *second, *thread])
    # Before the file has been seen to its end, nobody knows whether what was passed over comes.
    assert told(capture) == {"gap": [], "leap": ["3"], "duplicate": ["4", "5"]}
    assert told(capture, "-2") == {"gap": ["3"], "leap": [], "duplicate": ["4", "5"]}


def told(capture: Path, *options: str) -> dict[str, list[str]]:
    """The frames of which something is said about their sequence numbers."""
    kinds = ("gap", "leap", "duplicate")
    shown = tshark(
        capture, *options, "-Y", " || ".join(f"nettlp.{kind}" for kind in kinds), "-T", "fields", "-e", "frame.number",
        *(part for kind in kinds for part in ("-e", f"nettlp.{kind}")),
    )  # fmt: skip
    rows = [line.split("\t") for line in shown.splitlines()]
    return {kind: [row[0] for row in rows if row[1 + at]] for at, kind in enumerate(kinds)}


def captured(path: Path, frames: Iterable[tuple[int, int, int, int]]) -> Path:
    """Writes of a counting sender: nanoseconds of capture, number, ticks of its clock, port."""
    write = bytes.fromhex("400000011b00000fa000000001020304")
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, ETHERNET))
        for ns, number, ticks, port in frames:
            frame, length = datagram(struct.pack(">HI", number & 0xFFFF, ticks & 0xFFFFFFFF) + write, port)
            file.write(struct.pack("<IIII", *divmod(ns, 10**9), len(frame), length) + frame)
    return path


def busy(seed: int, lost: Callable[[int, int], bool]) -> Iterator[tuple[int, int, int, int]]:
    """Two threads that count by one clock, which drifts, on a machine that keeps captured frames waiting for up to 0.8 s."""
    draw = random.Random(seed)
    now, lag, at, sent, clock = 0, 0, 0, [0, 0], draw.randrange(1 << 32)
    for _ in range(6000):
        lane = draw.randrange(2)
        now += 1 + draw.randrange(20_000)
        lag = draw.randrange(800_000_000) if draw.randrange(2000) == 0 else max(0, lag - draw.randrange(5000))
        at = max(at, now + lag)  # what waits is captured in its order
        if not lost(lane, sent[lane]):
            yield at, 1 + sent[lane], clock + now * 1007 // 6400, 0x3000 + 16 * lane + draw.randrange(16)
        sent[lane] += 1


def summed_up(capture: Path) -> dict[str, int]:
    """The numbers in the only direction of `tlplab dump --summary`."""
    command = [sys.executable, "-m", "tlplab", "dump", str(capture), "--summary", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    (direction,) = json.loads(done.stdout)["directions"]
    found: dict[str, int] = direction["sequence"]
    return found


CLEAN = {"adapters": 1, "gaps": 0, "missing": 0, "duplicates": 0, "reordered": 0, "unproven": 0}


@pytest.mark.parametrize("seed", range(2))
def test_only_real_losses_of_a_busy_machine_are_gaps(seed: int, tmp_path: Path) -> None:
    whole = captured(tmp_path / "whole.pcap", busy(seed, lambda _lane, _number: False))
    assert summed_up(whole) == {**CLEAN, "adapters": 2}
    assert told(whole) == told(whole, "-2") == {"gap": [], "leap": [], "duplicate": []}
    holes = captured(tmp_path / "holes.pcap", busy(seed, lambda lane, number: number in (900, 901, 1500 + lane)))
    assert summed_up(holes) == {**CLEAN, "adapters": 2, "gaps": 4, "missing": 6}
    assert len(told(holes, "-2")["gap"]) == 4
    # As soon as it is certain, also without the whole file.
    assert len(told(holes)["gap"]) == len(told(holes)["leap"]) == 4


def test_a_great_loss_differs_from_a_new_beginning(tmp_path: Path) -> None:
    def run(start: int, numbers: range) -> list[tuple[int, int, int, int]]:
        at = [start + 10_000 * n for n in range(len(numbers))]
        return [(ns, number, ns * 10 // 64, 0x3000 + number % 4) for ns, number in zip(at, numbers, strict=True)]

    first, later = run(0, range(1, 3000)), 500_000_000
    lost = captured(tmp_path / "lost.pcap", [*first, *run(later, range(43_000, 45_000))])
    assert summed_up(lost) == {**CLEAN, "gaps": 1, "missing": 40_000}
    assert told(lost, "-2") == {"gap": ["3000"], "leap": [], "duplicate": []}
    # The same numbers, but nothing shows whether those from 1 to 99 were sent, or 62 636 more.
    anew = captured(tmp_path / "anew.pcap", [*first, *run(later, range(100, 2000))])
    assert summed_up(anew) == {**CLEAN, "adapters": 2, "unproven": 1}
    assert told(anew, "-2") == {"gap": [], "leap": ["3000"], "duplicate": []}


def test_wireshark_may_load_every_part_by_itself(tmp_path: Path) -> None:
    """As it does with a folder of plugins: each file, in some order, the parts once more by the first."""
    folder = tmp_path / ".local/lib/wireshark/plugins/tlplab"
    command = [sys.executable, "-m", "tlplab", "dissector", "-o", str(folder)]
    subprocess.run(command, check=True, timeout=100, capture_output=True)
    assert {file.name for file in folder.iterdir()} == {file.name for file in DISSECTOR.parent.glob("*.lua")}
    capture = pcap(
        tmp_path / "a.pcap", ETHERNET, [datagram(bytes(6) + bytes.fromhex("000000801b0000ffa0000000"), 0x3000)]
    )
    home = {**os.environ, "HOME": str(tmp_path)}
    assert tshark(capture, "-T", "fields", "-e", "tlp.kind", scripts=(), env=home).split() == ["MRd"]


@pytest.mark.parametrize(("experiment", "stop"), [("quickstart", "20500ns"), ("tags", "20500ns"), ("hotplug", "20us")])
def test_captures_of_simulated_links(experiment: str, stop: str, tmp_path: Path) -> None:
    capture = tmp_path / "a.pcapng"
    source = ROOT / f"experiments/{experiment}.toml"
    command = [sys.executable, "-m", "tlplab", "run", str(source), "--set", f"stop={stop}"]
    subprocess.run([*command, "--pcap", str(capture), "--quiet"], check=True, timeout=100, capture_output=True)
    lines = compare(capture)
    seen = {key for line in lines.values() for key in line}
    assert {"tlp", "dllp"} <= seen
    assert "response_to" in seen or experiment == "quickstart", "which only writes"


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="TLPLAB_DATA names no folder with the captures of the NetTLP paper")
def test_the_captures_of_the_paper() -> None:
    malformed = {}
    for capture in sorted(CAPTURES.glob("*.pcap")):
        lines = compare(capture)
        malformed[capture.stem] = sum("malformed" in line for line in lines.values())
    assert {name: count for name, count in malformed.items() if count} == {"pm1725-read-8blk": 46}
