// SPDX-License-Identifier: MIT OR Apache-2.0
// TRN shim: between the TLP queues of tlpdma_core and a hard IP with a transaction interface of W = 64 or 128
// bits (Virtex-5/6 style, active high). Both directions in `pcie_clk`; they share nothing, so that one never
// waits for the other. See trn_rx.sv and trn_tx.sv for the rules of each.
module trn_shim #(
    parameter int W = 64,
    parameter int TAGS = 32
) (
    input logic pcie_clk,
    input logic pcie_rst,

    // hard IP
    input  logic                    trn_rsrc_rdy,
    input  logic                    trn_rsof,
    input  logic                    trn_reof,
    input  logic [           W-1:0] trn_rd,
    input  logic [$clog2(W/32)-1:0] trn_rrem,
    input  logic [             2:0] trn_rbar,
    output logic                    trn_rdst_rdy,
    output logic                    trn_rnp_ok,
    output logic                    trn_tsrc_rdy,
    output logic                    trn_tsof,
    output logic                    trn_teof,
    output logic [           W-1:0] trn_td,
    output logic [$clog2(W/32)-1:0] trn_trem,
    input  logic                    trn_tdst_rdy,
    input  logic [             2:0] trn_tbuf_av,

    // core, transmit
    input tx_t tx,
    output tx_ready_t tx_ready,
    // core, receive
    output rx_t rx,
    input rx_ready_t rx_ready,

    output logic idle  // no part of a TLP is in the shim
);
  localparam int TW = $clog2(TAGS);
  logic rx_idle, tx_idle;

  assign tx_ready.gone = 1'b0;  // TRN does not report it
  assign trn_rnp_ok    = rx_ready.np;
  assign idle          = rx_idle && tx_idle;

  // The lane of a read's data: written when the read leaves, looked up when its completions come.
  logic [2:0] lanes[0:TAGS-1];
  logic [7:0] look_tag;
  always_ff @(posedge pcie_clk) if (tx.np_valid && tx_ready.np) lanes[tx.np_hdr[tlpdma_pkg::TAG_LSB+:TW]] <= tx.np_lane;

  trn_rx #(
      .W(W)
  ) receive (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .src_rdy(trn_rsrc_rdy),
      .sof(trn_rsof),
      .eof(trn_reof),
      .data(trn_rd),
      .rem(trn_rrem),
      .bar(trn_rbar),
      .dst_rdy(trn_rdst_rdy),
      .look_tag(look_tag),
      .look_lane(lanes[look_tag[TW-1:0]]),
      .req_valid(rx.req_valid),
      .req_hdr(rx.req_hdr),
      .req_bar(rx.req_bar),
      .req_ready(rx_ready.req),
      .req_data_valid(rx.req_data_valid),
      .req_data(rx.req_data),
      .req_data_ready(rx_ready.req_data),
      .cpl_valid(rx.cpl_valid),
      .cpl_hdr(rx.cpl_hdr),
      .cpl_ready(rx_ready.cpl),
      .cpl_data_valid(rx.cpl_data_valid),
      .cpl_data(rx.cpl_data),
      .cpl_data_ready(rx_ready.cpl_data),
      .idle(rx_idle)
  );

  trn_tx #(
      .W(W)
  ) transmit (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .hdr_valid(tx.hdr_valid),
      .hdr(tx.hdr),
      .hdr_lane(tx.hdr_lane),
      .hdr_ready(tx_ready.hdr),
      .data_valid(tx.data_valid),
      .data(tx.data),
      .data_ready(tx_ready.data),
      .np_valid(tx.np_valid),
      .np_hdr(tx.np_hdr),
      .np_ready(tx_ready.np),
      .src_rdy(trn_tsrc_rdy),
      .sof(trn_tsof),
      .eof(trn_teof),
      .beat(trn_td),
      .rem(trn_trem),
      .dst_rdy(trn_tdst_rdy),
      .buf_av(trn_tbuf_av),
      .idle(tx_idle)
  );

  logic unused;
  assign unused = &{1'b0, look_tag, tx, rx_ready};
endmodule
