// SPDX-License-Identifier: MIT OR Apache-2.0
// Receive half of the TRN shim: beats of W bits in, headers and address-aligned 256-bit payload words out.
//
// * A beat carries N = W/32 DWs, the first in the most significant DW, bytes in wire order. A TLP starts at
//   the first DW of a beat; every beat is full except the one with `eof`. The hard IP has checked the TLP
//   (Length matches its beats) and has stripped a digest.
// * A payload word has its bytes in little-endian lanes. The first payload DW of a request stands at lane
//   `address [4:2]`, of a completion at `Lower Address [4:2] + look_lane`: the lane of that tag's data in local
//   memory, so that no later stage shifts by DWs. Words = ceil((lane + Length) / 8). Lanes outside the payload
//   have any value.
// * A completion's header has its lane in DW3 [4:2] (it has no fourth DW).
// * A request's header is shown with or after its last payload word, a completion's as soon as it is known.
// * No bubble: as long as the FIFOs behind are ready, a beat is taken every cycle, between TLPs too.
//
// One beat is held back (`held`), so that a group of N lanes can be cut out of the held and the incoming
// beat. The held beat of a TLP's end leaves at once; otherwise it leaves when the next beat comes.
module trn_rx #(
    parameter int W = 64
) (
    input logic clk,
    input logic rst,

    input  logic                    src_rdy,
    input  logic                    sof,
    input  logic                    eof,
    input  logic [           W-1:0] data,
    input  logic [$clog2(W/32)-1:0] rem,      // valid DWs of the beat - 1
    input  logic [             2:0] bar,
    output logic                    dst_rdy,

    output logic [7:0] look_tag,
    input  logic [2:0] look_lane,

    output logic         req_valid,
    output logic [127:0] req_hdr,
    output logic [  2:0] req_bar,
    input  logic         req_ready,
    output logic         req_data_valid,
    output logic [255:0] req_data,
    input  logic         req_data_ready,
    output logic         cpl_valid,
    output logic [127:0] cpl_hdr,
    input  logic         cpl_ready,
    output logic         cpl_data_valid,
    output logic [255:0] cpl_data,
    input  logic         cpl_data_ready,

    output logic idle
);
  localparam int N = W / 32;  // DWs of a beat, lanes of a group
  localparam int S = $clog2(N);
  localparam int G = 8 / N;  // groups of a payload word
  localparam int GW = $clog2(G);

  // The held beat.
  logic held, held_sof, held_eof;
  logic [W-1:0] held_data;
  logic [S-1:0] held_rem;
  logic [  2:0] held_bar;
  logic [  2:0] lane;  // if the held beat is the last of a header: of the first payload DW
  logic has_data, four, is_cpl;  // of its TLP

  // The word and header being gathered; `*_full`: shown to the FIFOs, must be taken before any beat moves.
  logic [255:0] word;
  logic [127:0] hdr;
  logic [  2:0] hdr_bar;
  logic word_full, hdr_full;
  logic          is_cpl_shown;  // the word goes to the FIFO of completions
  logic          dirty;  // the word has lanes that were not shown yet

  // -- the place of the payload within the beats -----------------------------------------------------
  logic          body;  // past the header beats: the registers below hold
  logic          second;  // W = 64: the held beat is the second of the header
  logic [ S-1:0] shift_r;
  logic [GW-1:0] group_r;

  logic last_hdr_beat, next_four, next_is_cpl;
  logic [ S-1:0] shift;  // the group's first lane stands at this DW of the held beat
  logic [GW-1:0] group;

  // Of the incoming TLP, so that no look-up is needed while it is moved.
  assign next_four   = sof ? data[W-3] : four;
  assign next_is_cpl = sof ? data[W-4 -: 4] == 4'b0101 : is_cpl;
  assign last_hdr_beat = (N == 4) ? held_sof : second;
  assign look_tag = data[tlpdma_pkg::CPL_TAG_LSB +: 8];
  // The first payload DW is DW 3 (3-DW header) or DW 4 of the TLP: DW N-1 or 0 of its beat.
  assign shift    = last_hdr_beat ? (four ? S'(0) - lane[S-1:0] : S'(N-1) - lane[S-1:0]) : shift_r;
  assign group    = last_hdr_beat ? lane[2:S] : group_r;

  // -- movement --------------------------------------------------------------------------------------
  logic stall, take, leave, emit, push;
  logic data_ready, full;
  logic ends_cpl_hdr;  // the held beat ends a completion's header, which leaves with it

  assign data_ready = is_cpl_shown ? cpl_data_ready : req_data_ready;
  assign ends_cpl_hdr = held && is_cpl && last_hdr_beat;
  assign full = (word_full && !data_ready) || (hdr_full && !req_ready);
  assign stall = full || (ends_cpl_hdr && !cpl_ready);
  assign leave = held && (held_eof || src_rdy) && !stall;
  assign dst_rdy = !stall;
  assign take = src_rdy && !stall;
  // Does the group hold payload? The last header beat: always after three DWs; after four only if lanes
  // come from the next beat. The last beat: only if a DW is left that was not in an earlier group.
  assign emit = leave && has_data && (last_hdr_beat ? !four || shift != 0 : body && (!held_eof || held_rem >= shift));
  assign push = (emit && group == GW'(G - 1)) || (leave && held_eof && (emit || dirty));

  // -- the group: N DWs out of the held and the incoming beat, DW bytes into little-endian lanes -------
  function automatic logic [31:0] turned(input logic [31:0] dw);
    turned = {dw[7:0], dw[15:8], dw[23:16], dw[31:24]};
  endfunction

  logic [2*W-33:0] pair;
  logic [W-1:0] beat, lanes;  // the group's DWs as in a beat, and in their lanes
  assign pair = {held_data, data[W-1:32]};
  generate
    if (N == 4) begin : g_beat128
      logic [W+31:0] near;
      assign near = shift[S-1] ? pair[0+:W+32] : pair[64+:W+32];
      assign beat = shift[0] ? near[0+:W] : near[32+:W];
    end else begin : g_beat64
      assign beat = shift[0] ? pair[0+:W] : pair[32+:W];
    end
    for (genvar i = 0; i < N; i++) begin : g_lanes
      assign lanes[32*i+:32] = turned(beat[W-1-32*i-:32]);
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (take) begin
      held_sof  <= sof;
      held_eof  <= eof;
      held_data <= data;
      held_rem  <= rem;
      held_bar  <= bar;
      four      <= next_four;
      is_cpl    <= next_is_cpl;
      lane      <= next_four ? data[4:2] : data[36:34] + (next_is_cpl ? look_lane : 3'd0);
      if (sof) has_data <= data[W-2];
    end
    if (!full && held_sof) hdr_bar <= held_bar;
    if (leave) begin
      shift_r <= shift;
      if (emit) group_r <= group + 1'b1;
      else group_r <= group;
      second       <= held_sof && !held_eof;
      body         <= (last_hdr_beat || body) && !held_eof;
      is_cpl_shown <= is_cpl;
    end
    // In every cycle, unless a shown word or header must stay: lanes that do not leave yet are written again.
    if (!full) begin
      for (int g = 0; g < G; g++) if (group == GW'(g)) word[W*g+:W] <= lanes;
    end
    if (!stall) begin
      word_full <= push;
      hdr_full  <= leave && held_eof && !is_cpl;
      if (push) dirty <= 1'b0;
      else if (emit) dirty <= 1'b1;
      if (take) held <= 1'b1;
      else if (leave) held <= 1'b0;
    end else begin
      if (data_ready) word_full <= 1'b0;
      if (req_valid && req_ready) hdr_full <= 1'b0;
    end
    if (rst) begin
      held      <= 1'b0;
      word_full <= 1'b0;
      hdr_full  <= 1'b0;
      dirty     <= 1'b0;
      second    <= 1'b0;
      body      <= 1'b0;
    end
  end

  logic [31:0] last_dw;
  assign last_dw = four ? held_data[31:0] : {27'd0, is_cpl ? lane : 3'd0, 2'd0};
  generate
    if (N == 4) begin : g_hdr128
      always_ff @(posedge clk) if (!full && held_sof) hdr <= {held_data[W-1-:96], last_dw};
      assign cpl_hdr = {held_data[W-1-:96], last_dw};
    end else begin : g_hdr64
      always_ff @(posedge clk) begin
        if (!full && held_sof) hdr[127:64] <= held_data;
        if (!full && second) hdr[63:0] <= {held_data[W-1-:32], last_dw};
      end
      assign cpl_hdr = {hdr[127:64], held_data[W-1-:32], last_dw};
    end
  endgenerate

  // A header waits for the word shown with it.
  assign req_valid      = hdr_full && (!word_full || req_data_ready);
  assign cpl_valid      = ends_cpl_hdr && (held_eof || src_rdy) && !full;
  assign req_hdr        = hdr;
  assign req_bar        = hdr_bar;
  // A word is shown until it is taken, once: while only the header waits, `word_full` is clear.
  assign req_data_valid = word_full && !is_cpl_shown;
  assign cpl_data_valid = word_full && is_cpl_shown;
  assign req_data       = word;
  assign cpl_data       = word;
  assign idle           = !held && !word_full && !hdr_full;
endmodule
