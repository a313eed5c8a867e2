// SPDX-License-Identifier: MIT OR Apache-2.0
// Serves inbound requests: memory writes go to the user as address-aligned words with byte strobes, memory reads
// are answered by completions, any other request that needs a completion gets Unsupported Request.
//
// * Requests are taken in order. A write is given to the user before any request behind it is examined; requests
//   that need a completion move to a queue of their own, so that writes pass waiting reads and taking a write never
//   depends on sending a TLP. `np_room` says that this queue has room for RESERVE more requests: as many as can
//   still be on their way when the hard IP sees it fall.
// * Completions end at every 128-byte boundary, so they fit any MPS. They are sent one word a beat: `stx_hdr` is
//   held for all beats of a TLP (completer ID left 0), the first DW at lane Lower Address [4:2]. A TLP starts
//   when its first word is there; its other words come at the user's pace, with one outstanding.
// * `swr.bar` is valid from a cycle before `swr.valid`, so that a user may select by a register.
// * Addresses are the low 32 bits of the PCIe address; the user decodes as many bits as its BAR has.
// * Messages and poisoned writes are dropped, with their data.
module slave #(
    parameter int NP_DEPTH = 32,
    parameter int RESERVE  = 27   // 16 in the FIFO to here, 3 in registers, 4 to come after that, 4 while it crosses
) (
    input logic clk,
    input logic rst,

    input  logic         req_valid,
    input  logic [127:0] req_hdr,
    input  logic [  2:0] req_bar,
    input  logic         req_write,       // a memory write
    input  logic         req_answer,      // it needs a completion
    output logic         req_ready,
    input  logic         req_data_valid,
    input  logic [255:0] req_data,
    output logic         req_data_ready,
    output logic         np_room,

    output swr_t  swr,
    input  logic  swr_ready,
    output srd_t  srd,
    input  logic  srd_ready,
    input  word_t srd_data,
    output logic  srd_data_ready,

    output logic         stx_valid,
    output logic [127:0] stx_hdr,
    output logic [255:0] stx_data,
    output logic         stx_has_data,
    output logic         stx_last,
    input  logic         stx_ready,

    output logic       busy,
    output logic [1:0] errors  // a pulse each: [0] unsupported, [1] poisoned write
);
  localparam int CW = $clog2(NP_DEPTH);

  // ---- decoding of the request -------------------------------------------------------------------------
  logic has_data, four, memory, locked;
  logic [10:0] length;  // 1 .. 1024
  logic [ 2:0] lane;
  logic [31:0] address;
  logic [ 7:0] words;  // of payload
  logic [10:0] span;

  assign has_data = req_hdr[tlpdma_pkg::TLP_HAS_DATA_BIT];
  assign four     = req_hdr[tlpdma_pkg::TLP_4DW_BIT];
  assign memory   = req_hdr[124:121] == 4'b0000;
  assign locked   = req_hdr[120];
  assign length   = {req_hdr[tlpdma_pkg::LENGTH_LSB+:10] == 10'd0, req_hdr[tlpdma_pkg::LENGTH_LSB+:10]};
  assign address  = four ? req_hdr[31:0] : req_hdr[63:32];
  assign lane     = address[4:2];
  assign span     = length + {8'd0, lane} + 11'd7;
  assign words    = has_data ? span[10:3] : 8'd0;

  // ---- writes, and payloads to be dropped ----------------------------------------------------------------
  logic w_valid, w_drop, w_first, w_last, w_step;
  logic w_shown, w_passed;  // its BAR has been shown for a cycle: words are given, or dropped
  logic [7:0] w_left;  // words
  logic [2:0] w_start, w_end;  // lanes of the first and the last DW
  logic [3:0] w_first_be, w_last_be;
  logic [ 2:0] w_bar;
  logic [26:0] w_word;
  logic        take;

  logic        np_space;

  assign take = req_valid && req_ready;
  assign req_ready = !w_valid && (!req_answer || np_space);
  assign w_last = w_left == 8'd1;
  assign w_step = req_data_valid && req_data_ready;

  assign req_data_ready = w_passed || (w_shown && swr_ready);
  assign swr.valid = w_shown && req_data_valid;
  assign swr.bar = w_bar;
  assign swr.addr = {w_word, 5'd0};
  assign swr.data = req_data;
  // the first DW's byte enables and all bytes after it, the last DW's and all bytes before it
  assign swr.strobe = (w_first ? {28'hfffffff, w_first_be} << {w_start, 2'b00} : '1)
                      & (w_last ? {w_last_be, 28'hfffffff} >> {~w_end, 2'b00} : '1);

  always_ff @(posedge clk) begin
    w_shown   <= w_valid && !w_drop && !(w_step && w_last);
    w_passed  <= w_valid && w_drop && !(w_step && w_last);
    errors[0] <= take && req_answer && (!memory || locked || has_data);
    errors[1] <= take && req_write && req_hdr[tlpdma_pkg::EP_LSB];
    if (w_step) begin
      w_valid <= !w_last;
      w_first <= 1'b0;
      w_left  <= w_left - 8'd1;
      w_word  <= w_word + 27'd1;
    end
    if (take) begin
      w_valid    <= has_data;
      w_drop     <= !req_write || req_hdr[tlpdma_pkg::EP_LSB];
      w_first    <= 1'b1;
      w_left     <= words;
      w_start    <= lane;
      w_end      <= lane + length[2:0] - 3'd1;
      w_first_be <= req_hdr[tlpdma_pkg::FIRST_BE_LSB+:4];
      w_last_be  <= length == 11'd1 ? 4'hf : req_hdr[tlpdma_pkg::LAST_BE_LSB+:4];
      w_bar      <= req_bar;
      w_word     <= address[31:5];
    end
    if (rst) begin
      w_valid  <= 1'b0;
      w_shown  <= 1'b0;
      w_passed <= 1'b0;
      errors   <= 2'b00;
    end
  end

  // ---- the queue of requests that need a completion --------------------------------------------------------
  typedef struct packed {
    logic [2:0]  bar;
    logic [29:0] address;
    logic [9:0]  length;
    logic        one;                         // DW
    logic [3:1]  last_be;
    logic [3:0]  first_be;
    logic [23:0] who;                         // requester and tag
    logic [5:0]  class_;                      // traffic class and attributes
    logic        memory,   locked, has_data;
  } np_t;
  localparam int NPW = 3 + 30 + 10 + 1 + 7 + 24 + 6 + 3;
  logic np_valid, np_pop;
  logic [CW:0] np_count;
  np_t np_in, np;

  assign np_in = {
    req_bar,
    address[31:2],
    req_hdr[tlpdma_pkg::LENGTH_LSB+:10],
    length == 11'd1,
    req_hdr[tlpdma_pkg::LAST_BE_LSB+1+:3],
    req_hdr[tlpdma_pkg::FIRST_BE_LSB+:4],
    req_hdr[tlpdma_pkg::TAG_LSB+:24],
    req_hdr[tlpdma_pkg::TC_LSB+:3],
    req_hdr[114],
    req_hdr[tlpdma_pkg::NS_LSB+:2],
    memory,
    locked,
    has_data
  };
  assign np_room = np_count <= (CW + 1)'(NP_DEPTH - RESERVE);

  sync_fifo #(
      .WIDTH(NPW),
      .DEPTH(NP_DEPTH)
  ) queue (
      .clk(clk),
      .rst(rst),
      .wr_valid(take && req_answer),
      .wr_ready(np_space),
      .wr_data(np_in),
      .rd_valid(np_valid),
      .rd_ready(np_pop),
      .rd_data(np),
      .count(np_count)
  );

  // ---- reads -------------------------------------------------------------------------------------------------
  // Bytes before the first and after the last requested byte, within their DWs. If none is requested, one is counted.
  function automatic logic [1:0] bytes_before(input logic [3:0] be);
    bytes_before = be[0] ? 2'd0 : be[1] ? 2'd1 : be[2] ? 2'd2 : be[3] ? 2'd3 : 2'd0;
  endfunction
  function automatic logic [1:0] bytes_after(input logic [3:1] be);
    bytes_after = be[3] ? 2'd0 : be[2] ? 2'd1 : be[1] ? 2'd2 : 2'd3;
  endfunction

  localparam logic [1:0] IDLE = 2'd0, CUT = 2'd1, ASK = 2'd2, SEND = 2'd3;
  logic [1:0] state;
  logic r_data, r_memory, r_locked;  // r_data: a completion with data
  logic [ 2:0] r_bar;
  logic [29:0] r_address;  // DW address of the next word to read
  logic [10:0] r_length;  // DWs not yet in a completion
  logic [23:0] r_who;
  logic [ 5:0] r_class;
  logic [1:0] r_offset, r_after;  // bytes of its first and last DW that are not requested
  logic [ 6:0] c_lower;  // of the completion under way
  logic [ 5:0] c_length;  // its DWs: 1 .. 32
  logic [ 5:0] c_left;  // its DWs not sent yet
  logic [12:0] c_count;
  logic [ 5:0] to_boundary;  // DWs to the next 128 bytes
  logic measured, ends_before;  // ends_before: the read ends before that boundary
  logic       c_last;  // at most a word of it is left
  logic [5:0] c_next;
  logic [5:0] in_word;

  assign c_next = ends_before ? r_length[5:0] : to_boundary;
  assign in_word = 6'd8 - {3'd0, r_address[2:0]};

  assign np_pop = state == IDLE && np_valid;
  assign srd.valid = state == ASK;
  assign srd.bar = r_bar;
  assign srd.addr = {r_address[29:3], 5'd0};
  assign stx_valid = state == SEND && (!r_data || srd_data.valid);
  assign srd_data_ready = state == SEND && r_data && stx_ready;
  assign stx_data = srd_data.data;
  assign stx_has_data = r_data;
  assign stx_last = c_last;
  assign stx_hdr = {
    1'b0,
    r_data,
    5'b00101,
    r_locked,
    1'b0,
    r_class[5:3],
    1'b0,
    r_class[2],
    2'b00,
    2'b00,
    r_class[1:0],
    2'b00,
    r_data ? {4'd0, c_length} : 10'd0,
    16'd0,
    r_data ? tlpdma_pkg::CPL_SC : tlpdma_pkg::CPL_UR,
    1'b0,
    c_count[11:0],
    r_who,
    1'b0,
    c_lower,
    32'd0
  };

  always_ff @(posedge clk) begin
    case (state)
      IDLE: if (np_pop) state <= CUT;
      CUT:  if (measured) state <= r_data ? ASK : SEND;
      ASK:  if (srd_ready) state <= SEND;
      SEND:
      if (stx_valid && stx_ready) begin
        if (!stx_last) state <= ASK;
        else state <= r_data && r_length != 11'd0 ? CUT : IDLE;
      end
    endcase
    if (state == IDLE) begin
      c_last      <= 'x;
      to_boundary <= 'x;
      ends_before <= 'x;
    end else begin
      c_last      <= !r_data || c_left <= in_word;  // both are stable while a word is requested
      // a cut takes two cycles: the rest is measured, then cut
      to_boundary <= 6'd32 - {1'b0, r_address[4:0]};
      ends_before <= r_length < 11'd32 - {6'd0, r_address[4:0]};
    end
    if (srd_data_ready && stx_valid) c_left <= c_left - in_word;
    if (state == CUT && measured) begin
      c_lower  <= r_memory ? {r_address[4:0], r_offset} : 7'd0;
      // Byte Count: the remaining bytes of the request; 4 for any request but a memory read
      c_count  <= r_memory ? {r_length, 2'b00} - {10'd0, {1'b0, r_offset} + {1'b0, r_after}} : 13'd4;
      c_length <= c_next;
      c_left   <= c_next;
      r_length <= r_length - {5'd0, c_next};
      r_offset <= 2'd0;
    end
    measured <= state == CUT && !measured;
    if (srd_data_ready && stx_valid) r_address <= {r_address[29:3] + 27'd1, 3'd0};  // completions end with a word
    if (np_pop) begin
      r_data    <= np.memory && !np.locked && !np.has_data;
      r_memory  <= np.memory;
      r_locked  <= np.memory && np.locked;
      r_bar     <= np.bar;
      r_address <= np.address;
      r_length  <= {np.length == 10'd0, np.length};
      r_offset  <= bytes_before(np.first_be);
      r_after   <= bytes_after(np.one ? np.first_be[3:1] : np.last_be);
      r_who     <= np.who;
      r_class   <= np.class_;
    end
    if (rst) state <= IDLE;
  end

  assign busy = w_valid || np_valid || state != IDLE;

  logic unused;
  assign unused = &{1'b0, req_hdr, span[2:0], c_count[12], address[1:0]};
endmodule
