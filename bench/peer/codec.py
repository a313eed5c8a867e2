"""The peer's codec: `codec.py parse|emit|lcrc COUNT`, as crates/wire/examples/codec.rs. Prints one line of JSON.

The CRC's peer is zlib's: LCRC has the polynomial and the bit order of Ethernet.
"""

import json
import sys
import time
import zlib

from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId

PAYLOAD = bytes(i * 167 + 13 & 0xFF for i in range(256))


def write() -> Tlp:
    tlp = Tlp()
    tlp.fmt_type = TlpType.MEM_WRITE_64
    tlp.requester_id = PcieId(1, 0, 0)
    tlp.tag = 5
    tlp.set_addr_be_data(0x1_2345_6000, PAYLOAD)
    return tlp


def main() -> int:
    what, count = sys.argv[1], int(sys.argv[2])
    tlp = write()
    packed = bytes(tlp.pack())
    framed = b"\x00\x05" + packed
    call = {"parse": lambda: Tlp.unpack(packed), "emit": tlp.pack, "lcrc": lambda: zlib.crc32(framed)}[what]
    started = time.process_time()
    for _ in range(count):
        call()
    cpu = time.process_time() - started
    print(json.dumps({"count": count, "bytes": count * len(packed), "cpu": cpu}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
