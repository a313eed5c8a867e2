// SPDX-License-Identifier: MIT OR Apache-2.0
// A register of 32 bits behind the TRN port: the smallest device, on which the hard IP's model is tested without the core.
//
// A memory write of one DW sets the register (all bytes of it), a memory read of one DW gets it, messages do nothing; one TLP at a
// time. The register counts edges of user_clk in its upper half while bit 0 is set, so that both clocks do something; bit 1 is the
// level of the legacy interrupt, bit 3 breaks a rule. HALVED = 1 counts on a clock that the module makes itself, of which the hard IP's model knows nothing.
module scratch #(
    parameter int W = 64,
    parameter int HALVED = 0
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
    output logic intx,
    output logic idle
);
  localparam int DWS = W / 32;

  logic [4:0][31:0] dw;  // the TLP so far: DW n in dw[n]
  logic [2:0] have;  // DWs of it
  logic answer;  // a completion is to be sent
  logic [2:0] said;  // DWs of it that were
  logic [15:0] value;  // lower half of the register
  logic [15:0] ticks;  // upper half, in user_clk

  // A completion of one DW is always four DWs long, two beats of 64 bits or one of 128.
  wire [6:0] lower_address = {dw[dw[0][29]?3 : 2][6:2], 2'b00};
  wire [3:0][31:0] completion = {
    {value[7:0], value[15:8], ticks[7:0], ticks[15:8]},
    {dw[1][31:8], 1'b0, lower_address},
    {cfg_id, 16'd4},
    32'h4A00_0001
  };

  assign trn_rdst_rdy = !answer;
  assign trn_rnp_ok   = 1'b1;
  assign trn_tsrc_rdy = answer && (said != 0 || trn_tbuf_av[2]);
  assign trn_tsof     = said == 0;
  assign trn_teof     = said + 3'(DWS) == 4;
  assign trn_trem     = '1;
  assign intx         = value[1] && !cfg_intx_disable;
  assign idle         = !answer && have == 0 && !value[0];
  for (genvar i = 0; i < DWS; i++) begin : gen_td
    assign trn_td[W-1-32*i-:32] = completion[2'(said)+2'(i)];
  end

  // The TLP with the beat that is on the port.
  logic [4:0][31:0] now;
  always_comb begin
    now = dw;
    for (int i = 0; i < DWS; i++) if (have + 3'(i) < 5) now[have+3'(i)] = trn_rd[W-1-32*i-:32];
  end
  wire        beat = trn_rsrc_rdy && trn_rdst_rdy;
  wire        memory = now[0][28:24] == 0;
  wire [31:0] data = now[now[0][29]?4 : 3];

  always_ff @(posedge pcie_clk) begin
    if (beat) begin
      have <= trn_reof || have >= 4 ? 0 : have + 3'(DWS);
      dw   <= now;
    end
    if (value[3]) $fatal(1, "%m: bit 3 is set");
    if (beat && trn_reof && memory && !now[0][30]) answer <= 1;
    if (beat && trn_reof && memory && now[0][30]) value <= {data[23:16], data[31:24]};
    if (trn_tsrc_rdy && trn_tdst_rdy) begin
      said <= trn_teof ? 0 : said + 3'(DWS);
      if (trn_teof) answer <= 0;
    end
    if (pcie_rst) {have, said, answer, value} <= 0;
  end

  logic [1:0] counts;  // bit 0 of the register, through two flip-flops
  logic half;
  always_ff @(posedge user_clk) half <= !half;
  wire tick_clk = HALVED != 0 ? half : user_clk;
  always_ff @(posedge tick_clk) begin
    counts <= {counts[0], value[0]};
    if (counts[1]) ticks <= ticks + 1;
  end
  wire unused = &{1'b0, trn_rsof, trn_rrem, data[15:0], trn_rbar, cfg_mps, cfg_mrrs, cfg_bus_master, cfg_ext_tag, cfg_msix_enable, cfg_msix_mask, trn_tbuf_av[1:0]};
endmodule
