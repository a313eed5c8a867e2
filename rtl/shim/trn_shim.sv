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
    input  logic         tx_hdr_valid,
    input  logic [127:0] tx_hdr,
    input  logic [  2:0] tx_hdr_lane,
    output logic         tx_hdr_ready,
    input  logic         tx_data_valid,
    input  logic [255:0] tx_data,
    output logic         tx_data_ready,
    input  logic         tx_np_valid,
    input  logic [127:0] tx_np_hdr,
    input  logic [  2:0] tx_np_lane,         // bits [4:2] of (local - PCIe address) of that read
    output logic         tx_np_ready,
    // core, receive
    output logic         rx_req_valid,
    output logic [127:0] rx_req_hdr,
    output logic [  2:0] rx_req_bar,
    input  logic         rx_req_ready,
    output logic         rx_req_data_valid,
    output logic [255:0] rx_req_data,
    input  logic         rx_req_data_ready,
    output logic         rx_cpl_valid,
    output logic [127:0] rx_cpl_hdr,
    input  logic         rx_cpl_ready,
    output logic         rx_cpl_data_valid,
    output logic [255:0] rx_cpl_data,
    input  logic         rx_cpl_data_ready,
    input  logic         rx_np_ok,

    output logic idle  // no part of a TLP is in the shim
);
  localparam int TW = $clog2(TAGS);
  logic rx_idle, tx_idle;

  assign trn_rnp_ok = rx_np_ok;
  assign idle       = rx_idle && tx_idle;

  // Where the data of a read belong: written when the read leaves, looked up when its completions come.
  logic [2:0] lanes[0:TAGS-1];
  logic [7:0] look_tag;
  always_ff @(posedge pcie_clk) if (tx_np_valid && tx_np_ready) lanes[tx_np_hdr[tlpdma_pkg::TAG_LSB+:TW]] <= tx_np_lane;

  trn_rx #(
      .W(W)
  ) rx (
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
      .req_valid(rx_req_valid),
      .req_hdr(rx_req_hdr),
      .req_bar(rx_req_bar),
      .req_ready(rx_req_ready),
      .req_data_valid(rx_req_data_valid),
      .req_data(rx_req_data),
      .req_data_ready(rx_req_data_ready),
      .cpl_valid(rx_cpl_valid),
      .cpl_hdr(rx_cpl_hdr),
      .cpl_ready(rx_cpl_ready),
      .cpl_data_valid(rx_cpl_data_valid),
      .cpl_data(rx_cpl_data),
      .cpl_data_ready(rx_cpl_data_ready),
      .idle(rx_idle)
  );

  trn_tx #(
      .W(W)
  ) tx (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .hdr_valid(tx_hdr_valid),
      .hdr(tx_hdr),
      .hdr_lane(tx_hdr_lane),
      .hdr_ready(tx_hdr_ready),
      .data_valid(tx_data_valid),
      .data(tx_data),
      .data_ready(tx_data_ready),
      .np_valid(tx_np_valid),
      .np_hdr(tx_np_hdr),
      .np_ready(tx_np_ready),
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
  assign unused = &{1'b0, look_tag};
endmodule
