// SPDX-License-Identifier: MIT OR Apache-2.0
// Master reads: cuts requests into TLPs, gives each a tag and hands its header to the queue.
//
// mrd    requests of any length, in order. drd: reads of one TLP, taken ahead of the TLPs of mrd.
// With bus mastering off, or once `drain` is set, the unsent part of a request ends with an error, by one
// entry in the tag memory for which no TLP is sent. While drain is set no request is taken, except one
// picked in the cycle before.
// reserve: the last free tag, and the last room for completions, goes to drd with id 2 only. drd_waits: a drd with
// another id waits for a second free tag and room, and may be exchanged for another request.
// Where tags come back slowly, one by one, TLPs of mrd are sent in pairs: if none was sent for PAIR cycles, and one or
// two before that, the next waits for a second free tag (until 8 PAIR cycles). A narrow link is full then, and its
// other end, which must acknowledge each of two requests that are further apart than the Ack latency limit (416 symbols
// at x1), sends one Ack for both besides the data. Where many are sent at once and then wait for a slow host, no TLP
// waits for another.
module master_read #(
    parameter int MRRS_MAX = 512,
    parameter int PAIR     = 256   // cycles, a power of two
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        bus_master,
    input  logic        drain,
    input  logic [ 2:0] mrrs,
    output logic        busy,
    input  mrd_t        mrd,
    output logic        mrd_ready,
    input  drd_t        drd,
    output logic        drd_ready,
    output logic        drd_waits,
    input  logic        reserve,
    // to the tag memory
    output logic        alloc_valid,
    input  logic        alloc_next,    // alloc_valid may be set in the next cycle
    input  logic        alloc_room,
    input  logic        alloc_spare,
    output logic [31:0] alloc_local,
    output logic [12:0] alloc_bytes,
    output logic [ 6:0] alloc_lower,
    output logic        alloc_last,
    output logic [ 1:0] alloc_id,
    output logic        alloc_single,
    output logic [ 2:0] alloc_error,
    // to the queue
    output logic        np_valid,
    output logic        np_four,       // the address needs 64 bits
    output logic [63:2] np_addr,
    output logic [ 9:0] np_dws,
    output logic [ 7:0] np_be,         // last, first
    output logic [ 2:0] np_lane,       // local - PCIe address, in DWs mod 8
    input  logic        np_ready
);
  logic chunk_valid, chunk_ready, chunk_four, chunk_final, split_ready, refuse, refused, pick, single, allowed;
  logic drd_four;  // its address needs 64 bits; the request is shown for a cycle before it is taken
  logic [63:0] chunk_addr, addr;
  logic [11:0] chunk_m1, chunk_end, bytes;  // bytes: less one, unless single
  logic [31:0] local_addr;
  logic [ 1:0] id;

  splitter #(
      .MAX(MRRS_MAX)
  ) split (
      .clk,
      .rst(rst || (alloc_valid && refused && !single)),
      .valid(mrd.valid && !drain),
      .ready(split_ready),
      .addr(mrd.addr),
      .len(mrd.len),
      .code(mrrs),
      .chunk_valid,
      .chunk_ready,
      .chunk_addr,
      .chunk_bytes_m1(chunk_m1),
      .chunk_end,
      .chunk_four,
      .chunk_final
  );
  assign mrd_ready = split_ready && !drain;
  assign busy = !split_ready;

  // The TLP to be sent, if any, is decided a cycle before: much logic depends on it.
  assign pick = drd.valid && !drain;
  assign allowed = alloc_spare || (pick ? !reserve || drd.id == 2'd2 : !reserve && (!slow || refuse));
  assign drd_waits = reserve && drd.id != 2'd2 && !alloc_spare;
  assign refuse = !bus_master || drain;
  always_ff @(posedge clk) begin
    alloc_valid <= !rst && alloc_next && (pick || chunk_valid) && allowed && (refuse || (np_ready && alloc_room));
    single <= pick;
    drd_four <= drd.addr[63:32] != '0;
    refused <= refuse;
  end
  logic [$clog2(PAIR)+2:0] since;  // cycles since the last TLP of mrd
  logic [             1:0] at_once;  // TLPs of mrd without such a pause between them, up to 3
  logic pause, slow;
  assign pause = since[$clog2(PAIR)+:3] != '0;
  always_ff @(posedge clk) begin
    slow <= pause && since != '1 && at_once != 2'd3;
    if (since != '1) since <= since + 1'b1;
    if (chunk_ready) at_once <= pause ? 2'd1 : at_once == 2'd3 ? 2'd3 : at_once + 2'd1;
    if (rst || chunk_ready) since <= '0;
    if (rst) at_once <= '0;
  end
  assign drd_ready = alloc_valid && single;
  assign chunk_ready = alloc_valid && !single;

  assign addr = single ? drd.addr : chunk_addr;
  assign bytes = single ? {2'd0, drd.len} : chunk_m1;

  assign alloc_local = single ? drd.place : local_addr;
  assign alloc_bytes = {1'b0, bytes} + {12'd0, !single};
  assign alloc_lower = addr[6:0];
  assign alloc_last = chunk_final || refused;
  assign alloc_id = single ? drd.id : id;
  assign alloc_single = single;
  assign alloc_error = !refused ? 3'd0 : drain ? 3'd7 : 3'd6;

  logic [4:0] gap;
  assign gap = alloc_local[4:0] - addr[4:0];
  assign np_lane = gap[4:2];

  // the last byte's offset from the first DW, for drd and for mrd: the choice between them comes last
  logic [11:0] drd_end;
  logic [1:0] end_lane;
  logic one_dw;
  logic [3:0] first_be, last_be;
  assign drd_end = {2'd0, drd.len} + {10'd0, drd.addr[1:0]} - 12'd1;
  assign end_lane = single ? drd_end[1:0] : chunk_end[1:0];
  assign one_dw = single ? drd_end[11:2] == '0 : chunk_end[11:2] == '0;
  assign first_be = 4'hf << addr[1:0];
  assign last_be = 4'hf >> ~end_lane;
  assign np_valid = alloc_valid && !refused;
  assign np_addr = addr[63:2];
  assign np_four = single ? drd_four : chunk_four;
  assign np_dws = single ? drd_end[11:2] + 1'b1 : chunk_end[11:2] + 1'b1;
  assign np_be = one_dw ? {4'h0, first_be & last_be} : {last_be, first_be};

  always_ff @(posedge clk) begin
    if (chunk_ready) local_addr <= local_addr + {20'd0, chunk_m1} + 1'b1;
    if (mrd.valid && mrd_ready) begin
      local_addr <= mrd.place;
      id <= mrd.id;
    end
  end

  logic unused;
  assign unused = &{1'b0, gap[1:0]};
endmodule
