// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole device below the hard IP's shim: the core, two descriptor rings, registers, interrupts
// and a local memory.
//
// Everything but the shim's side runs in user_clk; the core's FIFOs cross. pcie_rst (in pcie_clk)
// is the only reset. `intx` is the level of the legacy interrupt in pcie_clk; `idle` (user_clk)
// says that nothing will happen until the next TLP comes, so that a simulator may skip time.
module tlpdma_device #(
    parameter int TAGS = 32,  // master reads in flight, 32 .. 256
    parameter int MPS_MAX = 512,  // bytes of the largest write request
    parameter int MRRS_MAX = 512,  // bytes of the largest read request
    parameter int CPL_HEADERS = TAGS * MRRS_MAX / 64,  // completions that the hard IP can hold
    parameter int CPL_DATA = TAGS * MRRS_MAX,  // bytes of their data
    parameter int DROPS = 0,  // the hard IP drops requests without bus mastering: see tlpdma_core
    parameter int MEMORY_MIB = 256  // size of the local memory, a power of two
) (
    input  logic      pcie_clk,
    input  logic      pcie_rst,
    input  logic      user_clk,
    // transmit
    output tx_t       tx,
    input  tx_ready_t tx_ready,
    // receive
    input  rx_t       rx,
    output rx_ready_t rx_ready,
    // configuration, quasi static
    input  pcie_cfg_t cfg,
    output logic      intx,
    output logic      idle
);
  localparam int BLOCKS = 4;  // of 32 descriptors, prefetched for each channel
  localparam int IW = 5 + $clog2(BLOCKS);

  logic user_rst, core_idle, drain, drained;
  user_cfg_t user_cfg;
  logic [7:0] errors, tags_in_use;
  logic [15:0] timeout_ticks;

  // ---- the core and its user side ----
  mrd_t mrd;
  drd_t drd;
  mrd_data_t mrd_data;
  mwr_t mwr;
  word_t mwr_data, srd_data;
  post_t post;
  swr_t  swr;
  srd_t  srd;
  done_t mrd_done, drd_done, mwr_done;
  logic mrd_ready, drd_ready, drd_waits, mrd_data_ready, mwr_ready, mwr_data_ready, post_ready;
  logic swr_ready, srd_ready, srd_data_ready;
  logic [1:0] active;
  logic reserve;  // a tag for the descriptors of the channel to the host
  always_ff @(posedge user_clk) reserve <= active[1];

  tlpdma_core #(
      .TAGS(TAGS),
      .MPS_MAX(MPS_MAX),
      .MRRS_MAX(MRRS_MAX),
      .CPL_HEADERS(CPL_HEADERS),
      .CPL_DATA(CPL_DATA),
      .DROPS(DROPS)
  ) core (
      .drd_reserve(reserve),
      .*
  );

  logic unused;
  assign unused = &{1'b0, mrd_done.id, drd_done.id, mwr_done.id, active};

  // ---- registers ----
  logic write, read, enable, reset_channels, clear, stopped, registers_idle;
  logic [13:0] at;
  logic [31:0] write_data, h2c_read, c2h_read, h2c_bytes, c2h_bytes;
  logic [2:0] irq_status;
  logic [3:0] irq_pending;
  logic win_wr_valid, win_wr_ready, win_rd_valid, win_rd_ready, win_rd_data_valid;
  logic win_rd_data_ready;
  logic [31:0] win_wr_addr, win_wr_strobe, win_rd_addr;
  logic [255:0] win_wr_data, win_rd_data;

  registers #(
      .TAGS(TAGS),
      .MEMORY_MIB(MEMORY_MIB)
  ) registers_ (
      .clk(user_clk),
      .rst(user_rst),
      .h2c_data(h2c_read),
      .c2h_data(c2h_read),
      .bus_master(user_cfg.bus_master),
      .msix_enable(user_cfg.msix_enable),
      .mps(user_cfg.mps),
      .mrrs(user_cfg.mrrs),
      .idle(registers_idle),
      .*
  );

  logic at_h2c, at_c2h, at_channel, at_table;
  assign at_h2c = at_channel && !at[5];
  assign at_c2h = at_channel && at[5];

  // ---- channels: 0 host to card, 1 card to host; vectors have channel 0 in the low part ----
  logic [1:0] fetch_valid, fetch_ready, fetch_done, arrived, pio_room, read_turn, piece_valid;
  logic [1:0] piece_ready, piece_done, record_valid, record_taken, record_sent, completed, notice, failed;
  logic [1:0] resetting, channel_idle;
  logic [31:0] fetch_slot;
  logic [11:0] fetch_count;
  logic [2*IW-1:0] fetch_index, pio_index, buffer_index;
  logic [IW-6:0] arrived_block;
  logic [ 127:0] piece_host;
  logic [  63:0] buffer_data;
  logic [63:0] piece_local, channel_read, channel_bytes;
  logic [25:0] piece_len;
  logic [ 5:0] piece_error;
  logic [73:0] record;
  logic [ 2:0] batch_log2;
  assign {c2h_read, h2c_read} = channel_read;
  assign {c2h_bytes, h2c_bytes} = channel_bytes;
  assign batch_log2 = user_cfg.mrrs >= 3'd2 ? 3'd5 : user_cfg.mrrs + 3'd3;

  genvar c;
  generate
    for (c = 0; c < 2; c = c + 1) begin : channels
      channel #(
          .BLOCKS(BLOCKS),
          .FLIGHT(TAGS < 64 ? 64 : 2 * TAGS),
          .MEMORY_MIB(MEMORY_MIB)
      ) channel_ (
          .clk(user_clk),
          .rst(user_rst),
          .enable(enable),
          .reset(reset_channels),
          .write(write && (c == 0 ? at_h2c : at_c2h)),
          .write_at(at[4:0]),
          .write_data(write_data),
          .read(read),
          .read_at(at[4:0]),
          .read_data(channel_read[32*c+:32]),
          .bytes(channel_bytes[32*c+:32]),
          .batch_log2(batch_log2),
          .fetch_valid(fetch_valid[c]),
          .fetch_slot(fetch_slot[16*c+:16]),
          .fetch_count(fetch_count[6*c+:6]),
          .fetch_index(fetch_index[IW*c+:IW]),
          .fetch_ready(fetch_ready[c]),
          .fetch_done(fetch_done[c]),
          .fetch_error(drd_done.error),
          .arrived(arrived[c]),
          .arrived_block(arrived_block),
          .pio_index(pio_index[IW*c+:IW]),
          .pio_room(pio_room[c]),
          .buffer_index(buffer_index[IW*c+:IW]),
          .buffer_turn(read_turn[c]),
          .buffer_data(buffer_data),
          .piece_valid(piece_valid[c]),
          .piece_host(piece_host[64*c+:64]),
          .piece_local(piece_local[32*c+:32]),
          .piece_len(piece_len[13*c+:13]),
          .piece_ready(piece_ready[c]),
          .piece_done(piece_done[c]),
          .piece_error(piece_error[3*c+:3]),
          .record_valid(record_valid[c]),
          .record(record[37*c+:37]),
          .record_taken(record_taken[c]),
          .record_sent(record_sent[c]),
          .completed(completed[c]),
          .notice(notice[c]),
          .failed(failed[c]),
          .active(active[c]),
          .resetting(resetting[c]),
          .idle(channel_idle[c])
      );
      assign fetch_done[c] = drd_done.valid && drd_done.id[1] == (c == 1);
    end
  endgenerate

  logic descriptors_ready;
  prefetch #(
      .BLOCKS(BLOCKS)
  ) prefetch_ (
      .clk(user_clk),
      .rst(user_rst),
      .at_base(at_channel && at[4:1] == '0),
      .base_channel(at[5]),
      .base_high(at[0]),
      .base_data(write_data),
      .data_valid(mrd_data.valid && mrd_data.id != '0),
      .data_channel(mrd_data.id[1]),
      .data_pair(mrd_data.addr[IW+3:5]),
      .data(mrd_data.data),
      .data_halves({mrd_data.strobe[16], mrd_data.strobe[0]}),
      .data_ready(descriptors_ready),
      .pio_write(write && at_channel && at[4:2] == 3'b011 && pio_room[at[5]]),
      .pio_channel(at[5]),
      .pio_index(at[5] ? pio_index[2*IW-1:IW] : pio_index[IW-1:0]),
      .pio_dw(at[1:0]),
      .pio_data(write_data),
      .read_index(buffer_index),
      .read_turn(read_turn),
      .read_data(buffer_data),
      .*
  );

  // ---- data: host to card ----
  logic mem_wr_valid, mem_wr_ready;
  assign mrd.valid = piece_valid[0];
  assign mrd.addr = piece_host[63:0];
  assign mrd.place = piece_local[31:0];
  assign mrd.len = {11'd0, piece_len[12:0]};
  assign mrd.id = '0;
  assign piece_ready[0] = mrd_ready;
  assign piece_done[0] = mrd_done.valid;
  assign piece_error[2:0] = mrd_done.error;
  assign mem_wr_valid = mrd_data.valid && mrd_data.id == '0;
  assign mrd_data_ready = mrd_data.id == '0 ? mem_wr_ready : descriptors_ready;

  // ---- data: card to host ----
  logic mem_rd_valid, mem_rd_ready;
  logic [31:0] mem_rd_addr;
  memory_reader reader (
      .clk(user_clk),
      .rst(user_rst),
      .piece_valid(piece_valid[1]),
      .piece_host(piece_host[127:64]),
      .piece_local(piece_local[63:32]),
      .piece_len(piece_len[25:13]),
      .piece_ready(piece_ready[1]),
      .*
  );
  assign piece_done[1] = mwr_done.valid;
  assign piece_error[5:3] = mwr_done.error;

  ddr_model #(
      .MIB(MEMORY_MIB)
  ) memory (
      .clk(user_clk),
      .rst(user_rst),
      .mem_wr_addr(mrd_data.addr),
      .mem_wr_data(mrd_data.data),
      .mem_wr_strobe(mrd_data.strobe),
      .mem_rd_data_valid(mwr_data.valid),
      .mem_rd_data(mwr_data.data),
      .mem_rd_data_ready(mwr_data_ready),
      .*
  );

  // ---- interrupts and small writes ----
  logic message_valid, message_taken, level, interrupts_idle, posts_idle;
  logic [1:0] message_vector;
  interrupts interrupts_ (
      .clk(user_clk),
      .rst(user_rst),
      .failed(failed != '0),
      .at_status(at == 14'h05),
      .at_enable(at == 14'h06),
      .at_moderation(at == 14'h07),
      .at_mask(at_table && at[1:0] == 2'd3),
      .mask_vector(at[3:2]),
      .status(irq_status),
      .pending(irq_pending),
      .bus_master(user_cfg.bus_master),
      .msix_enable(user_cfg.msix_enable),
      .msix_mask(user_cfg.msix_mask),
      .intx_disable(user_cfg.intx_disable),
      .idle(interrupts_idle),
      .*
  );

  posts posts_ (
      .clk(user_clk),
      .rst(user_rst),
      .write(write),
      .at_entry(at_table || (at_channel && at[4:1] == 4'd3)),
      .write_entry(at_table ? {1'b0, at[3:2]} : {2'b10, at[5]}),
      .write_part(at_table ? at[1:0] : {1'b0, at[0]}),
      .write_data(write_data),
      .idle(posts_idle),
      .*
  );

  assign stopped = channel_idle == 2'b11 && resetting == '0 && posts_idle;
  always_ff @(posedge user_clk) begin
    idle <= 1'b0;
    if (stopped) idle <= registers_idle && interrupts_idle && core_idle && !swr.valid && !srd.valid;
  end

  // the legacy level crosses as any slow signal
  logic level_kept;
  always_ff @(posedge user_clk) level_kept <= level && !user_rst;
  synchronise level_crossing (
      .clk(pcie_clk),
      .in (level_kept),
      .out(intx)
  );
endmodule
