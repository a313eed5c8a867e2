# SPDX-License-Identifier: MIT OR Apache-2.0
"""A TRN-style hard IP (Virtex-5/6) as an end point of cocotbext-pcie.

Above: a `SimPort` to cocotbext-pcie's root complex, with its flow control; configuration requests are answered here.
Below: the `trn_*` and `cfg_*` ports of a top of `rtl/top`, 64 or 128 bit wide, one TLP to a start of packet.

The behaviour of real interfaces with which a core must live is here, too: either side pauses in the middle of a TLP, the next TLP to
deliver is chosen while the one before is on the interface (so one non-posted request may still come after `trn_rnp_ok`
fell), classes without room upstream are shown in `trn_tbuf_av`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from cocotb.triggers import Event, RisingEdge, Timer
from cocotbext.pcie.core.caps import MsixCapability
from cocotbext.pcie.core.device import Device
from cocotbext.pcie.core.dllp import FcType
from cocotbext.pcie.core.endpoint import Endpoint
from cocotbext.pcie.core.tlp import Tlp, TlpType
from completion_buffer import CompletionBuffer

MEMORY = {TlpType.MEM_READ, TlpType.MEM_READ_64, TlpType.MEM_WRITE, TlpType.MEM_WRITE_64}
CLASS_BIT = {FcType.P: 0, FcType.NP: 1, FcType.CPL: 2}


class TrnFunction(Endpoint):
    """tlpdma's configuration space: the settings that a user of the hard IP makes in its wizard."""

    def __init__(self) -> None:
        super().__init__()
        self.vendor_id = 0x71AB
        self.device_id = 0x7D0A
        self.class_code = 0x120000
        self.interrupt_pin = 1
        self.pcie_cap.extended_tag_supported = True
        self.pcie_cap.max_payload_size_supported = 2
        self.configure_bar(0, 64 << 10)
        self.configure_bar(2, 1 << 20, ext=True, prefetch=True)
        self.msix_cap = MsixCapability()
        self.msix_cap.msix_table_size = 3
        self.msix_cap.msix_table_offset = 0x8000
        self.msix_cap.msix_pba_offset = 0x9000
        self.register_capability(self.msix_cap)
        self.changed: Callable[[], None] = lambda: None

    async def write_config_register(self, reg: int, data: int, mask: int) -> None:
        await super().write_config_register(reg, data, mask)
        self.changed()


def not_enabled(first: int, last: int) -> tuple[int, int]:
    """The number of bytes at the begin and at the end of a write's data that its byte enables leave out; `last` is 0 for one DW."""
    stop = first | 0x10
    return (stop & -stop).bit_length() - 1, 4 - (last or first).bit_length()


def show(dut: Any, function: Any) -> None:
    """Drives the state of the configuration space to the card's own inputs."""
    dut.cfg_id.value = int(function.pcie_id)
    dut.cfg_mps.value = function.pcie_cap.max_payload_size
    dut.cfg_mrrs.value = function.pcie_cap.max_read_request_size
    dut.cfg_bus_master.value = int(function.bus_master_enable)
    dut.cfg_ext_tag.value = int(function.pcie_cap.extended_tag_field_enable)
    dut.cfg_msix_enable.value = int(function.msix_cap.msix_enable)
    dut.cfg_msix_mask.value = int(function.msix_cap.msix_function_mask)
    dut.cfg_intx_disable.value = int(function.interrupt_disable)


class TrnDevice(Device):
    """The hard IP. `rx_pause` and `tx_pause`, iterators of bools, hold the interface for a cycle where they give True."""

    def __init__(
        self,
        dut: Any,
        width: int,
        generation: int = 1,
        lanes: int = 8,
        places: int = 8,
        buffer: CompletionBuffer | None = None,
    ) -> None:
        #: For completions until their header is taken: room for the one on the interface is beside it.
        self.buffer = buffer
        self.function = TrnFunction()
        super().__init__(eps=self.function)
        self.upstream_port.max_link_speed = generation
        self.upstream_port.max_link_width = lanes
        self.dut = dut
        self.dws = width // 32
        #: TLPs of each class that the transmit buffer holds.
        self.places = places
        self.rx_pause: Iterator[bool] | None = None
        self.tx_pause: Iterator[bool] | None = None
        #: Classes whose TLPs are held back as if the root had given no credits.
        self.no_credit: set[FcType] = set()
        #: Called with each TLP from the core, and with each that it took, when its last beat passed; with completions
        #: when their header did: the hard IP has all of them, and from then on their tags may be used again.
        self.on_sent: list[Callable[[Tlp], None]] = []
        self.on_received: list[Callable[[Tlp], None]] = []
        #: Takes the completions, if set, and delivers what it likes when it likes.
        self.filter: Callable[[Tlp], None] | None = None
        self.beats_in = 0
        self.beats_out = 0
        self._rx: deque[tuple[Tlp, int]] = deque()
        self._tx: deque[Tlp] = deque()
        self._tx_event = Event()
        self.reset_interface()
        self.function.changed = self.show_configuration
        self.show_configuration()
        cocotb.start_soon(self._run_interface())
        cocotb.start_soon(self._run_upstream())

    async def between_tlps(self) -> None:
        """Any moment will do."""

    def reset_interface(self) -> None:
        """Everything under way inside the hard IP is lost; the configuration stays."""
        self._rx.clear()
        if self.buffer is not None:
            self.buffer.clear()
        self._tx.clear()
        self._room = [self.places] * 3
        for signal in ("rsrc_rdy", "rsof", "reof", "rd", "rrem", "rbar", "tdst_rdy", "tbuf_av"):
            getattr(self.dut, f"trn_{signal}").value = 0

    def show_configuration(self) -> None:
        show(self.dut, self.function)

    # --- from the root ---------------------------------------------------------------------------------------------

    async def upstream_recv(self, tlp: Tlp) -> None:
        """Take a TLP of the root: this class answers configuration; requests that hit a BAR and completions go to the core."""
        if tlp.fmt_type in MEMORY:
            hit = self.function.match_bar(tlp.address)
            if hit is None:
                await super().upstream_recv(tlp)
            else:
                self._rx.append((tlp, hit[0]))
        elif tlp.is_completion():
            if self.filter is not None:
                tlp.release_fc()
                self.filter(tlp)
            else:
                self.deliver(tlp)
        else:
            # With what it captured (its bus number), the configuration that the core sees may change.
            await super().upstream_recv(tlp)
            self.show_configuration()

    def deliver(self, tlp: Tlp, bar: int = 0) -> None:
        """Give a TLP to the core as it is, however wrong."""
        if self.buffer is None or not tlp.is_completion() or self.buffer.arrives(tlp):
            self._rx.append((tlp, bar))

    @staticmethod
    def credit_classes() -> list[FcType]:
        return list(CLASS_BIT)

    def forget(self, tag: int) -> None:
        """This hard IP does not look at completions."""

    def pending(self) -> int:
        """TLPs waiting for the core."""
        return len(self._rx)

    def _next_delivery(self, non_posted: bool) -> tuple[Tlp, int] | None:
        """The first TLP that may go: posted requests and completions pass held non-posted requests."""
        for place, (tlp, bar) in enumerate(self._rx):
            if non_posted or not tlp.is_nonposted():
                del self._rx[place]
                return tlp, bar
        return None

    # --- to the root -----------------------------------------------------------------------------------------------

    def _next_upstream(self) -> Tlp | None:
        """The first TLP that has credits and may pass the TLPs that wait before it (PCI Express ordering, no relaxed ordering)."""
        blocked: set[FcType] = set()
        credits_of = self.upstream_port.fc_state[0]
        for place, tlp in enumerate(self._tx):
            kind = tlp.get_fc_type()
            if kind in self.no_credit or not credits_of.tx_tlp_has_credit(tlp):
                blocked.add(kind)
            elif kind not in blocked and FcType.P not in blocked:
                del self._tx[place]
                return tlp
        return None

    async def _run_upstream(self) -> None:
        while True:
            tlp = self._next_upstream()
            if tlp is None:
                self._tx_event.clear()
                if self._tx:  # without credits: look again
                    await Timer(20, "ns")
                else:
                    await self._tx_event.wait()
                continue
            await self.upstream_port.send(tlp)
            self._room[CLASS_BIT[tlp.get_fc_type()]] += 1

    def _sent(self, dws: list[int]) -> None:
        tlp = Tlp.unpack(b"".join(dw.to_bytes(4, "big") for dw in dws))
        tlp.data = bytearray(tlp.data)
        assert tlp.get_payload_size_dw() == (tlp.length if tlp.has_data() else 0), (
            f"length is not that of the payload: {brief(tlp)}"
        )
        for see in self.on_sent:
            see(tlp)
        if not self.function.bus_master_enable and not tlp.is_completion():
            # As real ones do: requests without Bus Master Enable go nowhere.
            self._room[CLASS_BIT[tlp.get_fc_type()]] += 1
            return
        self._tx.append(tlp)
        self._tx_event.set()

    # --- the interface ---------------------------------------------------------------------------------------------

    def _to_beats(self, tlp: Tlp, bar: int) -> deque[tuple[int, int, int, int, int]]:
        """(data, start, end, words that count - 1, BAR) a beat."""
        raw = bytes(tlp.pack())
        step = 4 * self.dws
        beats: deque[tuple[int, int, int, int, int]] = deque()
        for at in range(0, len(raw), step):
            part = raw[at : at + step]
            last = at + step >= len(raw)
            beats.append(
                (int.from_bytes(part.ljust(step, b"\xa5"), "big"), int(at == 0), int(last), len(part) // 4 - 1, bar)
            )
        return beats

    async def _run_interface(self) -> None:
        dut = self.dut
        edge = RisingEdge(dut.pcie_clk)
        rsrc, rdst, rnp = dut.trn_rsrc_rdy, dut.trn_rdst_rdy, dut.trn_rnp_ok
        tsrc, tdst, tbuf = dut.trn_tsrc_rdy, dut.trn_tdst_rdy, dut.trn_tbuf_av
        beats: deque[tuple[int, int, int, int, int]] = deque()
        on_wire: tuple[Tlp, int] | None = None
        staged: tuple[Tlp, int] | None = None
        driven = accepting = shown = before = 0
        dws: list[int] = []
        held: tuple[int, ...] | None = None
        while True:
            await edge
            if dut.pcie_rst.value:
                beats.clear()
                dws.clear()
                on_wire = staged = held = None
                rsrc.value = tdst.value = tbuf.value = driven = accepting = shown = 0
                continue

            # What the core took and gave in the cycle that ends here.
            if driven and rdst.value:
                assert on_wire is not None
                tlp = on_wire[0]
                before = 0 if beats.popleft()[1] else before + 1
                self.beats_in += 1
                if before == -(-3 // self.dws) - 1 if tlp.is_completion() else not beats:
                    if self.buffer is not None and tlp.is_completion():
                        self.buffer.leaves()
                    for see in self.on_received:
                        see(tlp)
                if not beats:
                    tlp.release_fc()
                    on_wire = None
            if tsrc.value:
                beat = self._beat_out(dws)
                assert held is None or held == beat, "the core changed a beat that was not taken yet"
                held = None if accepting else beat
                if accepting:
                    self.beats_out += 1
                    self._take(beat, dws)
            else:
                assert held is None, "the core took back a beat"

            # What is driven in the next one.
            if on_wire is None:
                on_wire, staged = staged or self._next_delivery(bool(rnp.value)), None
                if on_wire is not None:
                    beats = self._to_beats(*on_wire)
            if staged is None and on_wire is not None and beats[0][1]:
                staged = self._next_delivery(bool(rnp.value))
            paused = self.rx_pause is not None and next(self.rx_pause) and not (driven and not rdst.value)
            valid = int(bool(beats) and not paused)
            if valid:
                data, start, end, rem, bar = beats[0]
                dut.trn_rd.value = data
                dut.trn_rsof.value = start
                dut.trn_reof.value = end
                dut.trn_rrem.value = rem if end else self.dws - 1
                dut.trn_rbar.value = bar
            if valid != driven:
                rsrc.value = driven = valid
            accept = int(not (self.tx_pause is not None and next(self.tx_pause)))
            if accept != accepting:
                tdst.value = accepting = accept
            show = sum(1 << bit for bit, room in enumerate(self._room) if room)
            if show != shown:
                tbuf.value = shown = show

    def _beat_out(self, before: list[int]) -> tuple[int, int, int, int]:
        """(data, start, end, words that count - 1) that the core shows; `before`: the words of this TLP until now.

        Words past the end of a TLP mean nothing, nor do bytes at the begin and the end of a write that it does not enable.
        """
        dut = self.dut
        start, end = int(dut.trn_tsof.value), int(dut.trn_teof.value)
        words = int(dut.trn_trem.value) + 1
        assert end or words == self.dws, f"{words} words in a beat that is not the last"
        value = dut.trn_td.value
        if not value.is_resolvable:
            bits = str(value)[: 32 * words]
            header = before or [int(bits[at : at + 32], 2) for at in (0, 32)]
            write = header[0] >> 24 in (0x40, 0x60)
            at_begin, at_end = not_enabled(header[1] & 0xF, header[1] >> 4 & 0xF) if write else (0, 0)
            payload = 32 * ((4 if header[0] & 1 << 29 else 3) - len(before))
            if 0 <= payload < len(bits):
                bits = bits[:payload] + "0" * 8 * at_begin + bits[payload + 8 * at_begin :]
            bits = bits[: len(bits) - 8 * at_end] if end else bits
            assert set(bits) <= {"0", "1"}, f"unknown bits in a beat: {bits}"
            return int(bits.ljust(32 * self.dws, "0"), 2), start, end, words - 1
        past = 32 * (self.dws - words)
        return int(value) >> past << past, start, end, words - 1

    def _take(self, beat: tuple[int, int, int, int], dws: list[int]) -> None:
        data, start, end, rem = beat
        assert bool(start) == (not dws), "start of packet " + ("missing" if not dws else "in the middle of a TLP")
        if start:
            # It counts from its first beat on; bit 6 of the first byte says that it has data.
            first = data >> (32 * self.dws - 8)
            bit = 2 if first & 0x1F in (0x0A, 0x0B) else 0 if first & 0x40 else 1
            assert self._room[bit], f"a TLP ({first:#04x}) without room for its class (trn_tbuf_av)"
            self._room[bit] -= 1
        words = rem + 1 if end else self.dws
        for place in range(words):
            dws.append(data >> 32 * (self.dws - 1 - place) & 0xFFFFFFFF)
        if end:
            self._sent(dws)
            dws.clear()

    @property
    def intx(self) -> bool:
        return bool(self.dut.intx.value)


def brief(tlp: Tlp) -> str:
    """A TLP's header in a line."""
    text = f"{tlp.fmt_type.name} tag {tlp.tag:#x} length {tlp.length} DW"
    if tlp.is_completion():
        return (
            f"{text} {tlp.status.name} byte count {tlp.byte_count} lower address {tlp.lower_address:#x}"
            f" requester {tlp.requester_id} completer {tlp.completer_id}{' poisoned' if tlp.ep else ''}"
        )
    return f"{text} address {tlp.address:#x} byte enables {tlp.first_be:x}/{tlp.last_be:x} requester {tlp.requester_id}"
