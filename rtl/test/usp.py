"""cocotbext-pcie's own model of the UltraScale+ hard IP around `tlpdma_usp`, with what the cases ask of a hard IP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, Timer
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core.dllp import FcType
from cocotbext.pcie.core.tlp import Tlp
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.interface import UsPcieTransaction
from trn import not_enabled, show

#: DWs of a request's descriptor.
HEADER = 4


class Beat(UsPcieTransaction):  # type: ignore[misc]
    """What a sink sampled. The model reads whole beats, of which words past the end of a TLP may be unknown.

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

    def __init__(self, dut: Any, pcie_mhz: float = 250, generation: int = 1, lanes: int = 8) -> None:
        self.dut = dut
        self.dws = 8
        self.on_sent: list[Callable[[Tlp], None]] = []
        self.on_received: list[Callable[[Tlp], None]] = []
        self.filter: Callable[[Tlp], None] | None = None
        #: Classes whose TLPs are held back as if the root had given no credits; on RQ they hold what is behind them, too.
        self.no_credit: set[FcType] = set()
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
        self.upstream_port.max_link_speed = generation
        self.upstream_port.max_link_width = lanes
        function = self.function = self.functions[0]
        function.vendor_id, function.device_id, function.class_code = 0x1DE5, 0x7D0A, 0x120000
        function.configure_bar(0, 64 << 10)
        function.configure_bar(2, 1 << 20, ext=True, prefetch=True)
        write = function.write_config_register

        async def write_and_show(reg: int, data: int, mask: int) -> None:
            await write(reg, data, mask)
            self.show_configuration()

        function.write_config_register = write_and_show
        self.show_configuration()

    def show_configuration(self) -> None:
        show(self.dut, self.function)

    async def send(self, tlp: Tlp) -> None:
        for see in self.on_sent:
            see(tlp)
        while tlp.get_fc_type() in self.no_credit:
            await Timer(20, "ns")
        await super().send(tlp)

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

    def deliver(self, tlp: Tlp, bar: int = 0) -> None:  # noqa: ARG002
        """As `TrnDevice.deliver`; this model looks for the BAR itself."""
        cocotb.start_soon(self._give(tlp))

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
