// SPDX-License-Identifier: MIT OR Apache-2.0
// Stands in for sync_fifo in the proof of tags: counts, and gives arbitrary words. tags.svh assumes
// for it the properties that the proof of sync_fifo shows.
module sync_fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 16,
    parameter int BLOCK = 0,
    parameter int EAGER = 0,
    localparam int AW = $clog2(DEPTH)
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             wr_valid,
    output logic             wr_ready,
    input  logic [WIDTH-1:0] wr_data,
    output logic             rd_valid,
    input  logic             rd_ready,
    output logic [WIDTH-1:0] rd_data,
    output logic [     AW:0] count
);
  (* anyseq *) logic [WIDTH-1:0] any_word;
  assign rd_data  = any_word;
  assign wr_ready = count != DEPTH;
  (* anyseq *) logic any_delay;
  assign rd_valid = count != '0 && !any_delay;
  always_ff @(posedge clk) begin
    if (rst) count <= '0;
    else count <= count + (wr_valid && wr_ready) - (rd_valid && rd_ready);
  end
endmodule
