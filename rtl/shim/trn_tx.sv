// SPDX-License-Identifier: MIT OR Apache-2.0
// Transmit half of the TRN shim: headers and address-aligned 256-bit payload words in, beats of W bits out.
//
// * Two queues: ordered (posted requests and completions, with data) and non-posted (reads, no data). Their
//   heads take turns; a head whose class has no room (`buf_av`) does not hold back the other queue.
// * `buf_av` (bit 0 posted, 1 non-posted, 2 completion: room for one more TLP) is sampled in the cycle
//   before a TLP's first beat is shown; the hard IP counts a TLP from the cycle after its first beat was
//   taken. A TLP of one beat is therefore not followed at once by another of its class.
// * All payload words of a header are in the FIFO before it is shown. A beat leaves every cycle, between
//   TLPs too; `src_rdy` never falls within a TLP.
module trn_tx #(
    parameter int W = 64
) (
    input logic clk,
    input logic rst,

    input  logic         hdr_valid,
    input  logic [127:0] hdr,
    input  logic [  2:0] hdr_lane,    // lane of the first payload DW in its first word
    output logic         hdr_ready,
    input  logic         data_valid,
    input  logic [255:0] data,
    output logic         data_ready,
    input  logic         np_valid,
    input  logic [127:0] np_hdr,
    output logic         np_ready,

    output logic                    src_rdy,
    output logic                    sof,
    output logic                    eof,
    output logic [           W-1:0] beat,
    output logic [$clog2(W/32)-1:0] rem,
    input  logic                    dst_rdy,
    input  logic [             2:0] buf_av,

    output logic idle
);
  localparam int N = W / 32;
  localparam int S = $clog2(N);
  localparam int G = 8 / N;
  localparam int GW = $clog2(G);
  localparam int LW = 11 - S;  // counts the beats of a TLP: 4 + 1024 DWs

  // -- arbitration between the queues ----------------------------------------------------------------
  logic [2:0] room, shown;  // shown: class of a first beat that the hard IP has not counted
  logic np_turn, ord_ok, np_ok, pick_np, pick;
  logic load, busy;
  logic cpl_head;

  assign load     = !src_rdy || dst_rdy;
  assign room     = buf_av & ~(src_rdy && sof ? shown : 3'b000);
  assign cpl_head = hdr[124:121] == 4'b0101;
  assign ord_ok   = hdr_valid && (cpl_head ? room[2] : room[0]);
  assign np_ok    = np_valid && room[1];
  assign pick_np  = np_ok && (np_turn || !ord_ok);
  assign pick     = load && !busy && (ord_ok || np_ok);

  // -- the TLP under way -----------------------------------------------------------------------------
  logic use_np, ends_np;  // valid with pick and while busy
  logic         np_r;
  logic [127:0] head;
  logic four, first, last;
  logic [10:0] extra;  // DWs after the first
  logic [LW-1:0] left, left_r;  // beats after this one
  logic second;  // W = 64: the second beat of the header comes next
  logic [S-1:0] shift, shift_r, rem_r;
  logic [GW-1:0] group, group_r;
  logic has_data_r;

  assign use_np  = busy ? np_r : pick_np;
  // The queue whose header ends with this beat: at W = 64 it was decided a beat before.
  assign ends_np = N == 4 ? use_np : np_r;
  assign head    = use_np ? np_hdr : hdr;
  assign first   = !busy;
  assign four    = ends_np ? np_hdr[125] : hdr[125];
  // Of the ordered queue's head, without waiting for the arbitration; a read has its header only. Length is
  // 1 .. MPS/4 here, so that its tenth bit (1024 coded as 0) does not matter.
  assign extra   = (hdr[126] ? {1'b0, hdr[105:96]} : 11'd0) + (hdr[125] ? 11'd3 : 11'd2);
  assign left    = !first ? left_r : use_np ? (N == 4 ? '0 : LW'(1)) : extra[10:S];
  assign last    = !first ? left_r == '0 : N == 4 && (use_np || extra[10:S] == '0);

  // The first payload DW stands at lane `hdr_lane` of its word and at DW 0 (4-DW header) or N-1 of its beat:
  // payload beats take the last `shift` DWs of the group before.
  logic [ S-1:0] head_shift;
  logic [GW-1:0] head_group;
  assign head_shift = hdr[125] ? S'(0) - hdr_lane[S-1:0] : S'(N - 1) - hdr_lane[S-1:0];
  assign head_group = hdr_lane[2:S];
  assign shift      = first ? head_shift : shift_r;
  assign group      = first ? head_group : group_r;

  // -- payload: a group of N lanes a beat --------------------------------------------------------------
  // The next beat's use of the data is decided a beat before, in `fetch_r` and `done_r`, so that only `load` is in
  // the path to the FIFO's ready. Only at W = 128 does the first beat have payload, too.
  logic step, starts, fetch_first, fetch, has_data, last_next, fetch_next, done_next, fetch_r, done_r;
  logic [S-1:0] rem_now, rem_ord;
  logic [GW-1:0] group_next;
  assign step = load && (busy || pick);
  assign rem_now = !first ? rem_r : use_np ? S'(np_hdr[125] ? N - 1 : N - 2) : extra[S-1:0];
  // The header's last beat fetches after three DWs always, after four only if DWs are kept for the next beat.
  assign starts = !hdr[125] || head_shift != 0;
  assign fetch_first = N == 4 && pick && !use_np && hdr[126] && starts;
  assign fetch = load && (busy ? fetch_r : fetch_first);
  // A word is done with its last group, or with the TLP if groups of it are left.
  assign data_ready = load && (busy ? done_r : fetch_first && (last || group == GW'(G - 1)));

  // Of the ordered queue's head, as above: the arbitration comes last.
  assign has_data = first ? hdr[126] : has_data_r;
  assign rem_ord = first ? extra[S-1:0] : rem_r;
  assign last_next = (first ? extra[10:S] : left_r) == LW'(1);
  // The last beat needs no group when the kept DWs fill it.
  assign fetch_next = has_data && (N == 2 && first ? starts : !(last_next && rem_ord < shift));
  assign group_next = group + GW'(busy ? fetch_r : fetch_first);
  assign done_next  = (fetch_next && group_next == GW'(G-1)) || (last_next && has_data && (fetch_next || group_next != '0));

  logic [W-1:0] lanes, kept;
  always_comb begin
    lanes = '0;
    for (int g = 0; g < G; g++) begin
      if (group == GW'(g)) begin
        for (int i = 0; i < N; i++) begin
          for (int b = 0; b < 4; b++) lanes[W-1-32*i-8*b-:8] = data[W*g+32*i+8*b+:8];
        end
      end
    end
  end

  logic [2*W-1:0] pair;
  logic [  W-1:0] payload;
  assign pair = {kept, lanes};
  always_comb begin
    payload = lanes;
    for (int s = 1; s < N; s++) if (shift == S'(s)) payload = pair[W+32*s-1-:W];
  end

  // -- the beat ----------------------------------------------------------------------------------------
  logic [W-1:0] beat_next;
  generate
    if (N == 4) begin : g_beat128
      assign beat_next = !first ? payload : {head[127:32], four ? head[31:0] : payload[31:0]};
    end else begin : g_beat64
      // one 4:1 multiplexer a bit, then header or payload
      logic [W-1:0] half;
      assign half = second ? (use_np ? np_hdr[63:0] : hdr[63:0]) : (use_np ? np_hdr[127:64] : hdr[127:64]);
      assign beat_next = {
        first || second ? half[63:32] : payload[63:32], first || (second && four) ? half[31:0] : payload[31:0]
      };
    end
  endgenerate

  // with the header's last beat: the first, or at W = 64 the second, when its queue is decided
  assign hdr_ready = load && (N == 4 ? pick && !pick_np : second && !np_r);
  assign np_ready  = load && (N == 4 ? pick && pick_np : second && np_r);

  always_ff @(posedge clk) begin
    if (load) src_rdy <= step;
    if (step) begin
      sof     <= first;
      eof     <= last;
      beat    <= beat_next;
      rem     <= last ? rem_now : S'(N - 1);
      busy    <= !last;
      left_r  <= left - 1'b1;
      rem_r   <= rem_now;
      second  <= first && !last;
      shift_r <= shift;
      group_r <= group_next;
      fetch_r <= fetch_next && !use_np;
      done_r  <= done_next && !use_np;
    end
    if (step && first) begin
      np_r       <= pick_np;
      has_data_r <= hdr[126];
      np_turn    <= !pick_np;
      shown      <= pick_np ? 3'b010 : cpl_head ? 3'b100 : 3'b001;
    end
    if (fetch) kept <= lanes;
    if (rst) begin
      src_rdy <= 1'b0;
      busy    <= 1'b0;
      second  <= 1'b0;
      np_turn <= 1'b0;
    end
  end

  assign idle = !busy && !src_rdy;

  logic unused;
  assign unused = &{1'b0, data_valid, kept, head};
endmodule
