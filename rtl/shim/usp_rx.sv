// SPDX-License-Identifier: MIT OR Apache-2.0
// One receiving stream of the UltraScale+ shim (256 bit, DWORD-aligned mode, no straddling): a descriptor of P
// DWs and its payload in, a header and address-aligned payload words out.
//
// * `hdr`, `lane` and `dws` are derived from the descriptor by the parent module, valid with the first beat: the
//   TLP's header, the lane of its first payload DW, and the number of payload DWs (0: no data).
// * `discontinue` on any beat makes the TLP poisoned, and so does an end that does not match `dws`. The TLP still
//   has as many words as its header claims, with arbitrary data.
// * A header is shown with or after its last word. A TLP that has words left after its last beat takes a cycle
//   more; a TLP aligned to the words (lane 0, 9 beats for 64 DWs) does not.
module usp_rx #(
    parameter int P = 4
) (
    input logic clk,
    input logic rst,

    input  logic [255:0] tdata,
    input  logic [  7:0] tkeep,
    input  logic         tlast,
    input  logic         tvalid,
    output logic         tready,
    input  logic         discontinue,
    input  logic [127:0] hdr,
    input  logic [  2:0] lane,
    input  logic [ 10:0] dws,

    output logic         hdr_valid,
    output logic [127:0] hdr_out,
    input  logic         hdr_ready,
    output logic         data_valid,
    output logic [255:0] data,
    input  logic         data_ready,
    output logic         idle
);
  logic body, flush;  // past the first beat; words are left after the last beat
  logic word_full, hdr_full;
  logic stall, take, emit, ends, misfit;
  logic [7:0] words, words_r;  // still to be shown
  logic [2:0] turn, turn_r;  // lanes that DW 0 of a beat moves up
  logic [10:0] span, size;
  logic [7:0] more, more_r;  // beats after this one
  logic [2:0] rem, rem_r;  // DWs of the last beat, less 1
  logic [255:0] turned, kept, merged;

  assign stall  = (word_full && !data_ready) || (hdr_full && !hdr_ready);
  assign tready = !stall && !flush;
  assign take   = tvalid && tready;
  assign span   = dws + {8'd0, lane} + 11'd7;
  assign words  = body || flush ? words_r : dws == 11'd0 ? 8'd0 : span[10:3];
  assign turn   = body || flush ? turn_r : lane - 3'(P);

  assign size   = dws + 11'(P - 1);
  assign more   = body ? more_r : size[10:3];
  assign rem    = body ? rem_r : size[2:0];
  assign misfit = tlast && (more != 8'd0 || !tkeep[rem]);

  // The first beat shows a word only if its payload does not move down.
  assign emit = !stall && (flush || (tvalid && words != 8'd0 && (body || lane >= 3'(P))));
  assign ends = !stall && (flush ? words == 8'd1 : tvalid && tlast && (words == 8'd0 || (emit && words == 8'd1)));

  always_comb begin
    turned = tdata;
    for (int t = 1; t < 8; t++) begin
      if (turn == 3'(t)) for (int i = 0; i < 8; i++) turned[32*i+:32] = tdata[32*((i+8-t)%8)+:32];
    end
    merged = turned;
    for (int i = 0; i < 7; i++) if (3'(i) < turn) merged[32*i+:32] = kept[32*i+:32];
  end

  always_ff @(posedge clk) begin
    if (take) begin
      kept   <= turned;
      turn_r <= turn;
      more_r <= more - 8'd1;
      rem_r  <= rem;
      body   <= !tlast;
      flush  <= tlast && !ends;
    end
    if (flush && ends) flush <= 1'b0;
    if (take || emit) words_r <= words - {7'd0, emit};
    if (take && !body) hdr_out <= hdr;
    if (take && (discontinue || misfit)) hdr_out[tlpdma_pkg::EP_LSB] <= 1'b1;
    if (emit) data <= merged;
    if (!stall) begin
      word_full <= emit;
      hdr_full  <= ends;
    end else begin
      if (data_ready) word_full <= 1'b0;
      if (hdr_valid && hdr_ready) hdr_full <= 1'b0;
    end
    if (rst) begin
      body      <= 1'b0;
      flush     <= 1'b0;
      word_full <= 1'b0;
      hdr_full  <= 1'b0;
    end
  end

  assign data_valid = word_full;
  assign hdr_valid  = hdr_full && (!word_full || data_ready);
  assign idle       = !body && !flush && !word_full && !hdr_full;

  logic unused;
  assign unused = &{1'b0, span[2:0], kept[255:224]};
endmodule
