// SPDX-License-Identifier: MIT OR Apache-2.0
// A user design that the host reads and writes (module user_slave), behind a hard IP with a TRN interface of W bits: the
// core's slave port alone. Its masters and its time-out have nothing to do.
module slave_trn #(
    parameter int W = 64
) (
    input  logic                    pcie_clk,
    input  logic                    pcie_rst,
    input  logic                    user_clk,
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
    input  logic [            15:0] cfg_id,
    input  logic [             2:0] cfg_mps,
    input  logic [             2:0] cfg_mrrs,
    input  logic                    cfg_bus_master,
    input  logic                    cfg_ext_tag,
    input  logic                    cfg_msix_enable,
    input  logic                    cfg_msix_mask,
    input  logic                    cfg_intx_disable,
    output logic                    intx,
    output logic                    idle
);
  logic tx_hdr_valid, tx_hdr_ready, tx_data_valid, tx_data_ready, tx_np_valid, tx_np_ready, tx_gone;
  assign tx_gone = 1'b0;  // TRN has no word for it
  logic rx_req_valid, rx_req_ready, rx_req_data_valid, rx_req_data_ready;
  logic rx_cpl_valid, rx_cpl_ready, rx_cpl_data_valid, rx_cpl_data_ready, rx_np_ok;
  logic [127:0] tx_hdr, tx_np_hdr, rx_req_hdr, rx_cpl_hdr;
  logic [255:0] tx_data, rx_req_data, rx_cpl_data;
  logic [2:0] tx_hdr_lane, tx_np_lane, rx_req_bar;
  trn_shim #(
      .W(W)
  ) shim (
      .idle(shim_idle),
      .*
  );

  logic user_rst, shim_idle, core_idle;
  logic swr_valid, swr_ready, srd_valid, srd_ready, srd_data_valid, srd_data_ready;
  logic [31:0] swr_addr, swr_strobe, srd_addr;
  logic [255:0] swr_data, srd_data;
  tlpdma_core core (
      .mrd_valid(1'b0),
      .mrd_addr('0),
      .mrd_local('0),
      .mrd_len('0),
      .mrd_id('0),
      .drd_valid(1'b0),
      .drd_addr('0),
      .drd_local('0),
      .drd_len('0),
      .drd_id('0),
      .drd_reserve(1'b0),
      .mrd_data_ready(1'b1),
      .mwr_valid(1'b0),
      .mwr_addr('0),
      .mwr_len('0),
      .mwr_lane('0),
      .mwr_id('0),
      .mwr_data_valid(1'b0),
      .mwr_data('0),
      .post_valid(1'b0),
      .post_addr('0),
      .post_data('0),
      .post_two(1'b0),
      .post_four(1'b0),
      .timeout_ticks('0),
      .drain(1'b0),
      .user_bus_master(),
      .user_msix_enable(),
      .user_msix_mask(),
      .user_intx_disable(),
      .user_mps(),
      .user_mrrs(),
      .mrd_ready(),
      .mrd_done_valid(),
      .mrd_done_id(),
      .mrd_done_error(),
      .drd_ready(),
      .drd_waits(),
      .drd_done_valid(),
      .drd_done_id(),
      .drd_done_error(),
      .mrd_data_valid(),
      .mrd_data_addr(),
      .mrd_data(),
      .mrd_data_strobe(),
      .mrd_data_id(),
      .mwr_ready(),
      .mwr_data_ready(),
      .mwr_done_valid(),
      .mwr_done_id(),
      .mwr_done_error(),
      .post_ready(),
      .swr_bar(),
      .srd_bar(),
      .errors(),
      .tags_in_use(),
      .drained(),
      .*
  );
  user_slave user (
      .clk(user_clk),
      .rst(user_rst),
      .*
  );

  assign intx = 1'b0;
  idle_filter filter (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .outer_idle(shim_idle && !trn_rsrc_rdy),
      .inner_idle(core_idle && !swr_valid && !srd_valid && !srd_data_valid),
      .idle(idle)
  );
endmodule
