// SPDX-License-Identifier: MIT OR Apache-2.0
// A test of the model of an UltraScale+ hard IP (rtl/cosim): sends back all TLPs, requests of CQ on RQ and completions
// of RC on CC, at any width, straddling or not.
//
// Stream information that TLPs do not carry is made visible to the test: bytes that are not enabled become 0; a
// completion's requester is exclusive-ored with its error code and bits 11 to 7 of its address; `intx` rises when a
// sequence number is not the next one. A write to BAR 5 also requests an interrupt: by MSI for the vectors in its data,
// or, with bit 11 of its address, by MSI-X with its data. An address from F000_0000h on corrupts the TLP that is sent,
// by its bits 26 to 24: the hard IP must not let it pass.
module usp_mirror #(
    parameter int W = 256,
    parameter int RQ_STARTS = 1,  // TLPs that may begin in a beat
    parameter int RC_STARTS = 1,
    parameter int CQ_STARTS = 1,
    parameter int CC_STARTS = 1,
    parameter bit STALLS = 0
) (
    input logic clk,
    input logic rst,

    output logic [W-1:0] m_axis_rq_tdata,
    output logic [W/32-1:0] m_axis_rq_tkeep,
    output logic m_axis_rq_tlast,
    output logic [(W < 512 ? 62 : 137)-1:0] m_axis_rq_tuser,
    output logic m_axis_rq_tvalid,
    input logic [3:0] m_axis_rq_tready,
    input logic [W-1:0] s_axis_rc_tdata,
    input logic [W/32-1:0] s_axis_rc_tkeep,
    input logic s_axis_rc_tlast,
    input logic [(W < 512 ? 75 : 161)-1:0] s_axis_rc_tuser,
    input logic s_axis_rc_tvalid,
    output logic s_axis_rc_tready,
    input logic [W-1:0] s_axis_cq_tdata,
    input logic [W/32-1:0] s_axis_cq_tkeep,
    input logic s_axis_cq_tlast,
    input logic [(W < 512 ? 88 : 183)-1:0] s_axis_cq_tuser,
    input logic s_axis_cq_tvalid,
    output logic s_axis_cq_tready,
    output logic [W-1:0] m_axis_cc_tdata,
    output logic [W/32-1:0] m_axis_cc_tkeep,
    output logic m_axis_cc_tlast,
    output logic [(W < 512 ? 33 : 81)-1:0] m_axis_cc_tuser,
    output logic m_axis_cc_tvalid,
    input logic m_axis_cc_tready,

    input logic [5:0] pcie_rq_seq_num0,
    input logic pcie_rq_seq_num_vld0,
    input logic [5:0] pcie_rq_seq_num1,
    input logic pcie_rq_seq_num_vld1,
    output logic [31:0] cfg_interrupt_msi_int,
    output logic [63:0] cfg_interrupt_msix_address,
    output logic [31:0] cfg_interrupt_msix_data,
    output logic cfg_interrupt_msix_int,
    output logic intx,
    output logic idle
);
  localparam int N = W / 32;
  localparam bit LARGE = W == 512;

  logic [15:0] noise;
  always_ff @(posedge clk) noise <= rst ? 16'hACE1 : {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};

  // ---- where TLPs begin and end in a beat of CQ and of RC -----------------------------------------------------------
  logic [182:0] cq_user, rc_user;
  logic [N-1:0] cq_first, cq_last, rc_first, rc_last;
  logic cq_inside, rc_inside, rq_idle, cc_idle;
  assign cq_user = 183'(s_axis_cq_tuser);
  assign rc_user = 183'(s_axis_rc_tuser);
  always_comb begin
    {cq_first, cq_last, rc_first, rc_last} = '0;
    for (int n = 0; n < CQ_STARTS; n++) begin
      if (CQ_STARTS > 1 && cq_user[80+n]) cq_first[4*int'(cq_user[82+2*n+:2])] = 1'b1;
      if (CQ_STARTS > 1 && cq_user[86+n]) cq_last[cq_user[88+4*n+:4]] = 1'b1;
    end
    for (int n = 0; n < RC_STARTS; n++) begin
      if (LARGE && RC_STARTS > 1 && rc_user[64+n]) rc_first[4*int'(rc_user[68+2*n+:2])] = 1'b1;
      if (LARGE && RC_STARTS > 1 && rc_user[76+n]) rc_last[rc_user[80+4*n+:4]] = 1'b1;
      // A TLP that begins behind the end of another is in the upper half.
      if (!LARGE && RC_STARTS > 1 && rc_user[32+n]) rc_first[n==1||rc_inside?N/2 : 0] = 1'b1;
      if (!LARGE && RC_STARTS > 1 && rc_user[34+4*n]) rc_last[rc_user[35+4*n+:3]] = 1'b1;
    end
    if (CQ_STARTS == 1) cq_first[0] = !cq_inside;
    if (RC_STARTS == 1) rc_first[0] = !rc_inside;
    for (int i = 0; i < N; i++) begin
      if (CQ_STARTS == 1) cq_last[i] = s_axis_cq_tlast && s_axis_cq_tkeep == N'((1 << (i + 1)) - 1);
      if (RC_STARTS == 1) rc_last[i] = s_axis_rc_tlast && s_axis_rc_tkeep == N'((1 << (i + 1)) - 1);
    end
  end

  // ---- both ways ----------------------------------------------------------------------------------------------------
  logic [1:0] rq_sop, rq_eop, cc_sop, cc_eop;
  logic [1:0][3:0] rq_sop_at, rq_eop_at, cc_sop_at, cc_eop_at;
  logic [1:0][7:0] rq_bes, cc_bes;
  logic [1:0][5:0] rq_seq, cc_seq;
  logic rq_drop, cc_drop, rq_offset;
  usp_mirror_ring #(
      .N(N),
      .DESCRIPTOR(4),
      .STARTS(RQ_STARTS)
  ) requests (
      .pause(STALLS && noise[0]),
      .in_valid(s_axis_cq_tvalid),
      .in_ready(s_axis_cq_tready),
      .in_data(s_axis_cq_tdata),
      .in_first(cq_first),
      .in_last(cq_last),
      .in_enables(cq_user[(LARGE?16 : 8)+:4*N]),
      .in_bes(LARGE ? {cq_user[15:12], cq_user[7:4], cq_user[11:8], cq_user[3:0]} : {8'd0, cq_user[7:0]}),
      .in_discontinue(cq_user[LARGE?96 : 41]),
      .in_inside(cq_inside),
      .data(m_axis_rq_tdata),
      .keep(m_axis_rq_tkeep),
      .last(m_axis_rq_tlast),
      .valid(m_axis_rq_tvalid),
      .ready(m_axis_rq_tready[0]),
      .sop(rq_sop),
      .eop(rq_eop),
      .sop_at(rq_sop_at),
      .eop_at(rq_eop_at),
      .bes(rq_bes),
      .seq(rq_seq),
      .drop(rq_drop),
      .offset(rq_offset),
      .msi(cfg_interrupt_msi_int),
      .msix(cfg_interrupt_msix_int),
      .msix_data(cfg_interrupt_msix_data),
      .is_idle(rq_idle),
      .*
  );
  usp_mirror_ring #(
      .N(N),
      .DESCRIPTOR(3),
      .STARTS(CC_STARTS)
  ) completions (
      .pause(STALLS && noise[5]),
      .in_valid(s_axis_rc_tvalid),
      .in_ready(s_axis_rc_tready),
      .in_data(s_axis_rc_tdata),
      .in_first(rc_first),
      .in_last(rc_last),
      .in_enables(rc_user[0+:4*N]),
      .in_bes(16'd0),
      .in_discontinue(1'b0),
      .in_inside(rc_inside),
      .data(m_axis_cc_tdata),
      .keep(m_axis_cc_tkeep),
      .last(m_axis_cc_tlast),
      .valid(m_axis_cc_tvalid),
      .ready(m_axis_cc_tready),
      .sop(cc_sop),
      .eop(cc_eop),
      .sop_at(cc_sop_at),
      .eop_at(cc_eop_at),
      .bes(cc_bes),
      .seq(cc_seq),
      .drop(cc_drop),
      .offset(),
      .msi(),
      .msix(),
      .msix_data(),
      .is_idle(cc_idle),
      .*
  );
  always_comb begin
    m_axis_rq_tuser = '0;
    m_axis_cc_tuser = '0;
    if (LARGE) begin
      m_axis_rq_tuser[15:0]   = {rq_bes[1][7:4], rq_bes[0][7:4], rq_bes[1][3:0], rq_bes[0][3:0]};
      m_axis_rq_tuser[25:20]  = {rq_sop_at[1][3:2], rq_sop_at[0][3:2], rq_sop};
      m_axis_rq_tuser[36:26]  = {rq_drop, rq_eop_at, rq_eop};
      m_axis_rq_tuser[61+:12] = rq_seq;
      m_axis_cc_tuser[16:0]   = {cc_drop, cc_eop_at, cc_eop, cc_sop_at[1][3:2], cc_sop_at[0][3:2], cc_sop};
    end else begin
      m_axis_rq_tuser[11:0]  = {rq_drop, 3'd0, rq_bes[0]};
      m_axis_rq_tuser[27:24] = rq_seq[0][3:0];
      m_axis_rq_tuser[61:60] = rq_seq[0][5:4];
    end
    m_axis_rq_tuser[LARGE?16 : 8] = rq_offset;
  end
  assign cfg_interrupt_msix_address = 64'h1_FEE0_1230;
  assign idle = rq_idle && cc_idle && !s_axis_cq_tvalid && !s_axis_rc_tvalid;

  // ---- sequence numbers come back in order --------------------------------------------------------------------------
  logic [5:0] expected;
  always_ff @(posedge clk) begin
    if (pcie_rq_seq_num_vld0 && pcie_rq_seq_num0 != expected) intx <= 1'b1;
    if (pcie_rq_seq_num_vld1 && pcie_rq_seq_num1 != 6'(expected + 1)) intx <= 1'b1;
    expected <= expected + 6'(pcie_rq_seq_num_vld0) + 6'(pcie_rq_seq_num_vld1);
    if (rst) {expected, intx} <= '0;
  end
endmodule

// For one stream: the DWs of TLPs in a ring, and the beats made of them.
module usp_mirror_ring #(
    parameter int N = 8,
    parameter int DESCRIPTOR = 4,
    parameter int STARTS = 1
) (
    input logic clk,
    input logic rst,
    input logic pause,
    input logic in_valid,
    output logic in_ready,
    input logic [N-1:0][31:0] in_data,
    input logic [N-1:0] in_first,
    input logic [N-1:0] in_last,
    input logic [N-1:0][3:0] in_enables,
    input logic [1:0][7:0] in_bes,
    input logic in_discontinue,
    output logic in_inside,
    output logic [N-1:0][31:0] data,
    output logic [N-1:0] keep,
    output logic last,
    output logic valid,
    input logic ready,
    output logic [1:0] sop,
    output logic [1:0] eop,
    output logic [1:0][3:0] sop_at,
    output logic [1:0][3:0] eop_at,
    output logic [1:0][7:0] bes,
    output logic [1:0][5:0] seq,
    output logic drop,
    output logic offset,
    output logic [31:0] msi,
    output logic msix,
    output logic [31:0] msix_data,
    output logic is_idle
);
  localparam int DEPTH = 4096;
  typedef struct packed {
    logic first, last, drop;
    logic [2:0] fault;
    logic [7:0] bes;
    logic [31:0] data;
  } lane_t;
  lane_t ring[DEPTH];
  int head, whole, tail;  // head: DWs received; whole: DWs of complete TLPs; tail: DWs sent
  int dw, starts, out, begun, ended;
  logic [ 8:0] said;  // of a completion: its error code, and its address bits above the Lower Address of a TLP
  logic [31:0] word;
  logic asks, upper, in_tlp;
  logic [5:0] number;
  logic [2:0] fault;
  lane_t lane;

  assign in_ready = head - tail < DEPTH - 2 * N && !pause;
  assign is_idle  = head == tail && !valid && !in_inside;

  always @(posedge clk) begin
    msi  = '0;
    msix = 1'b0;
    if (in_valid && in_ready) begin
      starts = 0;
      for (int i = 0; i < N; i++) begin
        if (in_first[i]) begin
          dw = 0;
          in_inside = 1'b1;
        end
        if (in_inside) begin
          word = in_data[i];
          for (int b = 0; b < 4; b++) if (dw >= DESCRIPTOR && !in_enables[i][b]) word[8*b+:8] = '0;
          if (dw < DESCRIPTOR && in_enables[i] != 0) word = '1;
          if (DESCRIPTOR == 3 && dw == 0) begin
            said = word[15:7];
            word = word & 32'hBFFF_007F;
          end
          if (DESCRIPTOR == 3 && dw == 1) word[24:16] = word[24:16] ^ said;
          if (dw == 0) fault = DESCRIPTOR == 4 && word[31:28] == 4'hF ? word[26:24] : 3'd0;
          if (DESCRIPTOR == 4 && dw == 0) upper = word[11];
          if (dw == 2 && fault == 1) word[10:0] = word[10:0] + 1;
          if (DESCRIPTOR == 4 && dw == 3) begin
            asks = word[18:16] == 3'd5;
            word = word & 32'hFE00_00FF;
          end
          if (DESCRIPTOR == 4 && dw == 4 && asks) begin
            msix = upper;
            msix_data = word;
            if (!upper) msi = word;
          end
          ring[head%DEPTH] = '{
              in_first[i],
              in_last[i],
              in_discontinue,
              fault,
              fault == 2 ? 8'h10 : in_bes[starts%2],
              word
          };
          if (in_first[i]) starts++;
          head++;
          dw++;
          if (in_last[i]) begin
            in_inside = 1'b0;
            whole = head;
          end
        end
      end
    end
    if (!valid || ready) begin
      {keep, last, valid, sop, eop, sop_at, eop_at, bes, seq, drop, offset} = '0;
      data = 'x;
      begun = 0;
      ended = 0;
      out = 0;
      while (out < N && tail < whole && (in_tlp || begun < STARTS)) begin
        lane = ring[tail%DEPTH];
        if (lane.first && ring_drops(tail) && out != 0) break;  // discontinue applies to a whole beat
        if (lane.first) begin
          sop[begun] = 1'b1;
          sop_at[begun] = 4'(out);
          bes[begun] = lane.bes;
          seq[begun] = number;
          if (!ring_drops(tail)) number++;
          begun++;
        end
        data[out] = lane.data;
        keep[out] = lane.fault != 3 || out != 0;
        offset = offset || lane.fault == 4;
        valid = 1'b1;
        in_tlp = !lane.last;
        tail++;
        if (lane.last) begin
          eop[ended] = 1'b1;
          eop_at[ended] = 4'(out);
          ended++;
          last = STARTS == 1;
          drop = lane.drop;
          out  = STARTS == 1 || drop ? N : (out / (N / STARTS) + 1) * (N / STARTS);
        end else out++;
      end
      if (STARTS > 1) keep = '1;
    end
    if (rst) begin
      {head, whole, tail} = '0;
      {in_inside, in_tlp, valid, number, msi, msix} = '0;
    end
  end

  // True if the TLP that begins at `at` has no sequence number, as its last beat discontinues it.
  function automatic logic ring_drops(int at);
    while (!ring[at%DEPTH].last) at++;
    return ring[at%DEPTH].drop;
  endfunction
endmodule
