// SPDX-License-Identifier: MIT OR Apache-2.0
// Cuts a request into TLPs at the multiples of 128 << code bytes (MPS of writes, MRRS of reads), so
// that none crosses 4 KiB, none is longer than the limit, and all but the first begin aligned.
//
// valid/ready: one request, 1 .. 2^24 - 1 bytes; code is taken with it. Its TLPs follow on chunk_*:
// address and length - 1 of each, in order, chunk_final with the last. A TLP every two cycles:
// the cycle between computes lengths into a register, away from the headers' logic.
module splitter #(
    parameter int MAX = 512  // bytes: the largest limit, 128 .. 4096
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        valid,
    output logic        ready,
    input  logic [63:0] addr,
    input  logic [23:0] len,
    input  logic [ 2:0] code,
    output logic        chunk_valid,
    input  logic        chunk_ready,
    output logic [63:0] chunk_addr,
    output logic [11:0] chunk_bytes_m1,
    output logic [11:0] chunk_end,       // of its last byte from its first DW
    output logic        chunk_four,      // its address needs 64 bits
    output logic        chunk_final
);
  // log2 of the limit in units of 128 bytes is 0 .. TOP
  localparam int TOP = $clog2(MAX / 128);

  // offset of the last byte of a block of 128 << code bytes, from bit 7 up
  function automatic logic [4:0] ones(input logic [2:0] log);
    for (int i = 0; i < 5; i++) ones[i] = (i < TOP) && (i < {29'd0, log});
  endfunction

  localparam logic [1:0] IDLE = 2'd0, PREPARE = 2'd1, MEASURE = 2'd2, OFFER = 2'd3;
  logic [ 1:0] state;
  logic [63:0] at;  // first byte of the TLP
  logic [24:0] rest;  // the request's last byte as an offset from the block that `at` is in
  logic [ 4:0] mask;
  logic [11:0] bytes_m1, end_byte;
  logic final_one, four;

  assign ready = state == IDLE;
  assign chunk_valid = state == OFFER;
  assign chunk_addr = at;
  assign chunk_bytes_m1 = bytes_m1;
  assign chunk_end = end_byte;
  assign chunk_four = four;
  assign chunk_final = final_one;

  always_ff @(posedge clk) begin
    case (state)
      IDLE: if (valid) state <= PREPARE;
      PREPARE: state <= MEASURE;
      MEASURE: state <= OFFER;
      default: if (chunk_ready) state <= final_one ? IDLE : MEASURE;
    endcase
    if (rst) state <= IDLE;

    if (state == MEASURE) begin : measure
      logic here;  // the request's last byte lies in this block
      logic [11:0] begun;  // the TLP's first byte in its block
      here  = (rest[24:7] & ~{13'd0, mask}) == '0;
      begun = {at[11:7] & mask, at[6:0]};
      // The length to the end of the block is the complement of `begun`: no carry, and `here` decides last.
      bytes_m1 <= here ? rest[11:0] - begun : {mask, 7'h7f} & ~begun;
      end_byte <= here ? rest[11:0] - {begun[11:2], 2'b00} : {mask, 7'h7f} & ~{begun[11:2], 2'b00};
      final_one <= here;
      four <= at[63:32] != '0;
    end
    if (state == OFFER && chunk_ready) begin
      at   <= {(at[63:7] | {52'd0, mask}) + 1'b1, 7'd0};
      rest <= {rest[24:7] - {13'd0, mask} - 1'b1, rest[6:0]};
    end
    if (state == PREPARE) rest <= rest - 1'b1;
    if (state == IDLE) begin
      at   <= addr;
      mask <= ones(code);
      rest <= {1'b0, len} + {13'd0, addr[11:7] & ones(code), addr[6:0]};
    end
  end

`ifdef FORMAL
  `include "splitter.svh"
`endif
endmodule
