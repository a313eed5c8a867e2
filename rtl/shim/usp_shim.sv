// SPDX-License-Identifier: MIT OR Apache-2.0
// UltraScale+ shim: between the TLP queues of tlpdma_core and the request and completion streams of that hard
// IP, 256 bit, DWORD-aligned, no straddling, client tags. RQ, RC, CQ and CC have the names and layouts of the
// hard IP (its `tuser` of 62, 75, 88 and 33 bits).
//
// The hard IP hands over non-posted requests against credits (`pcie_cq_np_req`, one a cycle, which it adds up):
// at most NP_CREDITS are outstanding, as many as the core takes after rx_ready.np fell.
module usp_shim #(
    parameter int TAGS       = 32,
    parameter int NP_CREDITS = 4
) (
    input logic pcie_clk,
    input logic pcie_rst,

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
    input  logic         cfg_bus_master,

    input tx_t tx,
    output tx_ready_t tx_ready,
    output rx_t rx,
    input rx_ready_t rx_ready,

    output logic idle
);
  localparam int TW = $clog2(TAGS);

  // ---- transmit ------------------------------------------------------------------------------------------
  logic [7:0] rq_be;
  logic [1:0] rq_mark;
  logic       tx_idle;

  usp_tx transmit (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .hdr_valid(tx.hdr_valid),
      .hdr(tx.hdr),
      .hdr_lane(tx.hdr_lane),
      .hdr_ready(tx_ready.hdr),
      .data(tx.data),
      .data_ready(tx_ready.data),
      .bus_master(cfg_bus_master),
      .np_valid(tx.np_valid),
      .np_hdr(tx.np_hdr),
      .np_ready(tx_ready.np),
      .np_credits(pcie_tfc_nph_av),
      .tdata(m_axis_rq_tdata),
      .tkeep(m_axis_rq_tkeep),
      .tlast(m_axis_rq_tlast),
      .rq_tvalid(m_axis_rq_tvalid),
      .rq_be(rq_be),
      .rq_mark(rq_mark),
      .rq_tready(m_axis_rq_tready),
      .cc_tvalid(m_axis_cc_tvalid),
      .cc_tready(m_axis_cc_tready),
      .sent_valid(pcie_rq_seq_num_vld0),
      .sent_mark(pcie_rq_seq_num0[1:0]),
      .gone(tx_ready.gone),
      .idle(tx_idle)
  );
  assign m_axis_rq_tuser = {2'b00, 32'd0, 2'd0, rq_mark, 16'd0, rq_be};
  assign m_axis_cc_tdata = m_axis_rq_tdata;
  assign m_axis_cc_tkeep = m_axis_rq_tkeep;
  assign m_axis_cc_tlast = m_axis_rq_tlast;
  assign m_axis_cc_tuser = 33'd0;

  // ---- completions: the lane of a read's data is written when the read leaves -----------------------------
  logic [ 2:0] lanes[0:TAGS-1];
  logic [95:0] rc;
  logic rc_idle, rc_has_data, rc_void;
  always_ff @(posedge pcie_clk) if (tx.np_valid && tx_ready.np) lanes[tx.np_hdr[tlpdma_pkg::TAG_LSB+:TW]] <= tx.np_lane;

  logic [2:0] rc_lane;
  assign rc          = s_axis_rc_tdata[95:0];
  assign rc_lane     = rc[4:2] + lanes[rc[64+:TW]];
  // Error codes 8 (Function Level Reset) and 9 (the hard IP's own time-out): a read is over, identified only by its
  // tag. It is passed on as a successful completion without data, which the core rejects; that ends the read and
  // keeps back its tag, as its completions may still come.
  assign rc_void     = rc[15];
  assign rc_has_data = !rc_void && rc[42:32] != 11'd0;
  usp_rx #(
      .P(3)
  ) completions (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .tdata(s_axis_rc_tdata),
      .tkeep(s_axis_rc_tkeep),
      .tlast(s_axis_rc_tlast),
      .tvalid(s_axis_rc_tvalid),
      .tready(s_axis_rc_tready),
      .discontinue(s_axis_rc_tuser[42]),
      .hdr({
        1'b0,
        rc_has_data,
        5'b00101,
        rc[29],
        1'b0,
        rc[91:89],
        1'b0,
        rc[94],
        3'b000,
        rc[46],
        rc[93:92],
        2'b00,
        rc[41:32],
        rc[87:72],
        rc_void ? tlpdma_pkg::CPL_SC : rc[45:43],
        1'b0,
        rc[27:16],
        rc[63:48],
        rc[71:64],
        1'b0,
        rc[6:0],
        27'd0,
        rc_lane,
        2'b00
      }),
      .lane(rc_lane),
      .dws(rc_has_data ? rc[42:32] : 11'd0),
      .hdr_valid(rx.cpl_valid),
      .hdr_out(rx.cpl_hdr),
      .hdr_ready(rx_ready.cpl),
      .data_valid(rx.cpl_data_valid),
      .data(rx.cpl_data),
      .data_ready(rx_ready.cpl_data),
      .idle(rc_idle)
  );

  // ---- requests, as if they had four DWs ---------------------------------------------------------------------
  logic [127:0] cq;
  logic [  3:0] kind;
  logic [  7:0] fmt_type;
  logic [ 10:0] cq_dws;
  logic cq_has_data, cq_idle, cq_first;
  logic [2:0] req_bar;
  assign rx.req_bar  = req_bar;
  assign cq          = s_axis_cq_tdata[127:0];
  assign kind        = cq[78:75];
  assign cq_dws      = cq[74:64];
  assign cq_has_data = fmt_type[6];
  always_comb begin
    case (kind)
      4'b0000: fmt_type = tlpdma_pkg::TLP_MRD64;
      4'b0001: fmt_type = tlpdma_pkg::TLP_MWR64;
      4'b0010: fmt_type = 8'h22;  // I/O read
      4'b0011: fmt_type = 8'h62;  // I/O write
      4'b0100: fmt_type = 8'h6c;  // FetchAdd
      4'b0101: fmt_type = 8'h6d;  // Swap
      4'b0110: fmt_type = 8'h6e;  // CAS
      4'b0111: fmt_type = 8'h21;  // locked read
      default: fmt_type = cq_dws != 11'd0 ? 8'h70 : 8'h30;  // message
    endcase
  end
  always_ff @(posedge pcie_clk) begin
    if (s_axis_cq_tvalid && s_axis_cq_tready) begin
      cq_first <= s_axis_cq_tlast;
      if (cq_first) req_bar <= cq[114:112];
    end
    if (pcie_rst) cq_first <= 1'b1;
  end
  usp_rx #(
      .P(4)
  ) requests (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .tdata(s_axis_cq_tdata),
      .tkeep(s_axis_cq_tkeep),
      .tlast(s_axis_cq_tlast),
      .tvalid(s_axis_cq_tvalid),
      .tready(s_axis_cq_tready),
      .discontinue(s_axis_cq_tuser[41]),
      .hdr({
        fmt_type,
        1'b0,
        cq[123:121],
        1'b0,
        cq[126],
        4'b0000,
        cq[125:124],
        2'b00,
        cq[73:64],
        cq[95:80],
        cq[103:96],
        s_axis_cq_tuser[7:0],
        cq[63:32],
        cq[31:2],
        2'b00
      }),
      .lane(cq[4:2]),
      .dws(cq_has_data ? cq_dws : 11'd0),
      .hdr_valid(rx.req_valid),
      .hdr_out(rx.req_hdr),
      .hdr_ready(rx_ready.req),
      .data_valid(rx.req_data_valid),
      .data(rx.req_data),
      .data_ready(rx_ready.req_data),
      .idle(cq_idle)
  );

  // ---- credits for non-posted requests ---------------------------------------------------------------------
  localparam int NW = $clog2(NP_CREDITS + 1);
  logic [NW-1:0] credits;
  logic give, used;
  assign give = rx_ready.np && credits != NW'(NP_CREDITS);
  assign used = s_axis_cq_tvalid && s_axis_cq_tready && cq_first && kind != 4'b0001 && !kind[3];
  always_ff @(posedge pcie_clk) begin
    pcie_cq_np_req <= {1'b0, give};
    if (give && !used) credits <= credits + 1'b1;
    else if (used && !give && credits != '0) credits <= credits - 1'b1;
    if (pcie_rst) begin
      credits        <= '0;
      pcie_cq_np_req <= 2'b00;
    end
  end

  assign idle = tx_idle && rc_idle && cq_idle;

  logic unused;
  assign unused = &{1'b0, tx, rx_ready, s_axis_rc_tuser, s_axis_cq_tuser, pcie_rq_seq_num0, rc, cq};
endmodule
