// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole card behind a hard IP with a TRN interface of W = 64 or 128 bits: shim, core, rings, registers and
// local memory. What the hard IP must do stands in rtl/README.md.
//
// `idle` (pcie_clk) says that no part of a TLP is inside and that nothing will happen until the next one
// comes: a simulator may skip time. It comes late and never lies.
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
  logic tx_hdr_valid, tx_hdr_ready, tx_data_valid, tx_data_ready, tx_np_valid, tx_np_ready, tx_gone;
  assign tx_gone = 1'b0;  // TRN has no word for it
  logic rx_req_valid, rx_req_ready, rx_req_data_valid, rx_req_data_ready;
  logic rx_cpl_valid, rx_cpl_ready, rx_cpl_data_valid, rx_cpl_data_ready, rx_np_ok;
  logic [127:0] tx_hdr, tx_np_hdr, rx_req_hdr, rx_cpl_hdr;
  logic [255:0] tx_data, rx_req_data, rx_cpl_data;
  logic [2:0] tx_hdr_lane, tx_np_lane, rx_req_bar;
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
