// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole card behind an UltraScale+ hard IP with 256-bit streams: shim, core, rings, registers and local
// memory. MSI-X messages are memory writes of our own, from our own table; `intx` is a level.
module tlpdma_usp #(
    parameter int TAGS        = 32,
    parameter int MPS_MAX     = 512,
    parameter int MRRS_MAX    = 512,
    parameter int CPL_HEADERS = 256,
    parameter int CPL_DATA    = 28672,
    parameter int MEMORY_MIB  = 256
) (
    input logic pcie_clk,
    input logic pcie_rst,
    input logic user_clk,

    output logic [255:0] m_axis_rq_tdata,
    output logic [  7:0] m_axis_rq_tkeep,
    output logic         m_axis_rq_tlast,
    output logic [ 61:0] m_axis_rq_tuser,
    output logic         m_axis_rq_tvalid,
    input  logic         m_axis_rq_tready,
    input  logic [255:0] s_axis_rc_tdata,
    input  logic [  7:0] s_axis_rc_tkeep,
    input  logic         s_axis_rc_tlast,
    input  logic [ 74:0] s_axis_rc_tuser,
    input  logic         s_axis_rc_tvalid,
    output logic         s_axis_rc_tready,
    input  logic [255:0] s_axis_cq_tdata,
    input  logic [  7:0] s_axis_cq_tkeep,
    input  logic         s_axis_cq_tlast,
    input  logic [ 87:0] s_axis_cq_tuser,
    input  logic         s_axis_cq_tvalid,
    output logic         s_axis_cq_tready,
    output logic [255:0] m_axis_cc_tdata,
    output logic [  7:0] m_axis_cc_tkeep,
    output logic         m_axis_cc_tlast,
    output logic [ 32:0] m_axis_cc_tuser,
    output logic         m_axis_cc_tvalid,
    input  logic         m_axis_cc_tready,
    input  logic [  5:0] pcie_rq_seq_num0,
    input  logic         pcie_rq_seq_num_vld0,
    output logic [  1:0] pcie_cq_np_req,
    input  logic [  3:0] pcie_tfc_nph_av,

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

  usp_shim #(
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
      .DROPS(1),
      .MEMORY_MIB(MEMORY_MIB)
  ) device (
      .idle(device_idle),
      .*
  );

  idle_filter filter (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .outer_idle(shim_idle && !s_axis_rc_tvalid && !s_axis_cq_tvalid),
      .inner_idle(device_idle),
      .idle(idle)
  );
endmodule
