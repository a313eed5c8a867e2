// SPDX-License-Identifier: MIT OR Apache-2.0
// The TRN shim with each TLP that it received given back to it: requests, or completions where `loop_cpl` is 1.
// A read's data belong at the lane that its tag says, so that completions come back from other lanes.
// The FIFOs stand for those of the core and keep its rule: the data of a header are there when it shows.
module shim_loop #(
    parameter int W = 64
) (
    input logic pcie_clk,
    input logic pcie_rst,
    input logic user_clk,
    input logic trn_rsrc_rdy,
    input logic trn_rsof,
    input logic trn_reof,
    input logic [W-1:0] trn_rd,
    input logic [$clog2(W/32)-1:0] trn_rrem,
    input logic [2:0] trn_rbar,
    output logic trn_rdst_rdy,
    output logic trn_rnp_ok,
    output logic trn_tsrc_rdy,
    output logic trn_tsof,
    output logic trn_teof,
    output logic [W-1:0] trn_td,
    output logic [$clog2(W/32)-1:0] trn_trem,
    input logic trn_tdst_rdy,
    input logic [2:0] trn_tbuf_av,
    input logic [15:0] cfg_id,
    input logic [2:0] cfg_mps,
    input logic [2:0] cfg_mrrs,
    input logic cfg_bus_master,
    input logic cfg_ext_tag,
    input logic cfg_msix_enable,
    input logic cfg_msix_mask,
    input logic cfg_intx_disable,
    input logic np_ok,
    input logic loop_cpl,
    input logic hold,
    output logic intx,
    output logic idle
);
  logic rx_req_valid, rx_req_ready, rx_req_data_valid, rx_cpl_valid, rx_cpl_data_valid;
  logic [127:0] rx_req_hdr, rx_cpl_hdr, tx_hdr, np_hdr;
  logic [255:0] rx_req_data, rx_cpl_data, tx_data;
  logic [2:0] rx_req_bar, tx_hdr_lane, tx_np_lane;
  logic
      hdr_ready,
      data_ready,
      np_ready,
      tx_hdr_valid,
      tx_hdr_ready,
      tx_data_valid,
      tx_data_ready,
      tx_np_valid,
      tx_np_ready;
  logic hdr_some, data_some, np_some;
  logic is_read;

  assign is_read = !rx_req_hdr[126] && !loop_cpl;
  assign rx_req_ready = is_read ? np_ready : hdr_ready;

  sync_fifo #(
      .WIDTH(128),
      .DEPTH(64)
  ) headers (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(loop_cpl ? rx_cpl_valid : rx_req_valid && !is_read),
      .wr_ready(hdr_ready),
      .wr_data(loop_cpl ? rx_cpl_hdr : rx_req_hdr),
      .rd_valid(hdr_some),
      .rd_ready(tx_hdr_valid && tx_hdr_ready),
      .rd_data(tx_hdr),
      .count()
  );
  sync_fifo #(
      .WIDTH(256),
      .DEPTH(64)
  ) payload (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(loop_cpl ? rx_cpl_data_valid : rx_req_data_valid),
      .wr_ready(data_ready),
      .wr_data(loop_cpl ? rx_cpl_data : rx_req_data),
      .rd_valid(data_some),
      .rd_ready(tx_data_ready),
      .rd_data(tx_data),
      .count()
  );
  sync_fifo #(
      .WIDTH(128),
      .DEPTH(64)
  ) reads (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(rx_req_valid && is_read),
      .wr_ready(np_ready),
      .wr_data(rx_req_hdr),
      .rd_valid(np_some),
      .rd_ready(tx_np_ready && !hold),
      .rd_data(np_hdr),
      .count()
  );
  // A completion's header comes before its words, but is sent only when they are there.
  logic [10:0] span;
  logic [15:0] words_in, words_used;
  assign span = tx_hdr[126] ? 11'(({8'd0, tx_hdr_lane} + {1'b0, tx_hdr[105:96]} + 11'd7) >> 3) : 11'd0;
  always_ff @(posedge pcie_clk) begin
    if (pcie_rst) begin
      words_in   <= '0;
      words_used <= '0;
    end else begin
      if ((loop_cpl ? rx_cpl_data_valid : rx_req_data_valid) && data_ready) words_in <= words_in + 1'b1;
      if (tx_hdr_valid && tx_hdr_ready) words_used <= words_used + {5'd0, span};
    end
  end
  assign tx_hdr_valid = hdr_some && !hold && words_in - words_used >= {5'd0, span};
  assign tx_data_valid = data_some;
  assign tx_np_valid = np_some && !hold;
  // A completion's third word is its last; the fourth says where its data lie.
  assign tx_hdr_lane = loop_cpl || tx_hdr[125] ? tx_hdr[4:2] : tx_hdr[36:34];
  assign tx_np_lane = np_hdr[74:72];

  trn_shim #(
      .W(W)
  ) shim (
      .*,
      .tx_np_hdr(np_hdr),
      .rx_req_data_ready(data_ready),
      .rx_cpl_ready(hdr_ready),
      .rx_cpl_data_ready(data_ready),
      .rx_np_ok(np_ok)
  );
  assign intx = 1'b0;
  logic unused;
  always_ff @(posedge user_clk)
    unused <= ^{rx_req_bar, cfg_id, cfg_mps, cfg_mrrs, cfg_bus_master, cfg_ext_tag, cfg_msix_enable,
        cfg_msix_mask, cfg_intx_disable};
endmodule
