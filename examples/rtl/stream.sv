// SPDX-License-Identifier: MIT OR Apache-2.0
// An end point on the streams of an UltraScale+ hard IP, 64 bits wide: 4 KiB of memory in BAR 0, and a DMA that moves
// up to 128 bytes between host memory and the start of that memory. Its registers are words of the memory:
//
//   F00h  address in host memory, F04h its upper half
//   F08h  1 starts a read from that address, 2 a write to it; 0 when done, 80000000h and the error code if it failed
//   F10h  bytes: a multiple of 4 up to 128 that crosses no multiple of 4 KiB
//
// Each transfer ends with an MSI. Descriptors are as in the hard IP's guide: four DWs, two beats, for a request; three
// DWs for a completion, so that its data begin in the upper half of the second beat.
module stream (
    input logic clk,
    input logic rst,

    output logic [63:0] m_axis_rq_tdata,
    output logic [ 1:0] m_axis_rq_tkeep,
    output logic        m_axis_rq_tlast,
    output logic [61:0] m_axis_rq_tuser,
    output logic        m_axis_rq_tvalid,
    input  logic        m_axis_rq_tready,
    input  logic [63:0] s_axis_rc_tdata,
    input  logic [ 1:0] s_axis_rc_tkeep,
    input  logic        s_axis_rc_tlast,
    input  logic [74:0] s_axis_rc_tuser,
    input  logic        s_axis_rc_tvalid,
    output logic        s_axis_rc_tready,
    input  logic [63:0] s_axis_cq_tdata,
    input  logic [ 1:0] s_axis_cq_tkeep,
    input  logic        s_axis_cq_tlast,
    input  logic [87:0] s_axis_cq_tuser,
    input  logic        s_axis_cq_tvalid,
    output logic        s_axis_cq_tready,
    output logic [63:0] m_axis_cc_tdata,
    output logic [ 1:0] m_axis_cc_tkeep,
    output logic        m_axis_cc_tlast,
    output logic [32:0] m_axis_cc_tuser,
    output logic        m_axis_cc_tvalid,
    input  logic        m_axis_cc_tready,

    output logic [31:0] cfg_interrupt_msi_int,
    output logic        idle
);
  localparam logic [9:0] HOST = 10'h3C0, GO = 10'h3C2, BYTES = 10'h3C4;
  logic [31:0] memory[1024];

  // For each stream: the beat of the TLP, 2 for all but the first two, and the memory word where the beat's data begin.
  logic [1:0] cq_beat, cc_beat, rq_beat, rc_beat;
  logic [9:0] cq_at, cc_at, rq_at, rc_at;

  // The request: byte enables of its last and first DW; the second half of its descriptor.
  logic [7:0] be;
  logic [31:0] kind, target;
  logic answers;  // a completion is under way
  logic [10:0] left;  // DWs of it that are still to be sent
  // The DMA.
  logic reads, writes, busy;
  logic over;  // this completion is the read's last one
  logic [3:0] failed;
  logic [5:0] dws;
  assign dws = memory[BYTES][7:2];

  // ---- CC -----------------------------------------------------------------------------------------------------------
  logic [1:0] skip, gap;  // bytes before the first and after the last requested byte
  logic [3:0] last_be;
  logic refuses;  // more than 128 bytes are requested: Completer Abort
  logic [12:0] count;
  always_comb begin
    skip    = be[0] ? 0 : be[1] ? 1 : be[2] ? 2 : be[3] ? 3 : 0;
    last_be = kind[10:0] == 1 ? be[3:0] : be[7:4];
    gap     = last_be[3] ? 0 : last_be[2] ? 1 : last_be[1] ? 2 : 3;
    refuses = kind[10:0] > 32;
    count   = be[3:0] == 0 ? 1 : {kind[10:0], 2'b00} - 13'(skip) - 13'(gap);
    case (cc_beat)
      0:
      m_axis_cc_tdata = {
        kind[31:16], 2'd0, refuses ? 3'd4 : 3'd0, refuses ? 11'd0 : kind[10:0], 3'd0, count, 9'd0, cc_at[4:0], skip
      };
      1: m_axis_cc_tdata = {memory[cc_at], 1'b0, target[30:28], target[27:25], 1'b0, 16'd0, target[7:0]};
      default: m_axis_cc_tdata = {memory[cc_at+1], memory[cc_at]};
    endcase
    m_axis_cc_tlast = cc_beat == 1 && (refuses || left == 1) || cc_beat == 2 && left <= 2;
    m_axis_cc_tkeep = {!(cc_beat == 1 && refuses || cc_beat == 2 && left == 1), 1'b1};
  end
  assign m_axis_cc_tvalid = answers;
  assign m_axis_cc_tuser  = '0;

  // ---- RQ -----------------------------------------------------------------------------------------------------------
  always_comb begin
    case (rq_beat)
      0: m_axis_rq_tdata = {memory[HOST+1], memory[HOST]};
      1: m_axis_rq_tdata = {32'd0, 17'd0, 3'd0, writes, 5'd0, dws};
      default: m_axis_rq_tdata = {memory[rq_at+1], memory[rq_at]};
    endcase
    m_axis_rq_tlast = rq_beat == 1 ? reads : rq_beat == 2 && rq_at + 2 >= 10'(dws);
    m_axis_rq_tkeep = {!(rq_beat == 2 && rq_at + 1 == 10'(dws)), 1'b1};
    m_axis_rq_tuser = dws == 1 ? 62'h0F : 62'hFF;
  end
  assign m_axis_rq_tvalid = busy;

  assign s_axis_cq_tready = !answers;
  assign s_axis_rc_tready = 1'b1;
  assign idle = cq_beat == 0 && !s_axis_cq_tvalid && !answers && !reads && !writes;

  always_ff @(posedge clk) begin
    cfg_interrupt_msi_int <= '0;

    if (s_axis_cq_tvalid && s_axis_cq_tready) begin
      cq_beat <= s_axis_cq_tlast ? 0 : cq_beat == 2 ? 2 : cq_beat + 1;
      if (cq_beat == 0) begin
        cq_at <= s_axis_cq_tdata[11:2];
        cc_at <= s_axis_cq_tdata[11:2];
        be    <= s_axis_cq_tuser[7:0];
      end
      if (cq_beat == 1) begin
        {target, kind} <= s_axis_cq_tdata;
        left           <= s_axis_cq_tdata[10:0];
        answers        <= s_axis_cq_tlast;
      end
      if (cq_beat == 2) begin
        cq_at <= cq_at + 2;
        for (int b = 0; b < 8; b++) begin
          if (s_axis_cq_tuser[8+b]) memory[cq_at+10'(b/4)][8*(b%4)+:8] <= s_axis_cq_tdata[8*b+:8];
        end
        if (cq_at == GO && s_axis_cq_tuser[8]) {writes, reads} <= s_axis_cq_tdata[1:0];
        if (cq_at + 1 == GO && s_axis_cq_tuser[12]) {writes, reads} <= s_axis_cq_tdata[33:32];
        if ((cq_at == GO && s_axis_cq_tuser[8]) || (cq_at + 1 == GO && s_axis_cq_tuser[12])) busy <= 1'b1;
      end
    end

    if (m_axis_cc_tvalid && m_axis_cc_tready) begin
      cc_beat <= m_axis_cc_tlast ? 0 : cc_beat == 2 ? 2 : cc_beat + 1;
      if (cc_beat != 0) begin
        cc_at <= cc_at + (cc_beat == 1 ? 1 : 2);
        left  <= left - (cc_beat == 1 ? 1 : 2);
      end
      if (m_axis_cc_tlast) answers <= 1'b0;
    end

    if (m_axis_rq_tvalid && m_axis_rq_tready) begin
      rq_beat <= m_axis_rq_tlast ? 0 : rq_beat == 2 ? 2 : rq_beat + 1;
      rq_at   <= rq_beat == 2 ? rq_at + 2 : 0;
      if (m_axis_rq_tlast) begin
        busy  <= 1'b0;
        rc_at <= 0;
        if (writes) begin
          writes <= 1'b0;
          memory[GO] <= '0;
          cfg_interrupt_msi_int <= 32'd1;
        end
      end
    end

    if (s_axis_rc_tvalid) begin
      rc_beat <= s_axis_rc_tlast ? 0 : rc_beat == 2 ? 2 : rc_beat + 1;
      if (rc_beat == 0) begin
        over   <= s_axis_rc_tdata[30];
        failed <= s_axis_rc_tdata[15:12];
      end
      if (rc_beat == 1 && s_axis_rc_tkeep[1]) begin
        memory[rc_at] <= s_axis_rc_tdata[63:32];
        rc_at <= rc_at + 1;
      end
      if (rc_beat == 2) begin
        memory[rc_at] <= s_axis_rc_tdata[31:0];
        if (s_axis_rc_tkeep[1]) memory[rc_at+1] <= s_axis_rc_tdata[63:32];
        rc_at <= rc_at + 2;
      end
      if (s_axis_rc_tlast && over) begin
        reads <= 1'b0;
        memory[GO] <= failed == 0 ? '0 : {28'h8000000, failed};
        cfg_interrupt_msi_int <= 32'd1;
      end
    end

    if (rst) begin
      {cq_beat, cc_beat, rq_beat, rc_beat} <= '0;
      {answers, reads, writes, busy} <= '0;
    end
  end
endmodule
