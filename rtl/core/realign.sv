// Moves a stream of 256-bit words up by `shift` byte lanes, 0 .. RANGE - 1, with carry: lane j of
// the output is lane j - shift of the input word, or, below `shift`, of the input word before.
//
// Combinational from in_data to out_data; `advance` = in_data is taken in this cycle, its upper
// lanes are kept for the next word. `shift` must not change within a stream. The first word of a
// stream has old bytes below `shift` (nobody may look at them: strobes or byte enables say so);
// the last bytes of a stream may need one more output word, during which in_data is not looked at.
// RANGE is 4 (bytes within a DW) or 32 (any distance).
module realign #(
    parameter int RANGE = 32,
    localparam int SHIFT = $clog2(RANGE)
) (
    input  logic             clk,
    input  logic             advance,
    input  logic [SHIFT-1:0] shift,
    input  logic [    255:0] in_data,
    output logic [    255:0] out_data
);
  localparam int CARRY = 8 * (RANGE - 1);  // bits of the word before that can be needed
  logic [CARRY-1:0] carry;
  always_ff @(posedge clk) if (advance) carry <= in_data[255-:CARRY];

  // A funnel: a window of 32 bytes on {word, carry}, moved down by RANGE - 1 - shift bytes in
  // 4:1 multiplexers (one LUT6 a bit); each step drops the bytes that cannot be reached any more.
  logic [255+CARRY:0] both;
  logic [SHIFT-1:0] down;
  assign both = {in_data, carry};
  assign down = ~shift;
  generate
    if (RANGE == 4) begin : within_dw
      assign out_data = down[1] ? (down[0] ? both[24+:256] : both[16+:256])
                                : (down[0] ? both[8+:256] : both[0+:256]);
    end else begin : within_word
      logic [311:0] by_8;
      logic [263:0] by_2;
      assign by_8 = down[4] ? (down[3] ? both[192+:312] : both[128+:312])
                            : (down[3] ? both[64+:312] : both[0+:312]);
      assign by_2 = down[2] ? (down[1] ? by_8[48+:264] : by_8[32+:264])
                            : (down[1] ? by_8[16+:264] : by_8[0+:264]);
      assign out_data = down[0] ? by_2[8+:256] : by_2[0+:256];
    end
  endgenerate
endmodule
