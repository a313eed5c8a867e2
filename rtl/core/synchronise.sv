// SPDX-License-Identifier: MIT OR Apache-2.0
// Two flip-flops in front of another clock, for a quasi-static bit that comes from a flip-flop.
module synchronise (
    input  logic clk,
    input  logic in,
    output logic out
);
  logic first;
  always_ff @(posedge clk) begin
    out   <= first;
    first <= in;
  end
endmodule
