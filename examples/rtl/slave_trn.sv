// SPDX-License-Identifier: MIT OR Apache-2.0
// A user design that the host reads and writes (module user_slave), behind a hard IP with a TRN interface of W bits:
// the core's slave port alone. Its masters and its time-out are unused.
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
  tx_t tx;
  tx_ready_t tx_ready;
  rx_t rx;
  rx_ready_t rx_ready;
  pcie_cfg_t cfg;
  assign cfg = {
    cfg_id, cfg_mps, cfg_mrrs, cfg_bus_master, cfg_ext_tag, cfg_msix_enable, cfg_msix_mask, cfg_intx_disable
  };
  trn_shim #(
      .W(W)
  ) shim (
      .idle(shim_idle),
      .*
  );

  logic user_rst, shim_idle, core_idle;
  swr_t  swr;
  srd_t  srd;
  word_t srd_data;
  logic swr_ready, srd_ready, srd_data_ready;
  tlpdma_core core (
      .mrd('0),
      .drd('0),
      .drd_reserve(1'b0),
      .mrd_data_ready(1'b1),
      .mwr('0),
      .mwr_data('0),
      .post('0),
      .timeout_ticks('0),
      .drain(1'b0),
      .user_cfg(),
      .mrd_ready(),
      .mrd_done(),
      .drd_ready(),
      .drd_waits(),
      .drd_done(),
      .mrd_data(),
      .mwr_ready(),
      .mwr_data_ready(),
      .mwr_done(),
      .post_ready(),
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
      .inner_idle(core_idle && !swr.valid && !srd.valid && !srd_data.valid),
      .idle(idle)
  );
endmodule
