// The scratch device on a clock that it divides itself: the hard IP's model does not know of that clock's edges.
module halved #(parameter int W = 64) (
    input  logic pcie_clk, pcie_rst, user_clk,
    input  logic trn_rsrc_rdy, trn_rsof, trn_reof,
    input  logic [W-1:0] trn_rd,
    input  logic [$clog2(W/32)-1:0] trn_rrem,
    input  logic [2:0] trn_rbar,
    output logic trn_rdst_rdy, trn_rnp_ok,
    output logic trn_tsrc_rdy, trn_tsof, trn_teof,
    output logic [W-1:0] trn_td,
    output logic [$clog2(W/32)-1:0] trn_trem,
    input  logic trn_tdst_rdy,
    input  logic [2:0] trn_tbuf_av,
    input  logic [15:0] cfg_id,
    input  logic [2:0] cfg_mps, cfg_mrrs,
    input  logic cfg_bus_master, cfg_ext_tag, cfg_msix_enable, cfg_msix_mask, cfg_intx_disable,
    output logic intx, idle
);
    logic half;
    always_ff @(posedge user_clk) half <= !half;
    scratch #(.W(W)) scratch (.user_clk(half), .*);
endmodule
