// SPDX-License-Identifier: MIT OR Apache-2.0
// A module with the TRN port convention, its inputs from the hard IP behind registers that take them when `drive` changes.
//
// What depends on an input is worked out by Verilator when that has changed, and once more at the clock's edge, after which the hard IP
// changes it again. What depends on a register it works out once. So the hard IP's model can say before an edge what holds after it.
//
// TLPLAB_TOP is the module, TLPLAB_PARAMETERS its parameters. Widths are the module's own.
module trn_pins (
    input logic pcie_clk,
    input logic user_clk,
    input logic drive,
    input logic pcie_rst,
    input logic trn_rsrc_rdy,
    input logic trn_rsof,
    input logic trn_reof,
    input logic [$bits(card.trn_rd)-1:0] trn_rd,
    input logic [$bits(card.trn_rrem)-1:0] trn_rrem,
    input logic [2:0] trn_rbar,
    output logic trn_rdst_rdy,
    output logic trn_rnp_ok,
    output logic trn_tsrc_rdy,
    output logic trn_tsof,
    output logic trn_teof,
    output logic [$bits(card.trn_td)-1:0] trn_td,
    output logic [$bits(card.trn_trem)-1:0] trn_trem,
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
    output logic intx,
    output logic idle
);
  logic rst, rsrc_rdy, rsof, reof, tdst_rdy;
  logic [  $bits(card.trn_rd)-1:0] rd;
  logic [$bits(card.trn_rrem)-1:0] rrem;
  logic [2:0] rbar, tbuf_av;

  always_ff @(posedge drive or negedge drive) begin
    rst      <= pcie_rst;
    rsrc_rdy <= trn_rsrc_rdy;
    rsof     <= trn_rsof;
    reof     <= trn_reof;
    rd       <= trn_rd;
    rrem     <= trn_rrem;
    rbar     <= trn_rbar;
    tdst_rdy <= trn_tdst_rdy;
    tbuf_av  <= trn_tbuf_av;
  end

  `TLPLAB_TOP #(`TLPLAB_PARAMETERS) card (
      .pcie_rst(rst),
      .trn_rsrc_rdy(rsrc_rdy),
      .trn_rsof(rsof),
      .trn_reof(reof),
      .trn_rd(rd),
      .trn_rrem(rrem),
      .trn_rbar(rbar),
      .trn_tdst_rdy(tdst_rdy),
      .trn_tbuf_av(tbuf_av),
      .pcie_clk,
      .user_clk,
      .trn_rdst_rdy,
      .trn_rnp_ok,
      .trn_tsrc_rdy,
      .trn_tsof,
      .trn_teof,
      .trn_td,
      .trn_trem,
      .cfg_id,
      .cfg_mps,
      .cfg_mrrs,
      .cfg_bus_master,
      .cfg_ext_tag,
      .cfg_msix_enable,
      .cfg_msix_mask,
      .cfg_intx_disable,
      .intx,
      .idle
  );
endmodule
