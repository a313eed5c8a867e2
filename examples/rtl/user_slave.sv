// SPDX-License-Identifier: MIT OR Apache-2.0
// 4 KiB of memory behind BAR 0: the design attached in docs/attach-rtl.md.
module user_slave (
    input  logic  clk,
    input  logic  rst,
    input  swr_t  swr,
    output logic  swr_ready,
    input  srd_t  srd,
    output logic  srd_ready,
    output word_t srd_data,
    input  logic  srd_data_ready
);
  logic [255:0] memory[128];
  assign swr_ready = 1'b1;
  assign srd_ready = !srd_data.valid;
  always_ff @(posedge clk) begin
    for (int i = 0; i < 32; i++) if (swr.valid && swr.strobe[i]) memory[swr.addr[11:5]][8*i+:8] <= swr.data[8*i+:8];
    if (srd.valid && srd_ready) srd_data.data <= memory[srd.addr[11:5]];
    srd_data.valid <= !rst && (srd.valid && srd_ready || srd_data.valid && !srd_data_ready);
  end
endmodule
