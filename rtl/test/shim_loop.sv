// SPDX-License-Identifier: MIT OR Apache-2.0
// The TRN shim with each received TLP given back to it: requests, or completions where `loop_cpl` is 1.
// The lane of a read's data is taken from its tag, so that completions come back from other lanes.
// The FIFOs stand for the core's FIFOs and keep its rule: the data of a header are there when it is shown.
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
  tx_t tx;
  tx_ready_t tx_ready;
  rx_t rx;
  rx_ready_t rx_ready;
  logic hdr_ready, data_ready, np_ready;
  logic hdr_some, data_some, np_some;
  logic is_read;

  assign is_read = !rx.req_hdr[126] && !loop_cpl;
  assign rx_ready.req = is_read ? np_ready : hdr_ready;
  assign rx_ready.req_data = data_ready;
  assign rx_ready.cpl = hdr_ready;
  assign rx_ready.cpl_data = data_ready;
  assign rx_ready.np = np_ok;

  sync_fifo #(
      .WIDTH(128),
      .DEPTH(64)
  ) headers (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(loop_cpl ? rx.cpl_valid : rx.req_valid && !is_read),
      .wr_ready(hdr_ready),
      .wr_data(loop_cpl ? rx.cpl_hdr : rx.req_hdr),
      .rd_valid(hdr_some),
      .rd_ready(tx.hdr_valid && tx_ready.hdr),
      .rd_data(tx.hdr),
      .count()
  );
  sync_fifo #(
      .WIDTH(256),
      .DEPTH(64)
  ) payload (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(loop_cpl ? rx.cpl_data_valid : rx.req_data_valid),
      .wr_ready(data_ready),
      .wr_data(loop_cpl ? rx.cpl_data : rx.req_data),
      .rd_valid(data_some),
      .rd_ready(tx_ready.data),
      .rd_data(tx.data),
      .count()
  );
  sync_fifo #(
      .WIDTH(128),
      .DEPTH(64)
  ) reads (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(rx.req_valid && is_read),
      .wr_ready(np_ready),
      .wr_data(rx.req_hdr),
      .rd_valid(np_some),
      .rd_ready(tx_ready.np && !hold),
      .rd_data(tx.np_hdr),
      .count()
  );
  // A completion's header comes before its words, but is sent only when they are there.
  logic [10:0] span;
  logic [15:0] words_in, words_used;
  assign span = tx.hdr[126] ? 11'(({8'd0, tx.hdr_lane} + {1'b0, tx.hdr[105:96]} + 11'd7) >> 3) : 11'd0;
  always_ff @(posedge pcie_clk) begin
    if (pcie_rst) begin
      words_in   <= '0;
      words_used <= '0;
    end else begin
      if ((loop_cpl ? rx.cpl_data_valid : rx.req_data_valid) && data_ready) words_in <= words_in + 1'b1;
      if (tx.hdr_valid && tx_ready.hdr) words_used <= words_used + {5'd0, span};
    end
  end
  assign tx.hdr_valid = hdr_some && !hold && words_in - words_used >= {5'd0, span};
  assign tx.data_valid = data_some;
  assign tx.np_valid = np_some && !hold;
  // A completion's third DW is its last; the fourth holds the lane of its data.
  assign tx.hdr_lane = loop_cpl || tx.hdr[125] ? tx.hdr[4:2] : tx.hdr[36:34];
  assign tx.np_lane = tx.np_hdr[74:72];

  trn_shim #(.W(W)) shim (.*);
  assign intx = 1'b0;
  logic unused;
  always_ff @(posedge user_clk)
    unused <= ^{rx.req_bar, tx_ready.gone, cfg_id, cfg_mps, cfg_mrrs, cfg_bus_master, cfg_ext_tag, cfg_msix_enable,
        cfg_msix_mask, cfg_intx_disable};
endmodule
