// SPDX-License-Identifier: MIT OR Apache-2.0
// The card for place and route, without pads: a hard IP is on the same chip and is clocked, so every port is driven
// by a flip-flop or ends in one. The inputs come from a shift register, the outputs are folded into one bit. So the
// paths from and to the hard IP are timed, too, and no pads draw the design apart.
module registered_ports #(
    parameter int W = 64
) (
    input  logic pcie_clk,
    input  logic pcie_rst,
    input  logic user_clk,
    input  logic in,
    output logic out
);
  localparam int S = $clog2(W / 32);
  localparam int INPUTS = 1 + 3 + W + S + 3 + 4 + 16 + 6 + 5;
  localparam int OUTPUTS = 5 + W + S + 2;
  logic [INPUTS-1:0] driven;
  logic [OUTPUTS-1:0] seen, caught, folded;

  always_ff @(posedge pcie_clk) begin
    driven <= {driven[INPUTS-2:0], in};
    caught <= seen;
    folded <= {folded[OUTPUTS-2:0], folded[OUTPUTS-1]} ^ caught;
    if (pcie_rst) folded <= '0;
  end
  assign out = folded[OUTPUTS-1];

  logic reset, rsrc_rdy, rsof, reof, tdst_rdy, bus_master, ext_tag, msix_enable, msix_mask, intx_disable;
  logic [W-1:0] rd;
  logic [S-1:0] rrem;
  logic [2:0] rbar, tbuf_av, mps, mrrs;
  logic [15:0] id;
  assign {reset, rsrc_rdy, rsof, reof, rd, rrem, rbar, tdst_rdy, tbuf_av, id, mps, mrrs, bus_master, ext_tag,
            msix_enable, msix_mask, intx_disable} = driven;

  logic rdst_rdy, rnp_ok, tsrc_rdy, tsof, teof, intx, idle;
  logic [W-1:0] td;
  logic [S-1:0] trem;
  assign seen = {rdst_rdy, rnp_ok, tsrc_rdy, tsof, teof, td, trem, intx, idle};

  tlpdma_trn #(
      .W(W)
  ) card (
      .pcie_clk(pcie_clk),
      .pcie_rst(reset),
      .user_clk(user_clk),
      .trn_rsrc_rdy(rsrc_rdy),
      .trn_rsof(rsof),
      .trn_reof(reof),
      .trn_rd(rd),
      .trn_rrem(rrem),
      .trn_rbar(rbar),
      .trn_rdst_rdy(rdst_rdy),
      .trn_rnp_ok(rnp_ok),
      .trn_tsrc_rdy(tsrc_rdy),
      .trn_tsof(tsof),
      .trn_teof(teof),
      .trn_td(td),
      .trn_trem(trem),
      .trn_tdst_rdy(tdst_rdy),
      .trn_tbuf_av(tbuf_av),
      .cfg_id(id),
      .cfg_mps(mps),
      .cfg_mrrs(mrrs),
      .cfg_bus_master(bus_master),
      .cfg_ext_tag(ext_tag),
      .cfg_msix_enable(msix_enable),
      .cfg_msix_mask(msix_mask),
      .cfg_intx_disable(intx_disable),
      .intx(intx),
      .idle(idle)
  );
endmodule
