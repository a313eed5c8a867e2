// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole card behind a hard IP with a TRN interface of W = 64 or 128 bits: shim, core, rings, registers and
// local memory. The requirements on the hard IP are in rtl/README.md.
//
// `idle` (pcie_clk) says that no part of a TLP is inside and that nothing will happen until the next one
// comes: a simulator may skip time. It comes late and is never wrong.
module tlpdma_trn #(
    parameter int W           = 64,
    parameter int TAGS        = 32,
    parameter int MPS_MAX     = 512,
    parameter int MRRS_MAX    = 512,
    parameter int CPL_HEADERS = TAGS * MRRS_MAX / 64,
    parameter int CPL_DATA    = TAGS * MRRS_MAX,
    parameter int MEMORY_MIB  = 256
) (
    input logic pcie_clk,
    input logic pcie_rst,
    input logic user_clk,

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

    input  logic [15:0] cfg_id,
    input  logic [ 2:0] cfg_mps,
    input  logic [ 2:0] cfg_mrrs,
    input  logic        cfg_bus_master,
    input  logic        cfg_ext_tag,
    input  logic        cfg_msix_enable,
    input  logic        cfg_msix_mask,
    input  logic        cfg_intx_disable,
    output logic        intx,
    output logic        idle
);
  tx_t tx;
  tx_ready_t tx_ready;
  rx_t rx;
  rx_ready_t rx_ready;
  pcie_cfg_t cfg;
  assign cfg = {
    cfg_id, cfg_mps, cfg_mrrs, cfg_bus_master, cfg_ext_tag, cfg_msix_enable, cfg_msix_mask, cfg_intx_disable
  };
  logic shim_idle, device_idle;

  trn_shim #(
      .W(W),
      .TAGS(TAGS)
  ) shim (
      .idle(shim_idle),
      .*
  );

  tlpdma_device #(
      .TAGS(TAGS),
      .MPS_MAX(MPS_MAX),
      .MRRS_MAX(MRRS_MAX),
      .CPL_HEADERS(CPL_HEADERS),
      .CPL_DATA(CPL_DATA),
      .MEMORY_MIB(MEMORY_MIB)
  ) device (
      .idle(device_idle),
      .*
  );

  idle_filter filter (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .outer_idle(shim_idle && !trn_rsrc_rdy),
      .inner_idle(device_idle),
      .idle(idle)
  );
endmodule
