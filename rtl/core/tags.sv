// SPDX-License-Identifier: MIT OR Apache-2.0
// The tag memory: the read that a completion belongs to, and its bytes still to come; and the order
// in which reads end.
//
// A tag is free, live (completions of its read are still to come) or quarantined: its read ended
// before its completions did (mismatch, time-out), so late completions may come and the tag must not
// be reused for a while. It is free as soon as the last completion is known, even if its data still
// wait. Free tags queue: the tag free for longest is allocated next. Each read has a place in the
// order, of which there are twice as many as tags, until it and all reads before it are over.
//
// alloc_*  a new read, only in a cycle after alloc_next. alloc_single: outside of the order, done as
//          soon as it is over. alloc_error not 0: no TLP was sent, the read is over with this error.
//          alloc_room: a TLP is sent only in a cycle after it. alloc_spare: this is not the last free tag, and there
//          is room for another read besides this one.
// look_*   combinational look-up of a completion's tag; not taken while look_ready is low.
// upd_*    the state of a read after a completion, before the next look-up. upd_end: the read has
//          ended, its tag is not live any more; upd_hold: the tag is quarantined.
// fin_*    a read that has ended (upd_end) is over: all its data were taken. fin_error is the first
//          error of its completions. New reads wait for upd and fin; next_* announce them a cycle before.
// early_*, busy_*  tags of completions on their way, before their upd or with data: their reads do
//          not time out now.
// done_*   pulses, in the order of the allocations, one for each with alloc_last; the error is the
//          first error of the reads since the last done. single_done_*: for alloc_single.
// Time-out: timeout_ticks ticks of 2^TICK cycles (0: never); its last two bits are ignored: at least 4. A read ends
// between 1 and 1.25 time-outs after its allocation. A quarantine lasts 4 to 4.25 time-outs (timeout_ticks 0: of 65532
// ticks). Each tag's time is checked once in 4 TAGS cycles.
//
// Room: an end point advertises infinite credits for completions, so completions that the hard IP cannot hold until
// they are taken are lost. A read reserves the blocks of 64 bytes, the smallest Read Completion Boundary, that it
// touches, until its tag is free: it brings no more completions, each with one header, and no more data, however the
// completer cuts them. Where the reads of all tags fit at once, this logic is omitted.
module tags #(
    parameter int TAGS = 32,
    parameter int TICK = 8,  // a tick is 2^TICK cycles
    parameter int READ_BLOCKS = 8,  // blocks that a read touches at most, a power of two
    parameter int CPL_BLOCKS = TAGS * READ_BLOCKS,  // blocks that the hard IP has room for, 2 READ_BLOCKS or more
    localparam int TB = $clog2(TAGS),
    localparam int PB = TB + 1  // bits of a place in the order
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        ext_tag,            // tags above 31 may be used (once no tag is in use)
    input  logic        restart,            // all tags as after a reset (only done while none is in use)
    input  logic        alloc_valid,
    output logic        alloc_next,
    output logic        alloc_room,
    output logic        alloc_spare,
    output logic [ 7:0] alloc_tag,
    input  logic [31:0] alloc_local,
    input  logic [12:0] alloc_bytes,
    input  logic [ 6:0] alloc_lower,
    input  logic        alloc_last,
    input  logic [ 1:0] alloc_id,
    input  logic        alloc_single,
    input  logic [ 2:0] alloc_error,
    input  logic [ 7:0] look_tag,
    output logic        look_ready,
    output logic        look_live,
    output logic [31:0] look_local,
    output logic [12:0] look_left,
    output logic [ 6:0] look_lower,
    output logic        look_poisoned,
    output logic [ 1:0] look_id,
    output logic        look_single,
    output logic [ 8:0] look_place,
    input  logic        next_upd,
    input  logic        upd_valid,
    input  logic [ 7:0] upd_tag,
    input  logic [31:0] upd_local,
    input  logic [12:0] upd_left,
    input  logic [ 6:0] upd_lower,
    input  logic        upd_poisoned,
    input  logic        upd_end,
    input  logic        upd_hold,
    input  logic        next_fin,
    input  logic        fin_valid,
    input  logic [ 8:0] fin_place,
    input  logic        fin_single,
    input  logic [ 1:0] fin_id,
    input  logic [ 2:0] fin_error,
    input  logic        early_valid,
    input  logic [ 7:0] early_tag,
    input  logic        busy_valid,
    input  logic [ 7:0] busy_tag,
    output logic        done_valid,
    output logic [ 1:0] done_id,
    output logic [ 2:0] done_error,
    output logic        single_done_valid,
    output logic [ 1:0] single_done_id,
    output logic [ 2:0] single_done_error,
    input  logic [15:0] timeout_ticks,
    output logic        timed_out,          // pulse
    output logic [ 7:0] in_use,             // live or quarantined; 255 at most
    output logic        none_open           // no read is under way
);
  // ---- state ----
  logic [TAGS-1:0] live, held;  // held: quarantined
  logic [52:0] progress[0:TAGS-1];  // poisoned, local, left, lower
  logic [PB+2:0] owner[0:TAGS-1];  // single, id, place
  logic [4:0] stamp[0:TAGS-1];  // epoch of the allocation or of the quarantine's start
  logic [4:0] epoch;  // counts quarters of the time-out
  logic [3:0] entry[0:2*TAGS-1];  // by place: over, error
  logic [2:0] kind[0:2*TAGS-1];  // by place: last, id

  logic due, next_due, expire, release_now, give, take, placing, places_left;
  logic [TB-1:0] scan, give_tag, next_tag;
  logic [PB-1:0] next_place;

  // ---- free tags: tags never used since the restart, then the queue; the next tag in a register ----
  logic next_valid, load, used_fresh, queue_valid, passed_on, again;
  logic [TB-1:0] queue_tag;
  logic [TB:0] fresh, limit, use_count, queued;
  logic all, change;  // all tags may be used; `all` is to change
  logic spare_tag, spare_room;
  assign change = TAGS > 32 && all != ext_tag;
  assign limit = (all || TAGS < 32) ? TAGS[TB:0] : 32;
  assign used_fresh = fresh < limit;
  assign alloc_tag = {{(8 - TB) {1'b0}}, next_tag};
  // one write port to each memory: updates under way go first
  assign alloc_next = !alloc_valid && (next_valid || used_fresh || queue_valid || give) && places_left &&
                      !next_upd && !next_fin && !next_due && !change;
  assign take = alloc_valid && alloc_error == 3'd0;
  assign placing = alloc_valid && !alloc_single;
  assign alloc_spare = spare_tag && spare_room;

  assign again = (restart || change) && use_count == '0 && !alloc_valid;  // restart now
  assign load = !next_valid || take;
  assign passed_on = !next_valid && !used_fresh && !queue_valid;  // straight from the end of its read
  logic queue_room;
  sync_fifo #(
      .WIDTH(TB),
      .DEPTH(TAGS),
      .BLOCK(TAGS > 64 ? 1 : 0)
  ) queue (
      .clk,
      .rst(rst || again),
      .wr_valid(give && !passed_on),
      .wr_ready(queue_room),
      .wr_data(give_tag),
      .rd_valid(queue_valid),
      .rd_ready(load && !used_fresh),
      .rd_data(queue_tag),
      .count(queued)
  );
  always_ff @(posedge clk) begin
    if (load) begin
      next_valid <= used_fresh || queue_valid || (give && passed_on);
      next_tag   <= used_fresh ? fresh[TB-1:0] : queue_valid ? queue_tag : give_tag;
      fresh      <= fresh + {{TB{1'b0}}, used_fresh};
    end
    spare_tag <= take == give ? use_count + 1'b1 < limit : take ? use_count + (TB + 1)'(2) < limit : use_count < limit;
    if (take != give) use_count <= take ? use_count + 1'b1 : use_count - 1'b1;
    if (rst || again) begin
      next_valid <= 1'b0;
      fresh <= '0;
      all <= ext_tag;
    end
    if (rst) begin
      use_count <= '0;
      spare_tag <= 1'b0;
    end
  end
  generate
    if (TB < 8) begin : few
      assign in_use = {{(7 - TB) {1'b0}}, use_count};
    end else begin : many
      assign in_use = use_count[8] ? 8'hff : use_count[7:0];
    end
  endgenerate

  // ---- look-up ----
  generate
    if (TB < 8) begin : some_tags
      assign look_live = look_tag[7:TB] == '0 && live[look_tag[TB-1:0]];
    end else begin : all_tags
      assign look_live = live[look_tag];
    end
  endgenerate
  logic [PB-1:0] owner_place;
  assign look_ready = !due && !late;
  assign {look_poisoned, look_local, look_left, look_lower} = progress[look_tag[TB-1:0]];
  assign {look_single, look_id, owner_place} = owner[look_tag[TB-1:0]];
  assign look_place = {{(9 - PB) {1'b0}}, owner_place};

  // ---- the end of a tag's read: by a completion or by a time-out ----
  logic [TB-1:0] move_tag, end_tag;
  logic ends, hold;
  assign end_tag = upd_valid ? upd_tag[TB-1:0] : scan;
  assign ends = upd_valid ? upd_end : expire;
  assign hold = !upd_valid || upd_hold;
  assign timed_out = expire;
  assign give = upd_valid ? upd_end && !upd_hold : release_now;
  assign give_tag = end_tag;
  assign move_tag = upd_valid ? upd_tag[TB-1:0] : due ? scan : next_tag;
  always_ff @(posedge clk) begin
    if (take || upd_valid)
      progress[move_tag] <= upd_valid ? {upd_poisoned, upd_local, upd_left, upd_lower} :
                                        {1'b0, alloc_local, alloc_bytes, alloc_lower};
    if (take || (ends && hold)) stamp[move_tag] <= epoch;
    if (take) owner[next_tag] <= {alloc_single, alloc_id, next_place};
  end

  // As and/or of masks, not as multiplexers: from multiplexers Yosys makes a clock enable for every tag.
  logic [TAGS-1:0] one, at_take, at_end, at_release;
  assign one = {{(TAGS - 1) {1'b0}}, 1'b1};
  assign at_take = {TAGS{take}} & (one << next_tag);
  assign at_end = {TAGS{ends}} & (one << end_tag);
  assign at_release = {TAGS{!upd_valid && release_now}} & (one << scan);
  always_ff @(posedge clk) begin
    live <= {TAGS{!rst}} & ((live & ~at_end) | at_take);
    held <= {TAGS{!rst}} & ((held & ~at_release) | (at_end & {TAGS{hold}}));
  end

  // ---- room: blocks left after the largest read, negative when that read does not fit ----
  generate
    if (CPL_BLOCKS < TAGS * READ_BLOCKS) begin : limited_room
      localparam int BW = $clog2(READ_BLOCKS), LW = $clog2(CPL_BLOCKS) + 1;
      logic [LW-1:0] left;
      logic [BW-1:0] blocks[0:TAGS-1];  // reserved, less one
      // The room of the largest read is reserved with the tag, and the surplus is returned.
      logic counted;
      logic [TB-1:0] new_tag;
      logic [5:0] new_lower;
      logic [BW+5:0] new_bytes, new_end;
      logic [BW-1:0] new_blocks, surplus;
      logic [BW:0] returned;
      assign new_end = new_bytes + {{BW{1'b0}}, new_lower} - 1'b1;
      assign new_blocks = new_end[6+:BW];
      assign alloc_room = !left[LW-1];
      assign spare_room = !left[LW-1] && left[LW-2:BW] != '0;
      always_ff @(posedge clk) begin
        left <= left + {{(LW - BW - 1) {1'b0}}, returned} - (take ? READ_BLOCKS[LW-1:0] : '0);
        returned <= {1'b0, surplus} + (give ? {1'b0, blocks[give_tag]} + 1'b1 : '0);
        surplus <= counted ? ~new_blocks : '0;
        if (counted) blocks[new_tag] <= new_blocks;
        counted   <= take;
        new_tag   <= next_tag;
        new_lower <= alloc_lower[5:0];
        new_bytes <= alloc_bytes[BW+5:0];
        if (rst) begin
          left <= LW'(CPL_BLOCKS - READ_BLOCKS);
          returned <= '0;
          surplus <= '0;
          counted <= 1'b0;
        end
      end
      logic unused;
      assign unused = &{1'b0, new_end[5:0]};
    end else begin : enough_room
      assign alloc_room = 1'b1;
      assign spare_room = 1'b1;
    end
  endgenerate

  // ---- the order ----
  logic retire, over, end_single, place_ends;
  logic [PB-1:0] head, end_place, seen_place;
  logic [PB:0] placed;
  logic seen_single, head_last;
  logic [1:0] head_id, end_id, seen_id;
  logic [2:0] head_error, end_error, first_error, kept_error;
  assign places_left = !placed[PB];
  assign place_ends = fin_valid || expire;
  assign end_single = fin_valid ? fin_single : seen_single;
  assign end_place = fin_valid ? fin_place[PB-1:0] : seen_place;
  assign end_id = fin_valid ? fin_id : seen_id;
  assign end_error = fin_valid ? fin_error : 3'd5;
  assign {over, head_error} = entry[head];
  assign {head_last, head_id} = kind[head];
  assign retire = placed != '0 && over;
  assign first_error = kept_error != 3'd0 ? kept_error : head_error;
  always_ff @(posedge clk) begin
    // never both: alloc_next prevents it, and an end is known later in the cycle
    if (placing || (place_ends && !end_single))
      entry[placing?next_place : end_place] <= placing ? {alloc_error != 3'd0, alloc_error} : {1'b1, end_error};
    if (placing) kind[next_place] <= {alloc_last, alloc_id};
    done_valid <= !rst && retire && head_last;
    done_id <= head_id;
    done_error <= first_error;
    single_done_valid <= !rst && ((place_ends && end_single) || (alloc_valid && alloc_single && alloc_error != 3'd0));
    single_done_id <= place_ends ? end_id : alloc_id;
    single_done_error <= place_ends ? end_error : alloc_error;
    none_open <= live == '0 && placed == '0 && !upd_valid && !fin_valid && !alloc_valid && !early_valid && !busy_valid;
    next_place <= next_place + {{(PB - 1) {1'b0}}, placing};
    head <= head + {{(PB - 1) {1'b0}}, retire};
    if (placing != retire) placed <= placing ? placed + 1'b1 : placed - 1'b1;
    if (retire) kept_error <= head_last ? 3'd0 : first_error;
    if (rst) begin
      next_place <= '0;
      head <= '0;
      placed <= '0;
      kept_error <= 3'd0;
    end
  end

  // ---- time: a tag is checked in two steps and ended two steps later, if nothing is in the way ----
  localparam logic [1:0] FETCH = 2'd0, MEASURE = 2'd1, ACT = 2'd3;
  logic [1:0] step;
  logic [4:0] age, seen_stamp;
  logic seen_live, seen_held, limited, late, old, rested;  // late: for a live tag; old: for a quarantined tag
  // No completion is looked up in the cycle before: if none of this tag was on its way then, none is now.
  assign expire = due && !upd_valid && !fin_valid;
  assign release_now = rested;
  logic ended;  // by a completion in the meantime
  assign ended = upd_valid && upd_end && upd_tag[TB-1:0] == scan;
  assign age = epoch - seen_stamp;
  assign next_due = late && seen_live && !ended;
  always_ff @(posedge clk) begin
    limited <= timeout_ticks != '0;
    late <= step == MEASURE && seen_live && age >= 5'd5 && limited;
    old <= step == MEASURE && age >= 5'd17;
    due <= next_due && !(early_valid && early_tag[TB-1:0] == scan) && !(busy_valid && busy_tag[TB-1:0] == scan);
    rested <= old && seen_held;
    if (step == FETCH) begin
      seen_stamp <= stamp[scan];
      seen_live <= live[scan];
      seen_held <= held[scan];
      {seen_single, seen_id, seen_place} <= owner[scan];
    end
    if (ended) seen_live <= 1'b0;
    if (step == ACT) scan <= scan + 1'b1;
    step <= step + 1'b1;
    if (rst) begin
      step <= FETCH;
      scan <= '0;
      {late, old, due, rested} <= '0;
    end
  end

  logic [TICK-1:0] cycle;
  logic [13:0] tick, quarter;
  logic last_tick;  // of its quarter; like the quarter known long before it ends
  always_ff @(posedge clk) begin
    quarter   <= timeout_ticks == '0 ? 14'h3fff : timeout_ticks[15:2];
    last_tick <= tick >= quarter;
    if (&cycle) begin
      if (last_tick) epoch <= epoch + 1'b1;
      tick <= last_tick ? 14'd1 : tick + 1'b1;
    end
    cycle <= cycle + 1'b1;
    if (rst) begin
      cycle <= '0;
      tick  <= 14'd1;
      epoch <= '0;
    end
  end

  // never read
  logic unused;
  assign unused = &{1'b0, queue_room, queued, upd_tag, early_tag, busy_tag, fin_place};

`ifdef FORMAL
  `include "tags.svh"
`endif
endmodule
