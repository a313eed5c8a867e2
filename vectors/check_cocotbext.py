#!/usr/bin/env python3
"""Compares the vectors with cocotbext-pcie, field by field, where it supports the type.

    pip install cocotbext-pcie==0.2.16 && python3 vectors/check_cocotbext.py

Left out: messages (it cannot pack them), prefixes and deferrable writes (it does not know them), digests (it takes them for payload). It never
judges a TLP, so vectors that expect an error are left out, too. Its get_lower_address is wrong for unaligned reads and not used here.
"""

import json
import sys
from pathlib import Path

try:
    from cocotbext.pcie.core.dllp import Dllp, crc16
    from cocotbext.pcie.core.tlp import Tlp, TlpAt, TlpAttr, TlpFmt
except ImportError:
    sys.exit("cocotbext-pcie is not installed: pip install cocotbext-pcie==0.2.16")

HERE = Path(__file__).parent
KINDS = {
    "MRd": "MEM_READ", "MRdLk": "MEM_READ_LOCKED", "MWr": "MEM_WRITE", "IORd": "IO_READ", "IOWr": "IO_WRITE",
    "CfgRd0": "CFG_READ_0", "CfgRd1": "CFG_READ_1", "CfgWr0": "CFG_WRITE_0", "CfgWr1": "CFG_WRITE_1",
    "Cpl": "CPL", "CplD": "CPL_DATA", "CplLk": "CPL_LOCKED", "CplDLk": "CPL_LOCKED_DATA",
    "FetchAdd": "FETCH_ADD", "Swap": "SWAP", "CAS": "CAS",
}  # fmt: skip
ATS = {"translated": TlpAt.TRANSLATED, "translation request": TlpAt.TRANSLATE_REQ}


def tlp_differences(vector: dict) -> list[str]:
    """The differences between cocotbext-pcie's view and the vector."""
    meaning = vector["meaning"]
    tlp = Tlp.unpack(bytes.fromhex(vector["bytes"]))
    hint = meaning.get("hint")
    seen = {"kind": tlp.fmt_type.name.removesuffix("_64")}
    said = {"kind": KINDS[meaning["kind"]]}
    width = vector.get("options", {}).get("tag_bits", 10)
    seen |= {"requester": str(tlp.requester_id), "tag": tlp.tag & ((1 << width) - 1), "tc": int(tlp.tc)}
    said |= {"requester": meaning["requester"], "tag": meaning["tag"], "tc": meaning.get("tc", 0)}
    if meaning["kind"] == "MWr" and hint:
        seen["tag"] = tlp.tag & 0xFF
        said["tag"] = hint["st"]
    if not vector.get("canonical"):
        seen |= {"attr": tlp.attr, "ln": tlp.ln, "th": tlp.th, "at": tlp.at}
        attr = sum(TlpAttr[name] for name in meaning.get("attr", []))
        said |= {"attr": attr, "ln": False, "th": bool(hint), "at": ATS.get(meaning.get("at"), TlpAt.DEFAULT)}
    seen |= {"poisoned": tlp.ep, "digest": tlp.td}
    said |= {"poisoned": meaning.get("poisoned", False), "digest": False}
    if "length" in meaning:
        seen["length"] = tlp.length
        said["length"] = meaning["length"]
    if "operand" in meaning:
        seen["length"] = tlp.length
        said["length"] = meaning["operand"] // 4 * (2 if meaning["kind"] == "CAS" else 1)
    if "address" in meaning:
        address = int(meaning["address"], 16)
        seen |= {"address": tlp.address, "four DW": tlp.fmt in (TlpFmt.FOUR_DW, TlpFmt.FOUR_DW_DATA)}
        said |= {"address": address, "four DW": address >> 32 != 0}
    if hint:
        seen["ph"] = tlp.ph
        said["ph"] = hint["ph"]
    byte7_is_tag = hint and meaning["kind"] in ("MRd", "FetchAdd", "Swap", "CAS")
    if byte7_is_tag:
        seen["steering tag"] = tlp.last_be << 4 | tlp.first_be
        said["steering tag"] = hint["st"]
    for field in ("first_be", "last_be"):
        if field in meaning and not byte7_is_tag:
            seen[field] = getattr(tlp, field)
            said[field] = meaning[field]
    if "register" in meaning:
        seen |= {"register": tlp.address, "target": str(tlp.completer_id)}
        said |= {"register": int(meaning["register"], 16), "target": meaning["target"]}
    if "byte_count" in meaning:
        seen |= {"completer": str(tlp.completer_id), "status": tlp.status.name, "bcm": tlp.bcm}
        said |= {"completer": meaning["completer"], "status": meaning["status"], "bcm": meaning.get("bcm", False)}
        for field in ("byte_count", "lower_address"):
            seen[field] = getattr(tlp, field)
            said[field] = meaning[field]
    found = [f"{key}: {seen[key]!r}, but the vector says {said[key]!r}" for key in said if seen[key] != said[key]]
    if tlp.pack().hex() != vector["bytes"] and not vector.get("canonical"):
        found.append(f"packs as {tlp.pack().hex()}")
    return found


def dllp_differences(vector: dict) -> list[str]:
    """The same for a DLLP."""
    meaning = vector["meaning"]
    data = bytes.fromhex(vector["bytes"])
    if crc16(data) != 0x556F:
        return ["the CRC is wrong"]
    if meaning["kind"] == "Vendor":
        return []
    dllp = Dllp.unpack_crc(data)
    names = {"sequence": "seq", "vc": "vc", "header_scale": "hdr_scale", "header": "hdr_fc", "data_scale": "data_scale"}
    names |= {"data": "data_fc", "ack": "feature_ack", "supported": "feature_support"}
    pairs = [(key, getattr(dllp, name), meaning[key]) for key, name in names.items() if key in meaning]
    return [f"{key}: {seen!r}, but the vector says {said!r}" for key, seen, said in pairs if seen != said]


def supported(vector: dict) -> bool:
    """True if cocotbext-pcie knows this TLP."""
    meaning = vector.get("meaning", {})
    return meaning.get("kind") in KINDS and not meaning.get("prefixes") and not meaning.get("digest")


def main() -> int:
    """Prints differences; the number of vectors that differ is the exit status."""
    tlps = json.loads((HERE / "tlp.json").read_text())["vectors"]
    dllps = json.loads((HERE / "dllp.json").read_text())["vectors"]
    compared = [(v, tlp_differences(v)) for v in tlps if supported(v)]
    compared += [(v, dllp_differences(v)) for v in dllps if "meaning" in v]
    differing = [(vector["name"], found) for vector, found in compared if found]
    for name, found in differing:
        print(f"{name}: {'; '.join(found)}")
    print(f"{len(compared)} of {len(tlps) + len(dllps)} vectors compared with cocotbext-pcie, {len(differing)} differ")
    return min(len(differing), 125)


if __name__ == "__main__":
    sys.exit(main())
