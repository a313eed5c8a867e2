// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads descriptors of both channels from host memory into one buffer, and takes descriptors written
// by PIO.
//
// Vectors of both channels have channel 0 (host to card) in the low part. The buffer is one block
// memory of 64 bits, half a descriptor; each channel owns a half of it and reads a descriptor in
// two of every four cycles, so neither can keep the other waiting. A word of the core brings up to
// two descriptors and is written in two cycles each.
//
// Interface rules: drd is exactly one read request (the channels cut at its boundaries) and is held
// while valid && !ready, except with drd_waits: it then waits for a tag for which the other channel
// need not wait, and gives way to that channel. data_ready does not depend on data_valid.
module prefetch #(
    parameter int BLOCKS = 4,
    localparam int IW = 5 + $clog2(BLOCKS)
) (
    input  logic            clk,
    input  logic            rst,
    // base address of a ring, 32 bits at a time
    input  logic            write,
    input  logic            at_base,
    input  logic            base_channel,
    input  logic            base_high,
    input  logic [    31:0] base_data,
    // from the channels
    input  logic [     1:0] fetch_valid,
    input  logic [    31:0] fetch_slot,
    input  logic [    11:0] fetch_count,
    input  logic [2*IW-1:0] fetch_index,
    output logic [     1:0] fetch_ready,
    output logic [     1:0] arrived,
    output logic [  IW-6:0] arrived_block,
    // to the core
    output drd_t            drd,
    input  logic            drd_ready,
    input  logic            drd_waits,
    input  logic            data_valid,
    input  logic            data_channel,
    input  logic [  IW-2:0] data_pair,      // position in the buffer, in pairs of descriptors
    input  logic [   255:0] data,
    input  logic [     1:0] data_halves,    // which of the two descriptors are there
    output logic            data_ready,
    // a DW of a descriptor written by PIO
    input  logic            pio_write,
    input  logic            pio_channel,
    input  logic [  IW-1:0] pio_index,
    input  logic [     1:0] pio_dw,
    input  logic [    31:0] pio_data,
    // reading
    input  logic [2*IW-1:0] read_index,
    output logic [     1:0] read_turn,      // channel whose halves are on read_data in the next two cycles
    output logic [    63:0] read_data       // of read_index as it was a cycle before read_turn
);
  logic turn, half;
  always_ff @(posedge clk) begin
    read_turn <= half ? 2'b00 : turn ? 2'b10 : 2'b01;
    {turn, half} <= {turn, half} + 2'd1;
    if (rst) {turn, half} <= '0;
  end

  // ---- requests: the selected channel; it stays selected until its request is taken ----
  logic drd_valid, drd_channel;
  logic [63:0] drd_addr;
  logic [31:0] drd_place;
  logic [ 9:0] drd_len;
  assign drd = {drd_valid, drd_channel, !drd_channel, drd_len, drd_place, drd_addr};
  logic [31:0] base_lo_mem[0:1];
  logic [31:0] base_hi_mem[0:1];
  logic wanted, load;
  always_ff @(posedge clk) begin
    if (write) begin
      if (at_base && base_high) base_hi_mem[base_channel] <= base_data;
      if (at_base && !base_high) base_lo_mem[base_channel] <= base_data;
    end
  end
  assign wanted = turn ? fetch_valid[1] : fetch_valid[0];
  assign load = wanted && (!drd_valid || (drd_waits && !drd_ready && drd_channel != turn));
  assign fetch_ready = {drd_ready && drd_channel, drd_ready && !drd_channel};

  always_ff @(posedge clk) begin
    if (load) begin : ask
      logic [63:4] base;
      logic [15:0] slot;
      base = {base_hi_mem[turn], base_lo_mem[turn][31:4]};
      slot = turn ? fetch_slot[31:16] : fetch_slot[15:0];
      // a ring begins at a multiple of 4 KiB, or of its size if that is less
      drd_addr <= {base[63:12] + {44'b0, slot[15:8]}, base[11:4] | slot[7:0], 4'b0};
      drd_place <= {{(28 - IW) {1'b0}}, turn ? fetch_index[2*IW-1:IW] : fetch_index[IW-1:0], 4'b0};
      drd_len <= {turn ? fetch_count[11:6] : fetch_count[5:0], 4'b0};
      drd_channel <= turn;
    end else if (!drd_valid) begin
      {drd_addr, drd_place, drd_len, drd_channel} <= 'x;
    end
    drd_valid <= !rst && (drd_valid ? !drd_ready : wanted);
  end

  // ---- the buffer ----
  // A PIO write is held for a cycle and goes first, so that `data_ready` is made of registers only.
  logic pio_now, pio_now_channel;
  logic [IW-1:0] pio_now_index;
  logic [1:0] pio_now_dw;
  logic [31:0] pio_now_data;
  always_ff @(posedge clk) begin
    pio_now <= pio_write && !rst;
    {pio_now_channel, pio_now_index, pio_now_dw, pio_now_data} <= {pio_channel, pio_index, pio_dw, pio_data};
  end

  // A word is written in quarters. It is examined in the first cycle; a word with both descriptors is begun
  // in that cycle, in any other word the missing descriptor is passed over.
  logic looked;  // the shown word was examined; it stays until it is taken
  logic both;
  logic second, beat;  // of the two descriptors, of the halves of one
  logic only;  // no other descriptor of this word follows
  logic write_data;
  assign both = data_halves == 2'b11;
  assign write_data = looked && !pio_now;
  always_ff @(posedge clk) begin
    // with the second half of a word's last descriptor
    data_ready <= !rst && !pio_write && looked && only && beat != write_data;
    if (write_data) begin
      if (beat) begin
        looked <= !only;
        second <= !only;
        only   <= 1'b1;
      end
      beat <= !beat;
    end else if (data_valid && !pio_now) begin
      looked <= 1'b1;
      second <= !data_halves[0];
      only   <= !both;
      beat   <= both;
    end
    if (rst) {looked, second, beat} <= '0;
  end

  // Write data wait a cycle in registers, away from their source; `arrived` reports the write.
  logic [IW+1:0] write_at, read_at;
  logic [ 1:0] put;  // halves of the word at write_at
  logic        sure;  // put is valid
  logic [63:0] put_data;
  always_ff @(posedge clk) begin
    if (pio_now) begin
      write_at <= {pio_now_channel, pio_now_index, pio_now_dw[1]};
      put <= {pio_now_dw[0], !pio_now_dw[0]};
      put_data <= {2{pio_now_data}};
    end else if (looked || data_valid) begin
      write_at <= {data_channel, data_pair, second, beat};
      put <= {2{looked || both}};
      put_data <= data[64*{second, beat}+:64];
    end else begin
      {write_at, put, put_data} <= 'x;
    end
    sure <= pio_now || looked || data_valid;
    arrived <= 2'b00;
    if (write_data && beat && !rst) arrived <= data_channel ? 2'b10 : 2'b01;
    arrived_block <= data_pair[IW-2:4];
  end
  assign read_at = {turn, turn ? read_index[2*IW-1:IW] : read_index[IW-1:0], half};
  genvar d;
  generate
    for (d = 0; d < 2; d = d + 1) begin : banks
      logic [31:0] mem  [0:2**(IW+2)-1];
      logic [31:0] read;
      always_ff @(posedge clk) begin
        if (sure && put[d]) mem[write_at] <= put_data[32*d+:32];
        read <= mem[read_at];
        read_data[32*d+:32] <= read;
      end
    end
  endgenerate
endmodule
