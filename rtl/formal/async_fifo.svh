// SPDX-License-Identifier: MIT OR Apache-2.0
// Proof of the FIFO between two clocks with any edges: no overflow, any one word (the word written
// with f_place as write pointer) comes out as it went in and in its turn, and the pointers that cross
// change in one bit at a time. The last property makes the crossing safe in hardware: a bit that is
// sampled while it changes gives the pointer before or after, both of which are proven to be right
// (the clocks here may stop for any time).
// It starts from the state after reset. The chain of distances makes the induction close.
(* anyconst *) logic [AW:0] f_place;
logic [WIDTH-1:0] f_word;

initial begin
  wr_ptr  = '0;
  wr_next = 1;
  wr_gray = '0;
  rd_ptr  = '0;
  rd_next = 1;
  rd_gray = '0;
end

// The pointers between the two flip-flops of a synchroniser. Yosys merges them with its first flip-flops: it makes one
// register of two with the same input, clock and initial value.
logic [AW:0] f_to_reader = '0, f_to_writer = '0;
always_ff @(posedge rd_clk) f_to_reader <= wr_gray;
always_ff @(posedge wr_clk) f_to_writer <= rd_gray;

(* gclk *)logic f_time;
logic f_begun = 1'b0;
always_ff @(posedge f_time) f_begun <= 1'b1;

always_ff @(posedge wr_clk) if (push && wr_ptr == f_place) f_word <= wr_data;

logic [AW:0] f_taken = '0;  // words that the reader has taken
always_ff @(posedge rd_clk) if (rd_valid && rd_ready) f_taken <= f_taken + 1'b1;

logic [AW:0] f_front;  // the number of the word at the memory's end
assign f_front = rd_ptr - (AW + 1)'(BLOCK != 0 && front_valid);

function automatic logic [AW:0] f_binary(input logic [AW:0] gray);
  for (int k = 0; k <= AW; k++) f_binary[k] = ^(gray >> k);
endfunction

// one bit at a time
logic [AW:0] f_wr_old, f_rd_old;
logic f_wr_first = 1'b1, f_rd_first = 1'b1;
always_ff @(posedge wr_clk) begin
  f_wr_old   <= wr_gray;
  f_wr_first <= 1'b0;
end
always_ff @(posedge rd_clk) begin
  f_rd_old   <= rd_gray;
  f_rd_first <= 1'b0;
end
logic [AW:0] f_wr_flips, f_rd_flips;
assign f_wr_flips = f_wr_old ^ wr_gray;
assign f_rd_flips = f_rd_old ^ rd_gray;

// distances from the oldest pointer still in use: with a LIMIT a cycle later still
logic [AW:0] f_base, f_rd_seen, f_rd_crossing, f_rd, f_seen, f_crossing, f_wr;
logic [AW:0] f_words;
generate
  if (LIMIT < DEPTH) begin : f_limited
    assign f_base = limited.rd_ptr_seen;
  end else begin : f_whole
    assign f_base = f_binary(rd_gray_seen);
  end
endgenerate
assign f_rd_seen = f_binary(rd_gray_seen) - f_base;
assign f_rd_crossing = f_binary(f_to_writer) - f_base;
assign f_rd = rd_ptr - f_base;
assign f_seen = f_binary(wr_gray_seen) - f_base;
assign f_crossing = f_binary(f_to_reader) - f_base;
assign f_wr = wr_ptr - f_base;
assign f_words = wr_ptr - rd_ptr;

always_comb begin
  assume (!wr_rst && !rd_rst);
  if (!f_begun) assume (f_base == '0 && (BLOCK == 0 || !front_valid) && !rd_valid && !wr_ready && closed);
  if (!f_wr_first) assert ((f_wr_flips & (f_wr_flips - 1'b1)) == '0);
  if (!f_rd_first) assert ((f_rd_flips & (f_rd_flips - 1'b1)) == '0);
  assert (f_words <= LIMIT);
  if (wr_ready) assert (f_wr < LIMIT);
  assert (wr_ready == !closed);
  assert (f_rd_seen <= f_rd_crossing && f_rd_crossing <= f_rd && f_rd <= f_seen && f_seen <= f_crossing && f_crossing <= f_wr);
  assert (f_wr <= LIMIT);
  if (!wr_some) assert (f_words == '0);
  assert (wr_gray == (wr_ptr ^ (wr_ptr >> 1)));
  assert (rd_gray == (rd_ptr ^ (rd_ptr >> 1)));
  if (f_place - rd_ptr < f_words) assert (mem[f_place[AW-1:0]] == (f_word ^ INVERTED));
  assert (wr_next == (AW + 1)'(wr_ptr + 1'b1) && rd_next == (AW + 1)'(rd_ptr + 1'b1));
  if (fetch) assert (f_seen != f_rd);
  if (front_valid && f_front == f_place) assert (front == (f_word ^ INVERTED));
  assert (f_taken == (AW + 1)'(f_front - (DIRECT == 0 && rd_valid)));
  if (rd_valid && f_taken == f_place) assert (rd_data == f_word);
end
