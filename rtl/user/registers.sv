// SPDX-License-Identifier: MIT OR Apache-2.0
// The slave side of the user design: BAR0 is registers, BAR2 a window of 1 MiB into local memory.
//
// Registers are accessed a DW at a time over one small bus (write, at, write_data -> read_data),
// eight cycles for each 32-byte word of the core, so that neither a wide multiplexer nor a copy of
// every register is needed; a read is answered 12 cycles after it was taken (BAR2: plus the
// memory's latency), a write takes 9. Registers that software writes and hardware never changes are
// read back from a small memory. A write with any byte enabled writes the whole DW.
//
// After reset, and at the end of a reset by CONTROL, the same bus writes the initial values, at
// most 64 cycles during which the slave waits.
//
// Interface rules: swr and srd as at the core; win_* as at the memory; one read at a time.
module registers #(
    parameter int TAGS = 32,
    parameter int MEMORY_MIB = 256
) (
    input  logic          clk,
    input  logic          rst,
    // the core's slave side
    input  swr_t          swr,
    output logic          swr_ready,
    input  srd_t          srd,
    output logic          srd_ready,
    output word_t         srd_data,
    input  logic          srd_data_ready,
    // the window into local memory
    output logic          win_wr_valid,
    output logic  [ 31:0] win_wr_addr,
    output logic  [255:0] win_wr_data,
    output logic  [ 31:0] win_wr_strobe,
    input  logic          win_wr_ready,
    output logic          win_rd_valid,
    output logic  [ 31:0] win_rd_addr,
    input  logic          win_rd_ready,
    input  logic          win_rd_data_valid,
    input  logic  [255:0] win_rd_data,
    output logic          win_rd_data_ready,
    // the bus to the blocks that keep registers of their own
    output logic          write,
    output logic  [ 13:0] at,                 // number of the DW in BAR0
    output logic          at_table,           // in the MSI-X table, in the channels' blocks
    output logic          at_channel,
    output logic  [ 31:0] write_data,
    output logic          read,
    input  logic  [ 31:0] h2c_data,           // read data of the channels, a cycle later
    input  logic  [ 31:0] c2h_data,
    input  logic  [ 31:0] h2c_bytes,
    input  logic  [ 31:0] c2h_bytes,
    // state of the device
    output logic          enable,
    output logic          reset_channels,
    output logic          clear,              // everything but the MSI-X table
    output logic          drain,
    input  logic          stopped,            // channels and posts have nothing under way
    input  logic          drained,
    input  logic  [  2:0] irq_status,
    input  logic  [  3:0] irq_pending,
    input  logic  [  7:0] errors,
    input  logic  [  7:0] tags_in_use,
    input  logic          bus_master,
    input  logic          msix_enable,
    input  logic  [  2:0] mps,
    input  logic  [  2:0] mrrs,
    output logic  [ 15:0] timeout_ticks,
    output logic          idle
);
  localparam logic [31:0] ID = 32'h544c5044, VERSION = 32'h00010000;
  localparam logic [15:0] TIMEOUT = 16'h0c35;
  // numbers of DWs in BAR0
  localparam logic [13:0] AT_CONTROL = 14'h02, AT_ERRORS = 14'h08, AT_TIMEOUT = 14'h0a,
      AT_MAX_TAGS = 14'h0b, AT_WINDOW = 14'h11, AT_PENDING = 14'h2400;

  // ---- one word at a time ----
  localparam logic [1:0] IDLE = 2'd0, WRITE = 2'd1, READ = 2'd2, FETCH = 2'd3;
  logic [ 1:0] state;
  logic [ 2:0] lane;
  logic [14:0] read_word;  // of a read: its 32-byte word in the BAR
  logic from_window, from_registers, clearing;
  logic         closed;  // no word is begun
  logic [ 11:0] window;
  logic [ 31:0] read_data;
  logic         answering;  // a read was taken and its answer not yet
  logic         srd_data_valid;
  logic [255:0] answer;
  assign srd_data = {srd_data_valid, answer};

  // Icarus 11 takes no variable index into a field.
  logic [ 31:0] swr_strobe;
  logic [255:0] swr_data;
  assign swr_strobe = swr.strobe;
  assign swr_data   = swr.data;

  logic in_window;  // the word goes to the window; its BAR is valid from a cycle before
  logic accepts;  // the word may go: to the window, or all its DWs are written (in state WRITE)
  always_ff @(posedge clk) begin
    in_window <= swr.bar == 3'd2;
    accepts   <= swr.bar == 3'd2 || (state == WRITE && lane == 3'd6);
  end
  assign win_wr_valid  = swr.valid && in_window;
  assign win_wr_addr   = {window, swr.addr[19:0]};
  assign win_wr_data   = swr_data;
  assign win_wr_strobe = swr_strobe;
  logic [7:0] enabled;  // DWs of the word with a byte enabled
  assign swr_ready = accepts && (!in_window || win_wr_ready);
  assign srd_ready = state == IDLE && !closed && !answering && !(swr.valid && !in_window);
  assign win_rd_valid = state == FETCH;
  assign win_rd_addr = {window, read_word, 5'b0};
  assign win_rd_data_ready = state == READ && from_window && lane == 3'd7;

  logic step_read;
  assign step_read = state == READ && (!from_window || win_rd_data_valid);
  always_ff @(posedge clk) begin
    case (state)
      IDLE: begin
        if (closed) state <= IDLE;
        else if (swr.valid && !in_window) begin
          state <= WRITE;
          for (int i = 0; i < 8; i++) enabled[i] <= swr_strobe[4*i+:4] != '0;
        end else if (srd.valid && !answering) begin
          state <= srd.bar == 3'd2 ? FETCH : READ;
          read_word <= srd.addr[19:5];
          from_window <= srd.bar == 3'd2;
          from_registers <= srd.bar == 3'd0;
          answering <= 1'b1;
        end
      end
      WRITE:   if (lane == 3'd7) state <= IDLE;
      FETCH:   if (win_rd_ready) state <= READ;
      default: if (step_read && lane == 3'd7) state <= IDLE;
    endcase
    if (state == WRITE || step_read) lane <= lane + 3'd1;
    if (state == IDLE) lane <= '0;
    if (srd_data_valid && srd_data_ready) answering <= 1'b0;
    if (rst) begin
      state <= IDLE;
      answering <= 1'b0;
    end
  end

  // A DW that is read passes the bus, then one of four words, then joins the answer, which waits
  // outside of the state machine: writes go on while the answer waits.
  logic [1:0] reading, last_read;
  logic [31:0] window_word, word, global_value;
  logic of_global, of_h2c, of_c2h;  // source of the DW
  assign read = reading[0];
  always_ff @(posedge clk) begin
    if (reading[1]) answer <= {of_c2h ? c2h_data : of_h2c ? h2c_data : of_global ? global_value : word, answer[255:32]};
    if (srd_data_ready) srd_data_valid <= 1'b0;
    if (reading[1] && last_read[1]) srd_data_valid <= 1'b1;
    if (reading[0]) begin
      word <= from_window ? window_word : read_data;
      global_value <= global_data;
      of_global <= from_registers && global_word && !global_copy;
      of_h2c <= from_registers && at_channel && !at[5] && !channel_kept;
      of_c2h <= from_registers && at_channel && at[5] && !channel_kept;
    end
    if (step_read) window_word <= win_rd_data[32*lane+:32];
    last_read <= {last_read[0], lane == 3'd7};
    reading   <= {reading[0], step_read};
    if (rst) begin
      reading <= '0;
      srd_data_valid <= 1'b0;
    end
  end

  // ---- reset ----
  localparam logic [1:0] RUN = 2'd0, STOP = 2'd1, DRAIN = 2'd2, CLEAR = 2'd3;
  logic [1:0] phase;
  logic [5:0] step;
  logic begin_reset;
  assign clearing = phase == CLEAR;
  assign clear = clearing;
  assign begin_reset = write && at == AT_CONTROL && write_data[1] && phase == RUN;

  logic drained_seen;
  logic at_rest;  // a cycle late
  logic settle;  // while the channels' answer to the pulse is under way
  always_ff @(posedge clk) begin
    case (phase)
      RUN: if (begin_reset) phase <= STOP;
      STOP:
      if (stopped && !settle) begin
        phase <= DRAIN;
        drain <= 1'b1;
      end
      DRAIN: begin
        // the word at hand is finished first
        if (drained_seen) closed <= 1'b1;
        if (closed && state == IDLE) begin
          phase <= CLEAR;
          drain <= 1'b0;
        end
      end
      default:
      if (step == '1) begin
        phase  <= RUN;
        closed <= 1'b0;
      end
    endcase
    if (phase == CLEAR) step <= step + 6'd1;
    if (phase == DRAIN) step <= 6'd16;
    drained_seen <= drain && drained;
    at_rest <= stopped && drained;
    settle <= begin_reset || reset_channels;
    reset_channels <= begin_reset;
    if (rst) begin
      phase <= CLEAR;
      closed <= 1'b1;
      step <= '0;
      drain <= 1'b0;
      settle <= 1'b0;
      reset_channels <= 1'b0;
    end
  end

  // ---- the bus ----
  // The readable copies lie in 64 DWs: 0 the MSI-X table, 16 and 32 the channels, 48 global ones
  // (0x40 and 0x44 in place of the constants at 0x00 and 0x04).
  logic global_word, at_pending, kept;
  logic [5:0] copy;
  logic [9:0] clear_page;
  assign clear_page = step[5:4] == 2'd0 ? 10'h200 : step[5:4] == 2'd1 ? 10'h004
      : step[5:4] == 2'd2 ? 10'h006 : {9'h000, step[3:1] == '0};
  logic [15:0] initial_data;
  // the vectors begin masked
  assign initial_data = step[5:4] == 2'd0 ? {15'b0, step[1:0] == 2'd3} : step == {2'd3, AT_TIMEOUT[3:0]} ? TIMEOUT : '0;
  always_ff @(posedge clk) begin
    if (clearing || state != IDLE) begin : address
      logic [13:0] next;
      next = clearing ? {clear_page, step[3:0]} : {state == WRITE ? swr.addr[15:5] : read_word[10:0], lane};
      at <= next;
      global_word <= next[13:5] == '0;
      at_pending <= next == AT_PENDING;
      at_channel <= next[13:6] == 8'h01;
      at_table <= next[13:4] == 10'h200;
      write <= !rst && (clearing || (state == WRITE && swr.bar == 3'd0 && enabled[lane]));
      write_data <= clearing ? {16'b0, initial_data} : swr_data[32*lane+:32];
    end else begin
      {at, global_word, at_pending, at_channel, at_table, write_data} <= 'x;
      write <= 1'b0;
    end
  end
  assign copy = {global_word || (at_channel && at[5]), global_word || (at_channel && !at[5]), at[3:0]};

  logic [31:0] copies[0:63];
  assign kept = at_table || (at_channel && !at[4]) || (global_word && at[4] == (at[3:1] == '0));
  always_ff @(posedge clk) if (write) if (kept) copies[copy] <= write_data;

  // ---- registers kept here ----
  logic [31:0] cycles_lo, cycles_hi;
  logic [15:0] unexpected;
  logic [7:0] sticky, most_tags;
  logic carry;
  always_ff @(posedge clk) begin
    sticky <= (write && at == AT_ERRORS ? sticky & ~write_data[7:0] : sticky) | errors;
    if (errors[5]) unexpected <= unexpected + 16'd1;
    if (tags_in_use > most_tags) most_tags <= tags_in_use;
    if (write) begin
      case (at)
        AT_CONTROL: enable <= write_data[0] && !write_data[1];
        AT_TIMEOUT: timeout_ticks <= write_data[15:0];
        AT_WINDOW: window <= write_data[11:0];
        AT_MAX_TAGS: most_tags <= '0;
        default: ;
      endcase
    end
    // the high half is read one cycle after the low one
    if (carry) cycles_hi <= cycles_hi + 32'd1;
    carry <= cycles_lo == '1;
    cycles_lo <= cycles_lo + 32'd1;
    if (rst || clear) begin
      sticky <= '0;
      unexpected <= '0;
      most_tags <= '0;
    end
    if (rst) begin
      enable <= 1'b0;
      timeout_ticks <= TIMEOUT;
      window <= '0;
      {cycles_hi, cycles_lo, carry} <= '0;
    end
  end

  logic [31:0] global_data, copied;
  logic [4:0] global_at;
  logic channel_kept, global_copy;
  assign copied = copies[copy];
  assign global_at = at[4:0];
  assign global_copy = global_at[4:1] == 4'h3 || global_at == 5'h0a || global_at[4:1] == 4'h8;
  assign channel_kept = !at[4] && (at[3:0] < 4'd3 || at[3:1] == 3'd3);
  always_comb begin
    case (global_at)
      5'h00:   global_data = ID;
      5'h01:   global_data = VERSION;
      5'h02:   global_data = {30'b0, phase != RUN, enable};
      5'h03:   global_data = {29'b0, msix_enable, bus_master, at_rest};
      5'h04:   global_data = {8'h00, 8'd4, 1'b0, mrrs, 1'b0, mps, 8'($clog2(TAGS))};
      5'h05:   global_data = {29'b0, irq_status};
      5'h08:   global_data = {24'b0, sticky};
      5'h09:   global_data = {16'b0, unexpected};
      5'h0b:   global_data = {24'b0, most_tags};
      5'h0c:   global_data = cycles_lo;
      5'h0d:   global_data = cycles_hi;
      5'h0e:   global_data = h2c_bytes;
      5'h0f:   global_data = c2h_bytes;
      5'h12:   global_data = MEMORY_MIB;
      default: global_data = '0;
    endcase
  end
  assign read_data = !from_registers ? '0
      : at_pending ? {28'b0, irq_pending}
      : at_table || global_word || at_channel ? copied : '0;

  assign idle = phase == RUN && state == IDLE && !answering && !write;

  logic unused;
  assign unused = &{1'b0, swr.addr, srd.addr};
endmodule
