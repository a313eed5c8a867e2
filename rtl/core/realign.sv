// SPDX-License-Identifier: MIT OR Apache-2.0
// Moves a stream of 256-bit words up by `shift` byte lanes, 0 to 3, with carry: lane j of the output is
// lane j - shift of the input word, or, below `shift`, of the input word before.
//
// Combinational from in_data to out_data; `advance` = in_data is taken in this cycle, its upper
// lanes are kept for the next word. `shift` must not change within a stream. The first word of a
// stream has old bytes below `shift` (to be masked by strobes or byte enables); the last bytes of a
// stream may need one more output word, during which in_data is ignored.
// `valid` = out_data is used; a simulator need not evaluate it in the other cycles.
module realign (
    input  logic         clk,
    input  logic         advance,
    input  logic [  1:0] shift,
    input  logic [255:0] in_data,
    input  logic         valid,
    output logic [255:0] out_data
);
  logic [23:0] carry;  // of the word before
  always_ff @(posedge clk) if (advance) carry <= in_data[255:232];

  // one LUT6 a bit
  assign out_data = !valid ? 'x
      : shift[1] ? (shift[0] ? {in_data[231:0], carry} : {in_data[239:0], carry[23:8]})
      : (shift[0] ? {in_data[247:0], carry[23:16]} : in_data);
endmodule
