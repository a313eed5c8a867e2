// SPDX-License-Identifier: MIT OR Apache-2.0
// Local memory for the area flow: not counted, as a memory controller is a separate design.
(* blackbox *)
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
endmodule
