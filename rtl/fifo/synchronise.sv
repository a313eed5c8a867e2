// SPDX-License-Identifier: MIT OR Apache-2.0
// Two flip-flops on the way into another clock, without logic before or between them and without a reset: every
// crossing of the design goes through here, except the words of async_fifo's memory.
//
// `in` comes from flip-flops of one other clock. Of several bits only one may change at a time (a Gray pointer), or
// the receiver must tolerate bits that arrive one after the other (quasi-static configuration).
// rtl/constraints has each instance by its name.
module synchronise #(
    parameter int WIDTH = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  logic [WIDTH-1:0] first, second;
  always_ff @(posedge clk) begin
    second <= first;
    first  <= in;
  end
  assign out = second;

`ifdef FORMAL
  initial {second, first} = '0;
`endif
endmodule
