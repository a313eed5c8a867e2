// SPDX-License-Identifier: MIT OR Apache-2.0
// A FIFO in one clock, show-ahead.
//
// Rules: valid/ready at both ends; data are held while valid && !ready; DEPTH a power of two.
// A word is seen one cycle after it was written (two with BLOCK). BLOCK = 1 reads through the
// memory's own output register (block RAM); see async_fifo.
// EAGER = 1 writes the memory whenever there is a free place: wr_valid may come late in the cycle,
// as only the pointer makes it a word.
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
    output logic [     AW:0] count      // words written and not yet read
);
  logic [WIDTH-1:0] mem[0:DEPTH-1];
  logic [AW:0] wr_ptr, rd_ptr, rd_next;
  logic push, pop;
  logic full, nearly;  // known a cycle before: push and pop, which come late, decide last

  assign count = wr_ptr - rd_ptr;
  assign nearly = count[AW-1:0] == '1;
  assign wr_ready = !full;
  assign push = wr_valid && wr_ready;
  assign pop = rd_valid && rd_ready;
  assign rd_next = rd_ptr + 1'b1;

  always_ff @(posedge clk) begin
    if (EAGER != 0 ? wr_ready : push) mem[wr_ptr[AW-1:0]] <= wr_data;
    if (push != pop) full <= push && nearly;
    if (push) wr_ptr <= wr_ptr + 1'b1;
    if (pop) rd_ptr <= rd_next;
    if (rst) begin
      wr_ptr <= '0;
      rd_ptr <= '0;
      full   <= 1'b0;
    end
  end

  generate
    if (BLOCK != 0) begin : block_ram
      logic some;
      logic [AW:0] front;
      assign front = pop ? rd_next : rd_ptr;
      // the word of this cycle's push is not counted: the memory still gives the old word
      always_ff @(posedge clk) begin
        rd_data <= mem[front[AW-1:0]];
        some <= !rst && front != wr_ptr;
      end
      assign rd_valid = some;
    end else begin : lut_ram
      logic some, several;
      assign several = count[AW:1] != '0;
      always_ff @(posedge clk) begin
        if (push != pop) some <= push || several;
        if (rst) some <= 1'b0;
      end
      assign rd_valid = some;
      assign rd_data  = mem[rd_ptr[AW-1:0]];
    end
  endgenerate

`ifdef FORMAL
  `include "sync_fifo.svh"
`endif
endmodule
