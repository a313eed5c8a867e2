// SPDX-License-Identifier: MIT OR Apache-2.0
// Gives each TLP back unchanged: tests the model of the hard IP by itself.
module trn_loop #(
    parameter int W = 64
) (
    input logic pcie_clk,
    input logic pcie_rst,
    input logic user_clk,
    input logic trn_rsrc_rdy,
    input logic trn_rsof,
    input logic trn_reof,
    input logic [W-1:0] trn_rd,
    input logic [W/64-1:0] trn_rrem,
    input logic [2:0] trn_rbar,
    output logic trn_rdst_rdy,
    output logic trn_rnp_ok,
    output logic trn_tsrc_rdy,
    output logic trn_tsof,
    output logic trn_teof,
    output logic [W-1:0] trn_td,
    output logic [W/64-1:0] trn_trem,
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
    output logic intx,
    output logic idle
);
  assign trn_rdst_rdy = trn_tdst_rdy;
  assign trn_rnp_ok = np_ok;
  assign {trn_tsrc_rdy, trn_tsof, trn_teof, trn_td, trn_trem} = {trn_rsrc_rdy, trn_rsof, trn_reof, trn_rd, trn_rrem};
  assign intx = 1'b0;
  assign idle = 1'b1;
  logic unused;
  always_ff @(posedge user_clk)
    unused <= ^{pcie_clk, pcie_rst, trn_rbar, trn_tbuf_av, cfg_id, cfg_mps, cfg_mrrs, cfg_bus_master,
        cfg_ext_tag, cfg_msix_enable, cfg_msix_mask, cfg_intx_disable};
endmodule
