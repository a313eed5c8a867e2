// SPDX-License-Identifier: MIT OR Apache-2.0
// Card-to-host data: each piece becomes reads of local memory and one master write of the core.
//
// Reads of the memory run ahead of the core by up to QUEUE pieces (as far as the memory takes
// them), so its latency shows only once. The memory's words go to the core as they are.
//
// Interface rules: mem_rd_* and mwr are held while valid && !ready.
module memory_reader #(
    parameter int QUEUE = 16  // pieces
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        piece_valid,
    input  logic [63:0] piece_host,
    input  logic [31:0] piece_local,
    input  logic [12:0] piece_len,
    output logic        piece_ready,

    output logic        mem_rd_valid,
    output logic [31:0] mem_rd_addr,
    input  logic        mem_rd_ready,

    output mwr_t mwr,
    input  logic mwr_ready
);
  logic room;
  logic [7:0] left;  // words to ask for after this one
  logic [26:0] word;
  logic [13:0] span;
  logic [$clog2(QUEUE):0] count;
  logic unused;
  assign unused = &{1'b0, count, span[13], span[4:0]};

  assign span = {9'b0, piece_local[4:0]} + {1'b0, piece_len} - 14'd1;
  assign piece_ready = room && !mem_rd_valid;
  assign mem_rd_addr = {word, 5'b0};
  assign mwr.len[23:13] = '0;
  assign mwr.id = '0;

  always_ff @(posedge clk) begin
    if (mem_rd_ready) begin
      if (left == '0) mem_rd_valid <= 1'b0;
      left <= left - 8'd1;
      word <= word + 27'd1;
    end
    if (piece_valid && piece_ready) begin
      mem_rd_valid <= 1'b1;
      left <= span[12:5];
      word <= piece_local[31:5];
    end
    if (rst) mem_rd_valid <= 1'b0;
  end

  sync_fifo #(
      .WIDTH(82),
      .DEPTH(QUEUE)
  ) requests (
      .clk(clk),
      .rst(rst),
      .wr_valid(piece_valid && !mem_rd_valid),
      .wr_ready(room),
      .wr_data({piece_len, piece_local[4:0], piece_host}),
      .rd_valid(mwr.valid),
      .rd_ready(mwr_ready),
      .rd_data({mwr.len[12:0], mwr.lane, mwr.addr}),
      .count(count)
  );
endmodule
