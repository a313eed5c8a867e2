# SPDX-License-Identifier: MIT OR Apache-2.0
"""cocotbext-pcie's own model of the UltraScale+ hard IP around `tlpdma_usp`, with the functions of a hard IP that the cases need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core.dllp import FcType
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.interface import UsPcieFrame, UsPcieTransaction
from cocotbext.pcie.xilinx.us.tlp import ErrorCode, ReqType, Tlp_us
from completion_buffer import CompletionBuffer
from shape import Fault
from trn import not_enabled, show

#: DWs of a request's descriptor.
HEADER = 4
#: DWs of a completion's descriptor.
COMPLETION = 3
#: Reads for which there still are credits when the root begins to give no more, and ns until the card knows of each.
LAST_CREDITS, CREDITS_LATE = 12, 24


class Beat(UsPcieTransaction):  # type: ignore[misc]
    """A beat that a sink sampled. The model reads whole beats, of which words past the end of a TLP may be unknown.

    So may bytes at the begin and the end of a write that it does not enable; the card says which with every beat.
    """

    def __init__(self, first: bool) -> None:
        super().__init__()
        self.first = first

    @property
    def tdata(self) -> Any:
        bits = str(self._tdata)
        lanes = int(self.tkeep).bit_length()
        counted = bits[len(bits) - 32 * lanes :]
        enables = int(self.tuser) & 0xFF
        if "X" in counted and enables and (lanes > HEADER or not self.first):
            at_begin, at_end = not_enabled(enables & 0xF, enables >> 4)
            if self.first:
                begin = 32 * (lanes - HEADER)
                counted = counted[: begin - 8 * at_begin] + "0" * 8 * at_begin + counted[begin:]
            if int(self.tlast):
                counted = "0" * 8 * at_end + counted[8 * at_end :]
        assert set(counted) <= {"0", "1"}, f"unknown bits in a beat: {bits}"
        return int(counted or "0", 2)

    @tdata.setter
    def tdata(self, value: Any) -> None:
        self._tdata = value


class Beats:
    """Makes the beats of a sink: the first one of a TLP comes after the last one of another."""

    def __init__(self) -> None:
        self.before: Beat | None = None

    def __call__(self) -> Beat:
        self.before = Beat(self.before is None or bool(int(self.before.tlast)))
        return self.before


class UspDevice(UltraScalePlusPcieDevice):  # type: ignore[misc]
    """256 bits, no straddling; drives clock and reset of the card. See `TrnDevice` for the attributes that cases use."""

    def __init__(
        self, dut: Any, buffer: CompletionBuffer, pcie_mhz: float = 250, generation: int = 1, lanes: int = 8
    ) -> None:
        #: For completions until their last beat is taken.
        self.buffer = buffer
        self.dut = dut
        self.dws = 8
        self.on_sent: list[Callable[[Tlp], None]] = []
        self.on_received: list[Callable[[Tlp], None]] = []
        self.filter: Callable[[Tlp], None] | None = None
        self._no_credit: set[FcType] = set()
        self.np_credits = 15
        # Posted requests that were taken and did not leave yet: since which change of Bus Master Enable, 0 without it.
        self._posts: deque[int] = deque()
        self._changes = 0
        dut.pcie_tfc_nph_av.value = 15
        super().__init__(
            # Gen2 x8 or x16, as far as the hard IP's own side goes: 256 bits have 125 or 250 MHz.
            pcie_generation=2,
            pcie_link_width=8 if pcie_mhz <= 125 else 16,
            user_clk_frequency=125e6 if pcie_mhz <= 125 else 250e6,
            max_payload_size=512,
            enable_client_tag=True,
            enable_extended_tag=True,
            pf0_msix_enable=True,
            pf0_msix_table_size=3,
            pf0_msix_table_offset=0x8000,
            pf0_msix_pba_offset=0x9000,
            user_clk=dut.pcie_clk,
            user_reset=dut.pcie_rst,
            rq_bus=AxiStreamBus.from_prefix(dut, "m_axis_rq"),
            pcie_rq_seq_num0=dut.pcie_rq_seq_num0,
            pcie_rq_seq_num_vld0=dut.pcie_rq_seq_num_vld0,
            rc_bus=AxiStreamBus.from_prefix(dut, "s_axis_rc"),
            cq_bus=AxiStreamBus.from_prefix(dut, "s_axis_cq"),
            pcie_cq_np_req=dut.pcie_cq_np_req,
            cc_bus=AxiStreamBus.from_prefix(dut, "m_axis_cc"),
        )
        self.rq_sink._transaction_obj, self.cc_sink._transaction_obj = Beats(), Beats()
        self._watch_sinks()
        self._watch_completions()
        self.upstream_port.max_link_speed = generation
        self.upstream_port.max_link_width = lanes
        function = self.function = self.functions[0]
        function.vendor_id, function.device_id, function.class_code = 0x71AB, 0x7D0A, 0x120000
        function.configure_bar(0, 64 << 10)
        function.configure_bar(2, 1 << 20, ext=True, prefetch=True)
        write = function.write_config_register

        async def write_and_show(reg: int, data: int, mask: int) -> None:
            enabled = function.bus_master_enable
            await write(reg, data, mask)
            self._changes += enabled != function.bus_master_enable
            self.show_configuration()

        def master(enable: bool) -> None:
            """Sets Bus Master Enable at once."""
            self._changes += enable != function.bus_master_enable
            function.bus_master_enable = enable
            self.show_configuration()

        self.master = master

        function.write_config_register = write_and_show
        self.show_configuration()

    def show_configuration(self) -> None:
        show(self.dut, self.function)

    async def send(self, tlp: Tlp) -> None:
        for see in self.on_sent:
            see(tlp)
        # Reads have had their credits when they came.
        while tlp.get_fc_type() in self.no_credit - {FcType.NP}:
            await Timer(20, "ns")
        await super().send(tlp)
        if tlp.is_posted():
            self._posts.popleft()

    @property
    def no_credit(self) -> set[FcType]:
        """Classes for which the root gives no credits. Writes and completions are held back, reads the card must hold."""
        return self._no_credit

    @no_credit.setter
    def no_credit(self, kinds: set[FcType]) -> None:
        if (FcType.NP in kinds) != (FcType.NP in self._no_credit):
            self._set_np_credits(LAST_CREDITS if FcType.NP in kinds else 15)
        self._no_credit = set(kinds)

    def more_reads(self, count: int) -> None:
        """Credits for so many."""
        self._set_np_credits(self.np_credits + count)

    def _set_np_credits(self, credit: int) -> None:
        self.np_credits = credit

        async def show_late() -> None:
            await Timer(CREDITS_LATE, "ns")
            self.dut.pcie_tfc_nph_av.value = credit

        cocotb.start_soon(show_late())

    def _watch_sinks(self) -> None:
        """Check the properties that the model does not check: reads without credits, requests that it drops, completions that pass others."""
        requests, completions = self.rq_sink, self.cc_sink
        take_request, take_completion, next_request = requests._sink_frame, completions._sink_frame, requests.recv

        def request(frame: UsPcieFrame) -> None:
            if frame.data[2] >> 11 & 0xF != ReqType.MEM_READ:
                self._posts.append(self._changes if self.function.bus_master_enable else 0)
            elif FcType.NP in self.no_credit:
                assert self.np_credits, "a read without credits (pcie_tfc_nph_av)"
                self._set_np_credits(self.np_credits - 1)
            take_request(frame)

        def completion(frame: UsPcieFrame) -> None:
            refused, dws = frame.data[1] >> 11 & 7, frame.data[1] & 0x7FF
            assert self._changes not in self._posts, "a completion passes a posted request"
            assert len(frame) == (8 if refused else COMPLETION + dws), f"a completion of {len(frame)} DWs: {frame}"
            take_completion(frame)

        async def receive() -> UsPcieFrame:
            frame = await next_request()
            if not self.function.bus_master_enable:
                tlp = Tlp(Tlp_us.unpack_us_rq(frame))
                for see in self.on_sent:
                    see(tlp)
                if tlp.is_posted():
                    self._posts.popleft()
            return frame

        requests._sink_frame, completions._sink_frame, requests.recv = request, completion, receive

    def _watch_completions(self) -> None:
        """The model's own buffer is one of 256 completions, and forgets them before they are taken: ours is in its place."""
        self.rx_buf_cplh_fc_limit = self.rx_buf_cpld_fc_limit = 1 << 30
        give = self.rc_queue.put_nowait

        def give_if_kept(tlp: Tlp) -> None:
            if self.buffer.arrives(tlp):
                give(tlp)

        self.rc_queue.put_nowait = give_if_kept

        async def leave() -> None:
            edge, bus = RisingEdge(self.dut.pcie_clk), self.rc_source.bus
            while True:
                await self.buffer.filled.wait()
                await edge
                if bus.tvalid.value and bus.tready.value and bus.tlast.value:
                    self.buffer.leaves()

        cocotb.start_soon(leave())

    def forget(self, tag: int) -> None:
        """The hard IP's own time-out for a read whose completions do not come."""
        self.active_request[tag] = None

    async def between_tlps(self) -> None:
        """This model cannot be reset within a TLP: until there is none on any stream."""
        ends = (self.rq_sink, self.rc_source, self.cq_source, self.cc_sink)
        await FallingEdge(self.dut.pcie_clk)
        while any(end.active for end in ends):
            await FallingEdge(self.dut.pcie_clk)

    def reset_interface(self) -> None:
        """Everything under way inside the hard IP is lost; the configuration stays."""
        for queue in (self.rq_np_queue, self.rc_queue, self.cq_queue, self.cq_np_queue, self.rq_seq_num):
            while not queue.empty():
                queue.get_nowait()
        for end in (self.rq_sink, self.rc_source, self.cq_source, self.cc_sink):
            end.clear()
            end.queue_occupancy_bytes = end.queue_occupancy_frames = 0
        self._posts.clear()
        self.buffer.clear()
        self.cq_np_req_count = self.cpld_credit_count = self.rx_buf_cplh_fc_count = self.rx_buf_cpld_fc_count = 0
        self.active_request = [None] * len(self.active_request)

    async def upstream_recv(self, tlp: Tlp) -> None:
        if tlp.is_completion() and self.filter is not None:
            tlp.release_fc()
            self.filter(tlp)
        else:
            await self._give(tlp)

    async def _give(self, tlp: Tlp) -> None:
        if tlp.is_completion() and int(self.dut.pcie_rst.value):
            return  # lost
        if tlp.is_completion() or self.function.match_bar(tlp.address):
            for see in self.on_received:
                see(tlp)
        await super().upstream_recv(tlp)
        self.show_configuration()

    def deliver(self, tlp: Tlp, bar: int = 0) -> None:
        """As `TrnDevice.deliver`. `tlp.frame`, if there is one, is the frame that the stream brings in its place."""
        stream = self.rc_source if tlp.is_completion() else self.cq_source
        frame = getattr(tlp, "frame", None)
        # The model knows no locked reads, keeps those of I/O space for itself, and CQ has no poison: an end that is not to be believed is next to it.
        passed_on = tlp.fmt_type in (TlpType.MEM_READ_LOCKED_64, TlpType.IO_READ)
        if frame is None and (passed_on or (tlp.ep and not tlp.is_completion())):
            made = Tlp_us(tlp)
            made.bar_id, made.discontinue = bar, tlp.ep
            frame = made.pack_us_cq()
        if frame is None:
            cocotb.start_soon(self._give(tlp))
        elif not tlp.is_completion() or self.buffer.arrives(tlp):
            cocotb.start_soon(stream.send(frame))

    @staticmethod
    def credit_classes() -> list[FcType]:
        return [FcType.P, FcType.NP, FcType.CPL]

    def _pause(self, ends: list[Any], pauses: Iterator[bool] | None) -> None:
        for end in ends:
            if pauses is None:
                end.clear_pause_generator()
            else:
                end.set_pause_generator(pauses)

    @property
    def rx_pause(self) -> None:
        return None

    @rx_pause.setter
    def rx_pause(self, pauses: Iterator[bool] | None) -> None:
        self._pause([self.rc_source, self.cq_source], pauses)

    @property
    def tx_pause(self) -> None:
        return None

    @tx_pause.setter
    def tx_pause(self, pauses: Iterator[bool] | None) -> None:
        self._pause([self.rq_sink, self.cc_sink], pauses)

    @property
    def intx(self) -> bool:
        return bool(self.dut.intx.value)


# --- what only this hard IP may do wrong ---------------------------------------------------------------------------------


def ended_early(frame: UsPcieFrame, dws: int) -> UsPcieFrame:
    """Cut a frame to so many DWs."""
    frame.data, frame.byte_en, frame.parity = frame.data[:dws], frame.byte_en[:dws], frame.parity[:dws]
    return frame


def given_up(code: ErrorCode) -> Fault:
    """The hard IP's own word that a read is over, in place of its completions. But for the tag it means nothing."""
    told: set[int] = set()

    def fault(tlp: Tlp) -> list[Tlp]:
        if tlp.tag in told:
            return []
        told.add(tlp.tag)
        made = Tlp_us(tlp)
        made.error_code, made.status = code, CplStatus.UR
        made.set_data(b"")
        made.length, made.byte_count, made.lower_address = 200, 0x1234, 0x5A8
        tlp.frame = made.pack_us_rc()
        return [tlp]

    return fault


def cut_short(part: Callable[[int], int], discontinue: bool = True) -> Fault:
    """The last completion of a read ends before its Dword Count says, after part of its DWs."""

    def fault(tlp: Tlp) -> list[Tlp]:
        if tlp.byte_count <= 4 * tlp.length - (tlp.lower_address & 3):
            made = Tlp_us(tlp)
            made.discontinue = discontinue
            tlp.frame = ended_early(made.pack_us_rc(), COMPLETION + part(tlp.length))
        return [tlp]

    return fault


#: As `FAULTS` of the cases: what to do, code in the record, bit of ERRORS. 4 is a mismatch, 3 is poison.
USP_FAULTS: dict[str, tuple[Fault, int, int]] = {
    "hard IP's time-out": (given_up(ErrorCode.TIMEOUT), 4, 3),
    "Function Level Reset": (given_up(ErrorCode.FLR), 4, 3),
    "cut in the middle": (cut_short(lambda dws: dws // 2), 3, 2),
    "cut in its first beat": (cut_short(lambda _: 2), 3, 2),
    "broken off when all has come": (cut_short(lambda dws: dws), 3, 2),
    "cut before its last DW": (cut_short(lambda dws: dws - 1, discontinue=False), 3, 2),
}
