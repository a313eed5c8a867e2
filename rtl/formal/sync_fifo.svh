// SPDX-License-Identifier: MIT OR Apache-2.0
// Proof of the FIFO in one clock: never more than DEPTH words, and any one word (the word written
// with f_place, an arbitrary value, as write pointer) comes out as it went in, in its turn.
(* anyconst *) logic [AW:0] f_place;
logic [WIDTH-1:0] f_word;
logic f_in = 1'b0;  // the word is in the FIFO
logic f_begun = 1'b0;
logic [AW:0] f_ahead;
assign f_ahead = f_place - rd_ptr;

always_ff @(posedge clk) begin
  f_begun <= 1'b1;
  if (rst) f_in <= 1'b0;
  else if (push && wr_ptr == f_place) begin
    f_in   <= 1'b1;
    f_word <= wr_data;
  end else if (pop && rd_ptr == f_place) f_in <= 1'b0;
end

always_comb begin
  if (!f_begun) assume (rst);
  if (f_begun) begin
    assert (count <= DEPTH && full == count[AW]);
    assert (f_in == (f_ahead < count));
    if (f_in) assert (mem[f_place[AW-1:0]] == f_word);
    if (rd_valid) assert (count != '0);
    if (BLOCK == 0) assert (rd_valid == (count != '0));
    if (rd_valid && rd_ptr == f_place) assert (rd_data == f_word);
  end
end
