# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rules that every TLP of the core must keep in every test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cocotb.utils import get_sim_time
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from trn import brief

READS = {TlpType.MEM_READ, TlpType.MEM_READ_64}
WRITES = {TlpType.MEM_WRITE, TlpType.MEM_WRITE_64}


def first_address(tlp: Tlp) -> int:
    """Address of the first byte that a request enables."""
    return int(tlp.address) + int(tlp.get_first_be_offset())


@dataclass
class Outstanding:
    """A read under way: where its next completion begins and how many bytes are missing."""

    request: Tlp
    address: int
    left: int

    def pieces(self) -> int:
        """Completions that it may still bring: they end at multiples of 64 bytes."""
        return (self.address + self.left + 63) // 64 - self.address // 64


@dataclass
class Checker:
    """Watches both directions of a card. Assertions name the rule and show the TLP."""

    function: Any
    #: Completions of 64 bytes that the hard IP can hold.
    room: int
    #: Writes of more than this many bytes are counted as data, others as write-backs and interrupts.
    small: int = 8
    #: Until then (ns) requests may come without Bus Master Enable: they were in line when it was cleared.
    in_line_until: float = 0
    reads: dict[int, Outstanding] = field(default_factory=dict)
    #: Requests that the core must complete, by requester and tag.
    owed: dict[tuple[int, int], Outstanding] = field(default_factory=dict)
    most_tags: int = 0
    #: Completions that all reads under way may bring, if each is cut wherever it may be: the most.
    most_pieces: int = 0
    sizes: set[tuple[str, int]] = field(default_factory=set)
    written: int = 0
    requested: int = 0
    completions: int = 0

    # --- from the core ---------------------------------------------------------------------------------------------

    def sent(self, tlp: Tlp) -> None:
        if tlp.is_completion():
            self._completion(tlp)
        elif tlp.fmt_type in READS | WRITES:
            self._request(tlp)
        else:
            raise AssertionError(f"the core sends memory requests and completions only: {brief(tlp)}")

    def _request(self, tlp: Tlp) -> None:
        function = self.function
        enabled = function.bus_master_enable
        assert enabled or get_sim_time("ns") < self.in_line_until, (
            f"a request while Bus Master Enable is 0: {brief(tlp)}"
        )
        assert tlp.requester_id == function.pcie_id, f"requester ID is not the function's: {brief(tlp)}"
        assert (tlp.td, tlp.ep, int(tlp.tc), tlp.th, tlp.ph) == (False, False, 0, False, 0), (
            f"reserved or unused bits: {brief(tlp)}"
        )
        wide = tlp.fmt_type in {TlpType.MEM_READ_64, TlpType.MEM_WRITE_64}
        assert wide == (tlp.address > 0xFFFFFFFF), (
            f"4 header words if, and only if, the address needs 64 bits: {brief(tlp)}"
        )
        size = tlp.length * 4
        assert (tlp.address & 0xFFF) + size <= 0x1000, f"crosses 4 KiB: {brief(tlp)}"
        if tlp.length == 1:
            assert tlp.last_be == 0, f"last byte enables of one DW: {brief(tlp)}"
            assert tlp.first_be, f"enables no byte: {brief(tlp)}"
        else:
            assert tlp.first_be in {0xF, 0xE, 0xC, 0x8}, f"first byte enables: {brief(tlp)}"
            assert tlp.last_be in {0xF, 0x7, 0x3, 0x1}, f"last byte enables: {brief(tlp)}"
        count = tlp.get_be_byte_count()
        if tlp.fmt_type in WRITES:
            assert size <= 128 << function.pcie_cap.max_payload_size, f"payload above Max Payload Size: {brief(tlp)}"
            self.sizes.add(("write", tlp.length))
            self.written += count if count > self.small else 0
            return
        assert size <= 128 << function.pcie_cap.max_read_request_size, f"above Max Read Request Size: {brief(tlp)}"
        limit = 256 if function.pcie_cap.extended_tag_field_enable else 32
        assert tlp.tag < limit, f"tag beyond {limit}: {brief(tlp)}"
        assert tlp.tag not in self.reads, f"tag in use already: {brief(tlp)}"
        if not enabled:
            return  # the hard IP drops it
        self.sizes.add(("read", tlp.length))
        self.requested += count
        self.reads[tlp.tag] = Outstanding(tlp, first_address(tlp), count)
        self.most_tags = max(self.most_tags, len(self.reads))
        pieces = sum(read.pieces() for read in self.reads.values())
        self.most_pieces = max(self.most_pieces, pieces)
        assert pieces <= self.room, f"{pieces} completions may come, the hard IP has room for {self.room}: {brief(tlp)}"

    def _completion(self, tlp: Tlp) -> None:
        key = (int(tlp.requester_id), tlp.tag)
        assert key in self.owed, f"a completion without a waiting request: {brief(tlp)}"
        owed = self.owed[key]
        assert tlp.completer_id == self.function.pcie_id, f"completer ID is not the function's: {brief(tlp)}"
        assert (tlp.tc, tlp.attr) == (owed.request.tc, owed.request.attr), (
            f"traffic class and attributes are the request's: {brief(tlp)}"
        )
        if tlp.status != CplStatus.SC:
            assert tlp.fmt_type == TlpType.CPL, f"an unsuccessful completion has no data: {brief(tlp)}"
            del self.owed[key]
            return
        self.completions += 1
        assert tlp.fmt_type == TlpType.CPL_DATA, f"a read is completed with data: {brief(tlp)}"
        assert tlp.byte_count == owed.left, f"byte count {tlp.byte_count}, {owed.left} are left: {brief(tlp)}"
        assert tlp.lower_address == owed.address & 0x7F, f"lower address of {owed.address:#x}: {brief(tlp)}"
        assert tlp.length * 4 <= 128 << self.function.pcie_cap.max_payload_size, (
            f"payload above Max Payload Size: {brief(tlp)}"
        )
        carried = min(tlp.length * 4 - (owed.address & 3), owed.left)
        owed.address += carried
        owed.left -= carried
        if owed.left:
            assert owed.address % 64 == 0, f"a completion ends inside a Read Completion Boundary: {brief(tlp)}"
        else:
            assert tlp.length == (carried + (tlp.lower_address & 3) + 3) // 4, f"more words than needed: {brief(tlp)}"
            del self.owed[key]

    # --- to the core -----------------------------------------------------------------------------------------------

    def received(self, tlp: Tlp) -> None:
        if tlp.fmt_type in READS:
            # A read that enables no byte is completed with one word and a byte count of 1.
            count = tlp.get_be_byte_count() if tlp.first_be else 1
            address = first_address(tlp) if tlp.first_be else int(tlp.address)
            self.owed[int(tlp.requester_id), tlp.tag] = Outstanding(tlp, address, count)
        elif tlp.is_completion() and not getattr(tlp, "strange", False):
            read = self.reads[tlp.tag]
            carried = tlp.length * 4 - (read.address & 3) if tlp.has_data() else read.left
            read.address += carried
            read.left -= carried
            if tlp.status != CplStatus.SC or read.left <= 0:
                del self.reads[tlp.tag]

    def quiet(self) -> None:
        """Nothing is under way any more."""
        assert not self.reads, f"reads without an end: {sorted(self.reads)}"
        assert not self.owed, f"requests without an answer: {sorted(self.owed)}"
