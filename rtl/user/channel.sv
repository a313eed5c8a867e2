// SPDX-License-Identifier: MIT OR Apache-2.0
// One direction of DMA: a descriptor ring in host memory, worked off in order.
//
// Software writes descriptors and then TAIL. The channel prefetches them in batches (through
// `prefetch`, which holds the buffer of both channels), cuts each at the host's 4 KiB boundaries
// into pieces, and gives the pieces to the data movers: master reads for the host-to-card channel,
// memory reads plus master writes for the other channel. The two channels share no queue that could
// block at its head.
//
// Counters run freely, HEAD <= taken <= ready <= FETCHED <= TAIL; the inner ones are kept only as
// wide as they are needed (FETCHED reads modulo 2^17). In PIO mode FETCHED stands for TAIL, too.
//
// Interface rules: fetch_* and piece_* are held while valid && !ready. piece_done and fetch_done
// are pulses; pieces end in the order in which they were accepted, fetches in any order.
// `arrived` reports one descriptor written to the buffer. record_valid is a request that may
// change until record_taken.
//
// Errors: the channel stops at the descriptor that failed, says why in its status and starts again
// after a reset (CH_CONTROL bit 1), which waits for everything under way.
module channel #(
    parameter  int BLOCKS     = 4,                  // of 32 descriptors in the buffer: 2, 4 or 8
    parameter  int FLIGHT     = 64,                 // pieces under way
    parameter  int MEMORY_MIB = 256,                // a power of two, up to 2048
    localparam int IW         = 5 + $clog2(BLOCKS)
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          enable,         // of the whole device
    input  logic          reset,          // pulse: as by CH_CONTROL bit 1
    // registers of this channel, by the number of the DW in its block
    input  logic          write,
    input  logic [   4:0] write_at,
    input  logic [  31:0] write_data,
    input  logic          read,
    input  logic [   4:0] read_at,
    output logic [  31:0] read_data,      // a cycle after read
    output logic [  31:0] bytes,          // of the pieces taken
    // descriptor fetches
    input  logic [   2:0] batch_log2,     // most descriptors of one read request: 3, 4 or 5
    output logic          fetch_valid,
    output logic [  15:0] fetch_slot,
    output logic [   5:0] fetch_count,
    output logic [IW-1:0] fetch_index,    // where in the buffer
    input  logic          fetch_ready,
    input  logic          fetch_done,
    input  logic [   2:0] fetch_error,
    input  logic          arrived,
    input  logic [IW-6:0] arrived_block,
    // the buffer
    output logic [IW-1:0] pio_index,
    output logic          pio_room,       // a descriptor may be written at pio_index
    output logic [IW-1:0] buffer_index,
    input  logic          buffer_turn,    // its two halves are buffer_data in the next two cycles
    input  logic [  63:0] buffer_data,
    // pieces
    output logic          piece_valid,
    output logic [  63:0] piece_host,
    output logic [  31:0] piece_local,
    output logic [  12:0] piece_len,
    input  logic          piece_ready,
    input  logic          piece_done,
    input  logic [   2:0] piece_error,
    // write-back record and interrupts
    output logic          record_valid,
    output logic [  36:0] record,         // status bits 4..0, HEAD
    input  logic          record_taken,
    input  logic          record_sent,    // pulse, later: nothing overtakes it any more
    output logic          completed,      // pulse: a descriptor is done
    output logic          notice,         // pulse: an interrupt is due; its record is posted
    output logic          failed,         // pulse with notice: the channel has halted
    output logic          active,         // set to run and not halted
    output logic          resetting,
    output logic          idle            // nothing under way
);
  localparam logic [4:0] AT_LOG2 = 5'h02, AT_TAIL = 5'h03, AT_HEAD = 5'h04, AT_FETCHED = 5'h05,
      AT_WB_LO = 5'h06, AT_WB_HI = 5'h07, AT_CONTROL = 5'h08, AT_STATUS = 5'h09,
      AT_PIO_LAST = 5'h0f, AT_PIO_ROOM = 5'h10;
  localparam logic [2:0] REFUSED = tlpdma_pkg::ERR_REFUSED;
  localparam logic [IW:0] DEPTH = {1'b1, {IW{1'b0}}};
  localparam int TOP = $clog2(MEMORY_MIB) + 20;  // bits of a local address

  // ---- registers ----
  logic [31:0] tail, head;
  logic [16:0] fetched;
  logic [15:0] mask;  // of a slot in the ring
  logic run, pio, halted, overflow, wb_lo, wb_hi;
  logic [2:0] error;
  logic going, cleared, push;
  assign active = run && enable && !halted && !resetting;
  assign going  = active;
  assign push   = write && write_at == AT_PIO_LAST && pio;

  logic [IW:0] taken, ready;  // ready: the buffer holds all descriptors up to here
  logic [IW:0] room;
  assign room = (taken - fetched[IW:0]) ^ DEPTH;  // DEPTH + taken - FETCHED
  always_ff @(posedge clk) pio_room <= pio && room != '0;  // pushes are many cycles apart
  assign pio_index = fetched[IW-1:0];

  always_ff @(posedge clk) begin
    if (read) begin
      case (read_at)
        AT_TAIL: read_data <= pio ? {15'b0, fetched} : tail;
        AT_HEAD: read_data <= head;
        AT_FETCHED: read_data <= {15'b0, fetched};
        AT_CONTROL: read_data <= {29'b0, pio, resetting, run};
        AT_STATUS: read_data <= {23'b0, overflow, 3'b0, pio, halted, error};
        AT_PIO_ROOM: read_data <= {{(31 - IW) {1'b0}}, room};
        5'h00, 5'h01, AT_LOG2, AT_WB_LO, AT_WB_HI: read_data <= 'x;  // kept with all registers only software writes
        default: read_data <= '0;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    if (write) begin
      case (write_at)
        AT_LOG2: mask <= ~(16'hffff << (write_data[4] ? 5'd16 : write_data[4:0]));
        AT_WB_LO: wb_lo <= write_data != '0;
        AT_WB_HI: wb_hi <= write_data != '0;
        AT_CONTROL: begin
          {pio, run} <= {write_data[2], write_data[0]};
          if (write_data[1]) resetting <= 1'b1;
        end
        AT_TAIL: if (!pio) tail <= write_data;
        AT_PIO_LAST: if (pio && !pio_room) overflow <= 1'b1;
        default: ;
      endcase
    end
    if (reset) resetting <= 1'b1;
    if (cleared) begin
      tail <= '0;
      run <= 1'b0;
      overflow <= 1'b0;
      resetting <= 1'b0;
    end
    if (rst) begin
      tail <= '0;
      mask <= '0;
      {wb_lo, wb_hi, pio, run, overflow, resetting} <= '0;
    end
  end

  // ---- prefetch: look, count, decide, offer ----
  localparam logic [1:0] LOOK = 2'd0, COUNT = 2'd1, DECIDE = 2'd2, OFFER = 2'd3;
  logic [ 1:0] fetcher;
  logic [16:0] pending;  // descriptors to fetch, less one: all ones is none
  logic [ 4:0] batch;  // mask of the descriptors between boundaries that no read may cross
  logic some, over;
  logic [4:0] limit, few;  // descriptors, less one: to the boundary, to TAIL
  logic              many;
  logic [       2:0] fetch_fault;
  logic [       3:0] fetches;  // under way
  logic [BLOCKS-1:0] complete;  // blocks of the buffer that wait for no descriptor
  logic [    IW-6:0] fetch_block;
  logic block_free, asked;

  // never past the end of the ring, and never across an address the core would cut at
  assign batch = ~(5'h1f << batch_log2) & mask[4:0];
  assign fetch_block = fetched[IW-1:5];
  assign block_free = complete[fetch_block] && (fetched[IW:5] - taken[IW:5]) != {1'b1, {(IW - 5) {1'b0}}};
  assign fetch_valid = fetcher == OFFER;
  assign asked = fetch_valid && fetch_ready;
  assign fetch_slot = fetched[15:0] & mask;
  assign fetch_index = fetched[IW-1:0];

  always_ff @(posedge clk) begin
    case (fetcher)
      LOOK: if (going && !pio && block_free && fetch_fault == '0) fetcher <= COUNT;
      COUNT: fetcher <= DECIDE;
      DECIDE: fetcher <= some && !over && going ? OFFER : LOOK;
      default: if (fetch_ready) fetcher <= LOOK;
    endcase
    if (asked || (push && pio_room)) fetched <= fetched + {11'b0, pio ? 6'd1 : fetch_count};
    if (fetcher == DECIDE) begin
      fetch_count <= {1'b0, !many && few < limit ? few : limit} + 6'd1;
      if (some && over) fetch_fault <= REFUSED;
    end
    if (fetcher == COUNT) begin
      // a TAIL that is not within one turn of the ring
      over  <= (pending & ~{1'b0, mask}) != '0;
      many  <= pending[16:5] != '0;
      few   <= pending[4:0];
      limit <= batch & ~fetched[4:0];
    end
    if (fetcher == LOOK) begin
      some <= tail[16:0] != fetched;
      pending <= tail[16:0] + ~fetched;
    end
    if (asked != fetch_done) fetches <= asked ? fetches + 4'd1 : fetches - 4'd1;
    if (fetch_done && fetch_error != '0) fetch_fault <= fetch_error;
    if (rst || cleared) begin
      fetched <= '0;
      fetcher <= LOOK;
      fetch_fault <= '0;
      fetches <= '0;
    end
  end

  // Descriptors of one batch may come in any order, and so may batches: `ready` advances over a
  // block that waits for no descriptor.
  logic [BLOCKS-1:0][5:0] left;  // descriptors of each block that are still to come
  always_ff @(posedge clk) begin
    if (asked || arrived) begin
      for (int b = 0; b < BLOCKS; b++) begin
        if (arrived && arrived_block == (IW - 5)'(b)) begin
          complete[b] <= left[b] == 6'd1;
          left[b] <= left[b] - 6'd1;
        end
        if (asked && fetch_block == (IW - 5)'(b)) begin
          complete[b] <= 1'b0;
          left[b] <= fetch_count;
        end
      end
    end
    if (rst || cleared) complete <= '1;
  end

  logic pushed;  // the pushed descriptor is not in the buffer yet
  always_ff @(posedge clk) begin
    if (ready != fetched[IW:0] && !pushed) begin
      if (complete[ready[IW-1:5]]) ready <= ready[IW:5] == fetched[IW:5] ? fetched[IW:0] : {ready[IW:5] + 1'b1, 5'b0};
    end
    if (rst || cleared) ready <= '0;
    pushed <= push;
  end

  // ---- cutting ----
  // The descriptor stands still; `moved` bytes of it have been cut off. Its first piece ends at a
  // page of the host, so from then on host + moved has no low bits and `moved` counts pages.
  localparam logic [2:0] NEXT = 3'd0, HOST = 3'd1, LOCAL = 3'd2, CUT = 3'd3, FIT = 3'd4,
      CHECK = 3'd5, SEND = 3'd6, REJECT = 3'd7;
  logic [ 2:0] cutter;
  logic [63:0] host;
  logic [31:0] local_at;
  logic [23:0] length, rest;
  logic [12:0] local_end;
  logic [52:0] page;
  logic [11:0] first;  // bytes to the first page boundary, modulo a page
  logic [ 7:0] flags;
  logic later, ragged, malformed, outside, last_page, refused, last;
  logic flight_ready, sent;
  logic [$clog2(FLIGHT):0] flight_count;

  assign buffer_index = taken[IW-1:0];
  // one adder with a carry in: a first piece short of a page counts as one
  logic unused;
  assign unused = &{1'b0, page[0], flight_count};
  assign page = {host[63:12], 1'b1} + {40'b0, pages, later && ragged};
  assign local_end = {1'b0, piece_local[11:0]} + piece_len;
  assign piece_valid = cutter == SEND && !refused && flight_ready;
  assign sent = piece_valid && piece_ready;

  logic [11:0] pages;
  always_ff @(posedge clk) begin
    case (cutter)
      NEXT: if (going && taken != ready && buffer_turn) cutter <= HOST;
      HOST: begin
        host   <= buffer_data;
        cutter <= LOCAL;
      end
      LOCAL: begin
        local_at <= buffer_data[31:0];
        length <= buffer_data[55:32];
        flags <= buffer_data[63:56];
        first <= 12'd0 - host[11:0];
        cutter <= CUT;
      end
      CUT: begin : cut
        logic [23:0] moved;
        moved = later ? {pages, first} : '0;
        piece_host <= {page[52:1], later ? 12'b0 : host[11:0]};
        piece_local <= local_at + {8'b0, moved};
        rest <= length - moved;
        malformed <= flags[7:2] != '0 || length == '0;
        cutter <= FIT;
      end
      FIT: begin : fit
        logic [12:0] to_page;
        to_page = {later || !ragged, later ? 12'b0 : first};
        outside <= malformed || piece_local >> TOP != '0;
        last_page <= &piece_local[TOP-1:12];
        last <= rest[23:13] == '0 && rest[12:0] <= to_page;
        piece_len <= rest[23:13] == '0 && rest[12:0] <= to_page ? rest[12:0] : to_page;
        cutter <= CHECK;
      end
      CHECK: begin
        // outside of the memory, or over its end
        refused <= outside || (last_page && local_end[12] && local_end[11:0] != '0);
        cutter  <= SEND;
      end
      SEND: begin
        if (refused) cutter <= REJECT;
        else if (sent) cutter <= last || halted || resetting ? NEXT : CUT;
      end
      default: if (halted || resetting) cutter <= NEXT;
    endcase
    if (sent) begin
      if (later || !ragged) pages <= pages + 12'd1;
      later <= 1'b1;
    end
    if (cutter == LOCAL) begin
      ragged <= host[11:0] != '0;
      taken  <= taken + 1'b1;
    end
    if (cutter == NEXT) begin
      pages <= '0;
      later <= 1'b0;
    end
    if (rst || cleared) begin
      cutter <= NEXT;
      taken  <= '0;
    end
  end

  // ---- pieces under way, and their end ----
  logic flight_valid, done_last;
  logic [1:0] done_flags;
  sync_fifo #(
      .WIDTH(3),
      .DEPTH(FLIGHT)
  ) flight (
      .clk(clk),
      .rst(rst),
      .wr_valid(sent),
      .wr_ready(flight_ready),
      .wr_data({last, flags[1:0]}),
      .rd_valid(flight_valid),
      .rd_ready(piece_done),
      .rd_data({done_last, done_flags}),
      .count(flight_count)
  );

  logic drained, counted, halt;
  assign drained = !flight_valid && (cutter == NEXT || cutter == REJECT);
  assign counted = piece_done && piece_error == '0 && done_last && !halted;
  assign completed = counted;
  // a descriptor that cannot be started halts the channel only when all before it are done
  assign halt = !halted && !resetting
      && ((piece_done && piece_error != '0) || (drained && cutter == REJECT)
      || (drained && cutter == NEXT && taken == ready && fetch_fault != '0));

  // ---- write-back record, then the interrupt ----
  logic counted_now, told, notify, wb_on, empty, caught_up, want_record, want_notice, want_failed;
  logic record_due, notice_due, sending, sending_notice, sending_failed;
  assign wb_on = wb_lo || wb_hi;
  assign empty = head[16:0] == fetched && caught_up;
  always_ff @(posedge clk) caught_up <= pio || tail[16:0] == fetched;
  // no record after the one on its way when a reset begins
  assign record_valid = want_record && !resetting;
  assign record = {pio, halted, error, head};
  // an interrupt comes after the record of its cause
  assign notice = (want_notice && !want_record) || (sending_notice && record_sent);
  assign failed = (want_failed && !want_record) || (sending_failed && record_sent);

  always_ff @(posedge clk) begin
    if (counted) head <= head + 32'd1;
    if (sent) bytes <= bytes + {19'b0, piece_len};
    // a cycle late, and once: nothing is under way that could begin anew
    cleared <= 1'b0;
    if (resetting)
      cleared <= cutter == NEXT && !flight_valid && fetches == '0 && fetcher == LOOK && !reset
          && !sending && !cleared && !rst;
    if (record_sent) {sending, sending_notice, sending_failed} <= '0;
    if (record_taken) {sending, sending_notice, sending_failed} <= {1'b1, want_notice, want_failed};
    if (record_taken) want_record <= 1'b0;
    if (record_taken || !want_record) {want_notice, want_failed} <= '0;
    if (record_due) want_record <= 1'b1;
    if (notice_due) want_notice <= 1'b1;
    // HEAD shows the descriptor one cycle after it was counted
    counted_now <= counted;
    {told, notify} <= {done_flags != '0, done_flags[0]};
    {record_due, notice_due} <= '0;
    if (counted_now) begin
      record_due <= wb_on && (told || empty || head[5:0] == '0);
      notice_due <= notify;
    end
    if (piece_done || !flight_valid) begin  // else there is no halt
      if (halt) begin
        halted <= 1'b1;
        error <= piece_done && piece_error != '0 ? piece_error : cutter == REJECT ? REFUSED : fetch_fault;
        want_record <= wb_on;
        want_notice <= 1'b1;
        want_failed <= 1'b1;
      end
    end
    if (rst || cleared) begin
      head <= '0;
      halted <= 1'b0;
      error <= '0;
      {counted_now, record_due, notice_due, want_record, want_notice, want_failed} <= '0;
      {sending, sending_notice, sending_failed} <= '0;
    end
    if (rst) bytes <= '0;
  end

  always_ff @(posedge clk) begin
    idle <= 1'b0;
    if (cutter == NEXT && !flight_valid)
      idle <= fetcher != OFFER && fetches == '0 && !want_record && !want_notice && !sending
          && !counted_now && !record_due && !notice_due && !resetting && (!going || empty);
  end

`ifdef FORMAL
  `include "channel.svh"
`endif
endmodule
