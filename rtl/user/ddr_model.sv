// SPDX-License-Identifier: MIT OR Apache-2.0
// Behavioural DDR memory behind its controller: separate ports for DMA and for the window of the
// host, read latency, a bounded queue of reads, and refresh, during which nothing is accepted.
//
// Not for synthesis: an area flow puts a module of the same name and ports in its place.
//
// Interface rules: valid/ready, held while valid && !ready. Each port carries a 32-byte word a
// cycle. A write that was accepted is seen by every read accepted after it. Read data come in the
// order of the reads. Addresses count bytes and are taken modulo the size.
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
  localparam int WORDS = MIB * 32768;
  localparam int AW = $clog2(WORDS);
  localparam int QW = $clog2(QUEUE);

  logic [255:0] mem[0:WORDS-1];
`ifdef __ICARUS__
  // zeros, as in simulators of two states: an unknown bit that leaves the card is a fault of its logic then
  initial for (int i = 0; i < WORDS; i++) mem[i] = '0;
`endif

  logic unused;
  assign unused = &{1'b0, mem_wr_addr, mem_rd_addr, win_wr_addr, win_rd_addr};

  // ---- refresh ----
  logic [15:0] refresh;
  logic open;
  always_ff @(posedge clk) begin
    if (rst || 32'(refresh) == REFRESH_EVERY - 1) refresh <= '0;
    else refresh <= refresh + 16'd1;
  end
  assign open = !rst && 32'(refresh) >= REFRESH_FOR;

  // ---- writes ----
  // only in a write's branch: simulators evaluate expressions outside of a branch in every cycle
  function automatic logic [255:0] merge(input logic [255:0] old, input logic [255:0] data, input logic [31:0] strobe);
    merge = data;
    for (int i = 0; i < 32; i++) if (!strobe[i]) merge[8*i+:8] = old[8*i+:8];
  endfunction

  logic [AW-1:0] wr_word, win_word;
  assign mem_wr_ready = open;
  // two writes of one word are two cycles: each merges with the word as it was
  assign win_wr_ready = open && !(mem_wr_valid && wr_word == win_word);
  assign wr_word = mem_wr_addr[AW+4:5];
  assign win_word = win_wr_addr[AW+4:5];

  // ---- reads: data are taken at acceptance and given LATENCY later ----
  logic [255:0] queue[0:QUEUE-1];
  logic [LATENCY-2:0] under_way;  // a bit for each read that is not due yet
  logic [QW:0] head, due, tail;
  logic [$clog2(LATENCY)-1:0] win_left;
  logic win_busy;
  assign mem_rd_ready = open && (tail - head) != QUEUE[QW:0];
  assign mem_rd_data_valid = due != head;
  assign mem_rd_data = queue[head[QW-1:0]];
  assign win_rd_ready = open && !win_busy;
  assign win_rd_data_valid = win_busy && win_left == '0;

  always_ff @(posedge clk) begin
    if (under_way[LATENCY-2]) due <= due + 1'b1;
    under_way <= {under_way[LATENCY-3:0], mem_rd_valid && mem_rd_ready};
    if (mem_rd_valid && mem_rd_ready) begin
      queue[tail[QW-1:0]] <= mem[mem_rd_addr[AW+4:5]];
      tail <= tail + 1'b1;
    end
    if (mem_rd_data_valid && mem_rd_data_ready) head <= head + 1'b1;
    if (win_left != '0) win_left <= win_left - 1'b1;
    if (win_rd_valid && win_rd_ready) begin
      win_rd_data <= mem[win_rd_addr[AW+4:5]];
      win_left <= LATENCY[$clog2(LATENCY)-1:0] - 1'b1;
      win_busy <= 1'b1;
    end
    if (win_rd_data_valid && win_rd_data_ready) win_busy <= 1'b0;
    if (mem_wr_valid && mem_wr_ready) begin
      if (mem_wr_strobe == '1) mem[wr_word] <= mem_wr_data;
      else mem[wr_word] <= merge(mem[wr_word], mem_wr_data, mem_wr_strobe);
    end
    if (win_wr_valid && win_wr_ready) mem[win_word] <= merge(mem[win_word], win_wr_data, win_wr_strobe);
    if (rst) begin
      under_way <= '0;
      head <= '0;
      due <= '0;
      tail <= '0;
      win_busy <= 1'b0;
    end
  end
endmodule
