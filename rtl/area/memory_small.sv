// SPDX-License-Identifier: MIT OR Apache-2.0
// Local memory for place and route: 16 KiB of block RAM with registers at its ports, so that the paths measured are the
// design's own. The window has its own memory.
module ddr_model #(
    parameter int MIB           = 256,
    parameter int LATENCY       = 24,    // cycles from a read's acceptance to its data, 3 or more
    parameter int QUEUE         = 64,    // DMA reads under way, a power of two
    parameter int REFRESH_EVERY = 1560,  // cycles: 7.8 us at 200 MHz
    parameter int REFRESH_FOR   = 52     // cycles: 260 ns
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         mem_wr_valid,
    input  logic [ 31:0] mem_wr_addr,
    input  logic [255:0] mem_wr_data,
    input  logic [ 31:0] mem_wr_strobe,
    output logic         mem_wr_ready,
    input  logic         mem_rd_valid,
    input  logic [ 31:0] mem_rd_addr,
    output logic         mem_rd_ready,
    output logic         mem_rd_data_valid,
    output logic [255:0] mem_rd_data,
    input  logic         mem_rd_data_ready,
    input  logic         win_wr_valid,
    input  logic [ 31:0] win_wr_addr,
    input  logic [255:0] win_wr_data,
    input  logic [ 31:0] win_wr_strobe,
    output logic         win_wr_ready,
    input  logic         win_rd_valid,
    input  logic [ 31:0] win_rd_addr,
    output logic         win_rd_ready,
    output logic         win_rd_data_valid,
    output logic [255:0] win_rd_data,
    input  logic         win_rd_data_ready
);
  small_port dma (
      .clk,
      .rst,
      .wr_valid(mem_wr_valid),
      .wr_addr(mem_wr_addr),
      .wr_data(mem_wr_data),
      .wr_strobe(mem_wr_strobe),
      .wr_ready(mem_wr_ready),
      .rd_valid(mem_rd_valid),
      .rd_addr(mem_rd_addr),
      .rd_ready(mem_rd_ready),
      .rd_data_valid(mem_rd_data_valid),
      .rd_data(mem_rd_data),
      .rd_data_ready(mem_rd_data_ready)
  );
  small_port window (
      .clk,
      .rst,
      .wr_valid(win_wr_valid),
      .wr_addr(win_wr_addr),
      .wr_data(win_wr_data),
      .wr_strobe(win_wr_strobe),
      .wr_ready(win_wr_ready),
      .rd_valid(win_rd_valid),
      .rd_addr(win_rd_addr),
      .rd_ready(win_rd_ready),
      .rd_data_valid(win_rd_data_valid),
      .rd_data(win_rd_data),
      .rd_data_ready(win_rd_data_ready)
  );
endmodule

// One access at a time, with a register at each end of the memory and nothing between.
module small_port (
    input  logic         clk,
    input  logic         rst,
    input  logic         wr_valid,
    input  logic [ 31:0] wr_addr,
    input  logic [255:0] wr_data,
    input  logic [ 31:0] wr_strobe,
    output logic         wr_ready,
    input  logic         rd_valid,
    input  logic [ 31:0] rd_addr,
    output logic         rd_ready,
    output logic         rd_data_valid,
    output logic [255:0] rd_data,
    input  logic         rd_data_ready
);
  logic [255:0] mem[0:511];
  logic [255:0] data, put_data, read, caught;
  logic [31:0] strobe;
  logic [8:0] to, from, at;
  logic writes, reads, put;
  logic [2:0] waits;

  assign wr_ready = 1'b1;
  assign rd_ready = !reads && waits == '0 && !rd_data_valid;
  always_ff @(posedge clk) begin
    {writes, to, data, strobe} <= {wr_valid && !rst, wr_addr[13:5], wr_data, wr_strobe};
    {reads, from} <= {rd_valid && rd_ready && !rst, rd_addr[13:5]};
    {put, put_data} <= {writes && &strobe, data};
    at <= reads ? from : to;
    if (put) mem[at] <= put_data;
    else read <= mem[at];
    caught <= read;
    waits  <= {waits[1:0], reads} & {3{!rst}};
    if (waits[2]) rd_data <= caught;
    rd_data_valid <= !rst && (waits[2] || (rd_data_valid && !rd_data_ready));
  end
endmodule
