// SPDX-License-Identifier: MIT OR Apache-2.0
// Transmit half of the UltraScale+ shim (256 bit, DWORD-aligned mode, no straddling): headers and payload words
// in; requests go to the RQ stream, completions to the CC stream, through one register of 256 bits.
//
// * The same queues as in trn_tx.sv: ordered, and non-posted.
// * RQ and CC are not ordered with each other in the hard IP, but a completion must not pass posted requests:
//   it waits until the sequence numbers of all posted requests have come back. Bit 0 of a sequence number marks
//   them. Without bus mastering the hard IP drops requests and gives no sequence number back: a completion waits
//   for none then, and bit 1 separates requests sent before from requests sent after it. `gone` reports each posted
//   request that has left, or that was dropped.
// * A read without credits would hold back the requests behind it on RQ: it leaves only with credits that are sure.
//   `np_credits` does not include the reads of the last 8 cycles, so either there are enough for one read in each
//   of them, or no read left in that time.
// * A completion without success takes a whole beat: space for its request, for the hard IP to log.
// * A beat leaves every cycle, but for one more cycle before a TLP whose first payload DW stands above its
//   place in the first beat (DW 4 of requests, 3 of completions).
module usp_tx (
    input logic clk,
    input logic rst,

    input  logic         hdr_valid,
    input  logic [127:0] hdr,
    input  logic [  2:0] hdr_lane,
    output logic         hdr_ready,
    input  logic [255:0] data,
    output logic         data_ready,
    input  logic         bus_master,
    input  logic         np_valid,
    input  logic [127:0] np_hdr,
    output logic         np_ready,
    input  logic [  3:0] np_credits,  // 15: or more

    output logic [255:0] tdata,
    output logic [  7:0] tkeep,
    output logic         tlast,
    output logic         rq_tvalid,
    output logic [  7:0] rq_be,       // last, first
    output logic [  1:0] rq_mark,     // sequence number, bits 1:0
    input  logic         rq_tready,
    output logic         cc_tvalid,
    input  logic         cc_tready,
    input  logic         sent_valid,  // a sequence number came back
    input  logic [  1:0] sent_mark,
    output logic         gone,

    output logic idle
);
  // ---- arbitration between the queues -----------------------------------------------------------------
  logic load, busy, np_turn, cpl_head, ord_ok, np_ok, pick_np, pick;
  logic [6:0] unsent;  // posted requests whose sequence number has not come back
  logic [7:0] dropped;  // dropped posted requests not yet reported by `gone`
  logic mastered, era, sent, posts;  // era: changes when bus mastering goes off
  logic [3:0] np_rest;  // cycles until `np_credits` includes the last read

  assign load     = (!rq_tvalid || rq_tready) && (!cc_tvalid || cc_tready);
  assign cpl_head = hdr[124:121] == 4'b0101;
  assign ord_ok   = hdr_valid && (cpl_head ? unsent == 7'd0 : !unsent[6]);
  assign np_ok    = np_valid && (np_credits > 4'd8 || (np_credits != 4'd0 && np_rest == 4'd0));
  assign pick_np  = np_ok && (np_turn || !ord_ok);
  assign pick     = load && !busy && (ord_ok || np_ok);
  assign sent     = sent_valid && sent_mark == {era, 1'b1} && unsent != 7'd0;

  // ---- the TLP under way --------------------------------------------------------------------------------
  logic primed;  // the first word is kept already
  logic use_np, cpl, refused, has_data, above, step, first, last;
  logic [127:0] head;
  logic [10:0] dws, size, span;
  logic [7:0] left, left_r, words, words_r;
  logic [2:0] turn, turn_r, rem, rem_r;
  logic fetch, prime, cpl_r;

  assign use_np     = primed ? 1'b0 : pick_np;
  assign head       = use_np ? np_hdr : hdr;
  assign cpl        = cpl_head && !use_np;
  assign refused    = cpl && head[79:77] != 3'd0;
  assign has_data   = head[126];
  assign dws        = has_data ? {head[105:96] == 10'd0, head[105:96]} : 11'd0;
  assign above      = has_data && hdr_lane > (cpl ? 3'd3 : 3'd4);
  assign prime      = pick && above && !primed && !use_np;
  assign first      = !busy || primed;
  assign step       = load && (busy || (pick && !prime));
  assign size       = refused ? 11'd7 : dws + (cpl ? 11'd2 : 11'd3);  // DWs with the descriptor, less 1
  assign span       = dws + {8'd0, hdr_lane} + 11'd7;
  assign left       = first ? size[10:3] : left_r;
  assign rem        = first ? size[2:0] : rem_r;
  assign last       = left == 8'd0;
  assign words      = primed ? words_r : first ? (has_data ? span[10:3] : 8'd0) : words_r;
  assign turn       = first ? (cpl ? 3'd3 : 3'd4) - hdr_lane : turn_r;
  assign posts      = step && first && !cpl && !use_np;
  assign fetch      = (step || prime) && words != 8'd0;
  assign data_ready = fetch;
  assign hdr_ready  = step && first && !use_np;
  assign np_ready   = step && first && use_np;

  // ---- descriptors ----------------------------------------------------------------------------------------
  logic         four;
  logic [  2:0] attr;
  logic [127:0] rq_descriptor;
  logic [ 95:0] cc_descriptor;
  assign four = head[125];
  assign attr = {head[114], head[109:108]};
  assign rq_descriptor = {
    1'b0,
    attr,
    head[118:116],
    1'b0,
    16'd0,
    head[79:72],
    head[95:80],
    head[110],
    3'd0,
    has_data,
    head[105:96] == 10'd0,
    head[105:96],
    four ? head[63:32] : 32'd0,
    four ? head[31:2] : head[63:34],
    2'b00
  };
  assign cc_descriptor = {
    1'b0,
    attr,
    head[118:116],
    1'b0,
    head[95:80],
    head[47:40],
    head[63:48],
    1'b0,
    head[110],
    head[79:77],
    dws,
    2'd0,
    head[120],
    head[75:64] == 12'd0,
    head[75:64],
    9'd0,
    head[38:32]
  };

  // ---- beats ------------------------------------------------------------------------------------------------
  logic [255:0] turned, kept, merged;
  always_comb begin
    turned = data;
    for (int t = 1; t < 8; t++) begin
      if (turn == 3'(t)) for (int i = 0; i < 8; i++) turned[32*i+:32] = data[32*((i+8-t)%8)+:32];
    end
    merged = turned;
    for (int i = 0; i < 7; i++) if (3'(i) < turn) merged[32*i+:32] = kept[32*i+:32];
  end

  always_ff @(posedge clk) begin
    if (fetch) kept <= turned;
    if (prime) begin
      primed  <= 1'b1;
      busy    <= 1'b1;
      words_r <= words - 8'd1;
    end
    if (load) begin
      rq_tvalid <= step && !(first ? cpl : cpl_r);
      cc_tvalid <= step && (first ? cpl : cpl_r);
    end
    if (step) begin
      tdata <= merged;
      if (first) tdata[95:0] <= cpl ? cc_descriptor : rq_descriptor[95:0];
      if (first && !cpl) tdata[127:96] <= rq_descriptor[127:96];
      if (first && refused) tdata[255:96] <= '0;
      tkeep   <= last ? 8'hff >> (3'd7 - rem) : 8'hff;
      tlast   <= last;
      primed  <= 1'b0;
      busy    <= !last;
      left_r  <= left - 8'd1;
      rem_r   <= rem;
      turn_r  <= turn;
      words_r <= words - {7'd0, fetch};
    end
    if (step && first) begin
      cpl_r   <= cpl;
      np_turn <= !use_np;
      rq_be   <= head[71:64];
      rq_mark <= {era, !use_np && bus_master};
    end
    if (np_ready) np_rest <= 4'd8;
    else if (load && np_rest != 4'd0) np_rest <= np_rest - 4'd1;
    unsent <= bus_master ? unsent + {6'd0, posts} - {6'd0, sent} : 7'd0;
    gone <= (bus_master && sent) || dropped != 8'd0;
    dropped  <= dropped - {7'd0, dropped != 8'd0 && !(bus_master && sent)}
                + (bus_master ? 8'd0 : {1'b0, unsent} + {7'd0, posts});
    era <= era ^ (mastered && !bus_master);
    mastered <= bus_master;
    if (rst) begin
      rq_tvalid <= 1'b0;
      cc_tvalid <= 1'b0;
      busy      <= 1'b0;
      primed    <= 1'b0;
      np_turn   <= 1'b0;
      unsent    <= 7'd0;
      dropped   <= 8'd0;
      gone      <= 1'b0;
      np_rest   <= 4'd0;
      mastered  <= 1'b0;
      era       <= 1'b0;
    end
  end

  assign idle = !busy && !rq_tvalid && !cc_tvalid && dropped == 8'd0;

  logic unused;
  assign unused = &{1'b0, span[2:0], kept[255:224], head};
endmodule
