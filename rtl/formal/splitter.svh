// SPDX-License-Identifier: MIT OR Apache-2.0
// Proof of the splitter, inside of the module: the TLPs of a request cover every one of its bytes
// once, in order; none crosses a multiple of the limit (so neither 4 KiB nor MPS/MRRS is violated).
logic [63:0] f_next;  // first byte that no TLP has covered
logic [24:0] f_left;  // bytes that no TLP has covered
logic f_begun = 1'b0;
logic f_here;  // the last byte of the request lies in the block of `at`
logic [11:0] f_last;
assign f_here = (rest[24:7] & ~{13'd0, mask}) == '0;
assign f_last = f_here ? rest[11:0] : {mask, 7'h7f};
logic [12:0] f_limit, f_offset;
assign f_limit  = {1'b0, mask, 7'h7f} + 13'd1;
assign f_offset = {1'b0, at[11:7] & mask, at[6:0]};

always_ff @(posedge clk) begin
  f_begun <= 1'b1;
  if (valid && ready) begin
    f_next <= addr;
    f_left <= {1'b0, len};
  end else if (chunk_valid && chunk_ready) begin
    f_next <= f_next + {52'd0, chunk_bytes_m1} + 64'd1;
    f_left <= f_left - {13'd0, chunk_bytes_m1} - 25'd1;
  end
end

always_comb begin
  assume (!valid || len != '0);
  if (!f_begun) assume (rst);
  if (f_begun) begin
    if (chunk_valid) begin
      assert (chunk_addr == f_next);
      assert ({13'd0, chunk_bytes_m1} < f_left);
      assert (chunk_final == ({13'd0, chunk_bytes_m1} + 25'd1 == f_left));
      assert (f_offset + {1'b0, chunk_bytes_m1} < f_limit);
      // every TLP but the last reaches the end of its block: no more TLPs than needed
      assert (chunk_final || f_offset + {1'b0, chunk_bytes_m1} == f_limit - 13'd1);
      assert ({1'b0, chunk_addr[11:0]} + {1'b0, chunk_bytes_m1} < 13'd4096);
    end
    // invariants that make the induction close
    assert (mask == '0 || mask == 5'd1 || mask == 5'd3 || mask == 5'd7 || mask == 5'd15 || mask == 5'd31 || ready);
    if (state != IDLE) begin
      assert (at == f_next);
      assert (f_left != '0 && f_left < 25'h1000000);
      assert (rest + (state == PREPARE ? 25'd0 : 25'd1) == {12'd0, f_offset} + f_left);
    end
    if (state == OFFER) begin
      assert (bytes_m1 == f_last - f_offset[11:0]);
      assert (chunk_end == chunk_bytes_m1 + {10'd0, chunk_addr[1:0]});
      assert (final_one == f_here && four == (at[63:32] != '0));
    end
  end
end
