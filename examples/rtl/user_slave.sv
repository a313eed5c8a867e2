// SPDX-License-Identifier: MIT OR Apache-2.0
// 4 KiB of memory behind BAR 0: what docs/attach-rtl.md attaches.
module user_slave (
    input  logic         clk,
    input  logic         rst,
    input  logic         swr_valid,
    input  logic         srd_valid,
    input  logic         srd_data_ready,
    input  logic [ 31:0] swr_addr,
    input  logic [ 31:0] swr_strobe,
    input  logic [ 31:0] srd_addr,
    input  logic [255:0] swr_data,
    output logic         swr_ready,
    output logic         srd_ready,
    output logic         srd_data_valid,
    output logic [255:0] srd_data
);
  logic [255:0] memory[128];
  assign swr_ready = 1'b1;
  assign srd_ready = !srd_data_valid;
  always_ff @(posedge clk) begin
    for (int i = 0; i < 32; i++) if (swr_valid && swr_strobe[i]) memory[swr_addr[11:5]][8*i+:8] <= swr_data[8*i+:8];
    if (srd_valid && srd_ready) srd_data <= memory[srd_addr[11:5]];
    srd_data_valid <= !rst && (srd_valid && srd_ready || srd_data_valid && !srd_data_ready);
  end
endmodule
