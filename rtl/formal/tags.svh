// SPDX-License-Identifier: MIT OR Apache-2.0
// Proof of the tag memory, by induction:
//  * a tag is allocated only when it is free: neither live nor quarantined; a completion's tag that
//    was live when it was looked up is still live when its upd comes, regardless of time-outs meanwhile;
//  * a tag with a time-out or a mismatch is quarantined, for at least 16 quarters of the time-out
//    after the quarter in which the quarantine began;
//  * a tag comes back exactly once; none is lost or doubled: the tags in use, in the queue, next and
//    never used are all tags;
//  * a read retires only when it is over, exactly once, in the order of the allocations: a place
//    belongs to a live tag or to a read whose data are on their way, or its read is over;
//  * the completions of 64 bytes that the reads of all tags in use may bring never exceed CPL_BLOCKS; all of the room
//    is there again when no tag is in use.
// The FIFO is a stand-in (queue_stand_in.sv), assumed to have the property that the proof of sync_fifo
// shows: a tag comes out in its turn.
localparam int PLACES = 2 * TAGS;
logic f_begun = 1'b0;

// ---- the completion block: look_*, early_*, upd_*, fin_* as it drives them ----
(* anyseq *) logic f_look, f_leaves;
logic f_next_upd, f_next_fin, f_alloc_next, f_alloc_room, f_again;
always_ff @(posedge clk)
  {f_next_upd, f_next_fin, f_alloc_next, f_alloc_room, f_again} <= {
    next_upd, next_fin, alloc_next && !rst, alloc_room, again
  };
logic f_early, f_upd, f_waits;  // stage 2; its upd, with stage 3; stage 3
logic [TB-1:0] f_early_tag;
logic [PLACES-1:0] f_await;  // ended, its data on their way
always_ff @(posedge clk) begin
  f_early <= !rst && f_look;
  if (f_look) f_early_tag <= look_tag[TB-1:0];
  f_upd   <= !rst && f_early;
  f_waits <= !rst && (f_early || (f_waits && !f_leaves));
end
always_comb begin
  assume (look_tag < TAGS && busy_tag < TAGS && early_tag < TAGS && fin_place < PLACES);
  assume (!f_look || (look_ready && look_live && !f_early && !f_waits));
  assume (upd_valid == f_upd && (!f_upd || upd_tag == f_early_tag) && (upd_end || !upd_hold));
  assume (!(f_early || f_waits) || (early_valid && early_tag == f_early_tag));
  assume (!fin_valid || fin_single || f_await[fin_place[PB-1:0]]);
  assume (!f_begun || (upd_valid == f_next_upd && fin_valid == f_next_fin));
  assume (!alloc_valid || (f_alloc_next && (!f_again || alloc_error != 3'd0)));
  assume (!take || f_alloc_room);
  assume (alloc_bytes != '0 && alloc_lower[5:0] + alloc_bytes <= 64 * READ_BLOCKS);
end

logic [TAGS-1:0] f_queued, f_fresh, f_next, f_used;
logic [TB:0] f_queue_place[0:TAGS-1];  // tags that come out before this one
logic [4:0] f_epochs[0:TAGS-1];  // since the quarantine began; 31: or more
logic f_push, f_pop, f_epoch_ends;
assign f_push = give && !passed_on;
assign f_pop = load && !used_fresh && queue_valid;
assign f_epoch_ends = &cycle && last_tick;
assign f_used = live | held;

always_ff @(posedge clk) begin
  f_begun <= 1'b1;
  for (int t = 0; t < TAGS; t++) begin
    if (f_pop && queue_tag == t) f_queued[t] <= 1'b0;
    else if (f_pop) f_queue_place[t] <= f_queue_place[t] - 1'b1;
    if (f_push && give_tag == t) begin
      f_queued[t] <= 1'b1;
      f_queue_place[t] <= queued - {{TB{1'b0}}, f_pop};
    end
    if (ends && hold && end_tag == t) f_epochs[t] <= {4'd0, f_epoch_ends};
    else if (f_epoch_ends && f_epochs[t] != 5'd31) f_epochs[t] <= f_epochs[t] + 5'd1;
    if (rst || again) f_queued[t] <= 1'b0;
    if (rst) f_epochs[t] <= 5'd31;
  end
  for (int p = 0; p < PLACES; p++) begin
    if (upd_valid && upd_end && !f_single[upd_tag[TB-1:0]] && f_place[upd_tag[TB-1:0]] == p) f_await[p] <= 1'b1;
    if (fin_valid && !fin_single && fin_place == p) f_await[p] <= 1'b0;
    if (rst) f_await[p] <= 1'b0;
  end
end

logic [TB:0] f_uses, f_queues;
logic [TAGS-1:0] f_single;
logic [PB-1:0] f_place[0:TAGS-1];
logic [1:0] f_tagged[0:PLACES-1];  // live tags with this place: 0, 1, or more
logic [PLACES-1:0] f_open;
always_comb begin
  f_uses   = '0;
  f_queues = '0;
  for (int t = 0; t < TAGS; t++) begin
    f_fresh[t] = t >= fresh;
    f_next[t] = next_valid && next_tag == t;
    f_uses = f_uses + {{TB{1'b0}}, f_used[t]};
    f_queues = f_queues + {{TB{1'b0}}, f_queued[t]};
    f_single[t] = owner[t][PB+2];
    f_place[t] = owner[t][PB-1:0];
  end
  for (int p = 0; p < PLACES; p++) begin
    f_open[p]   = {1'b0, PB'(p - head)} < placed;
    f_tagged[p] = 2'd0;
    for (int t = 0; t < TAGS; t++)
    if (live[t] && !f_single[t] && f_place[t] == p && f_tagged[p] != 2'd2) f_tagged[p] = f_tagged[p] + 2'd1;
  end
end

// timeout_ticks was 0 since a reset
logic f_unlimited;
initial f_unlimited = 1'b0;
always_ff @(posedge clk) f_unlimited <= (rst || f_unlimited) && timeout_ticks == '0;

always_comb begin
  if (f_unlimited) assert (!timed_out && !limited && !late && !due);
  if (!f_begun) assume (rst);
  for (int t = 0; t < TAGS; t++) assume (!queue_valid || (queue_tag == t) == (f_queued[t] && f_queue_place[t] == '0));
  if (f_begun) begin
    assert (fresh <= TAGS);
    assert (use_count == f_uses && queued == f_queues);
    // A spare tag is reported only while another tag is free: the last tag is for descriptors.
    assert (!spare_tag || use_count + 1'b1 < limit);
    if (f_push) assert (queue_room);
    if (alloc_valid) assert (placed < PLACES && !upd_valid && !fin_valid && !due);
    if (take) assert (next_valid);
    if (f_early || f_upd) assert (live[f_early_tag]);
    if (f_upd) assert (f_waits && !f_early);
    if (f_early) assert (!f_waits);
    for (int t = 0; t < TAGS; t++) begin
      // exactly one of never used, queued, next and in use
      assert ({1'b0, f_fresh[t]} + f_queued[t] + f_next[t] + f_used[t] == 2'd1);
      assert (!(live[t] && held[t]));
      if (take && next_tag == t) assert (!f_used[t]);
      if (give && give_tag == t) assert (held[t] || (live[t] && upd_valid && upd_end));
      if ((timed_out || (upd_valid && upd_hold)) && end_tag == t) assert (live[t] && ends && hold && !give);
      // the ages agree, so an early release would be seen
      if (held[t]) assert (f_epochs[t] == 5'd31 || f_epochs[t] == (epoch - stamp[t]));
      if (release_now && give && scan == t && !upd_valid) assert (f_epochs[t] > 5'd16);
      // places in the queue are below its count and distinct
      if (f_queued[t]) assert (f_queue_place[t] < queued);
      for (int u = 0; u < t; u++) if (f_queued[t] && f_queued[u]) assert (f_queue_place[t] != f_queue_place[u]);
    end
    // the order
    assert (placed <= PLACES && next_place == PB'(head + placed));
    for (int p = 0; p < PLACES; p++) begin
      assert (f_tagged[p] + f_await[p] + (f_open[p] && entry[p][3]) == {2'd0, f_open[p]});
      if (retire && head == p) assert (f_open[p] && f_tagged[p] == 2'd0 && !f_await[p]);
      if (placing && next_place == p) assert (!f_open[p]);
    end
    // the fetched state of a tag still holds
    assert (!due || (step == ACT && seen_live));
    assert (!due || (!f_early && !((f_upd || f_waits) && f_early_tag == scan)));
    assert (!rested || (step == ACT && seen_held));
    if (step != FETCH) begin
      if (seen_live && (due || step != ACT)) assert (live[scan] && {seen_single, seen_id, seen_place} == owner[scan]);
      if (seen_held) assert (held[scan]);
      if (seen_held && step == MEASURE) assert (seen_stamp == stamp[scan]);
      if (seen_held && old) assert (step == 2'd2 && f_epochs[scan] > 5'd16);
    end
    if (rested) assert (f_epochs[scan] > 5'd16);
  end
end

// ---- room ----
generate
  if (CPL_BLOCKS < TAGS * READ_BLOCKS) begin : f_room
    localparam int W = $clog2(TAGS * READ_BLOCKS) + 2;
    (* keep *) logic [W-1:0] blocks[0:TAGS-1];  // that the read of a tag in use touches
    logic [W-1:0] reserved, spent, given_back;
    always_ff @(posedge clk) begin
      if (take) blocks[next_tag] <= (alloc_lower[5:0] + alloc_bytes + 63) / 64;
    end
    assign given_back = limited_room.returned + limited_room.surplus;
    assign spent = (CPL_BLOCKS - READ_BLOCKS) - {{W{limited_room.left[limited_room.LW-1]}}, limited_room.left};
    always_comb begin
      reserved = '0;
      for (int t = 0; t < TAGS; t++) begin
        if (f_used[t]) reserved = reserved + blocks[t];
      end
      if (f_begun) begin
        // the room of the largest read is reserved at first
        assert (spent == reserved + given_back + (limited_room.counted ? READ_BLOCKS - blocks[limited_room.new_tag] : 0));
        assert (spent <= CPL_BLOCKS && reserved <= CPL_BLOCKS);
        if (limited_room.counted) begin
          assert (f_used[limited_room.new_tag] && blocks[limited_room.new_tag] == limited_room.new_blocks + 1);
        end
        for (int t = 0; t < TAGS; t++) begin
          if (f_used[t]) assert (blocks[t] != '0 && blocks[t] <= READ_BLOCKS);
          if (f_used[t] && !(limited_room.counted && limited_room.new_tag == t)) begin
            assert (blocks[t] == limited_room.blocks[t] + 1);
          end
        end
        if (f_used == '0 && given_back == '0) assert (limited_room.left == CPL_BLOCKS - READ_BLOCKS);
        if (alloc_room) assert (spent + READ_BLOCKS <= CPL_BLOCKS);
        if (spare_room) assert (spent + 2 * READ_BLOCKS <= CPL_BLOCKS);
      end
    end
    always_ff @(posedge clk) begin
      if (f_begun && !rst) begin
        cover (reserved == CPL_BLOCKS);
        cover (!alloc_room && next_valid);
        cover (reserved == '0 && given_back == READ_BLOCKS);
      end
    end
  end
endgenerate

// states that must be reachable, or the proof says little (the end of a quarantine is too deep for this)
always_ff @(posedge clk) begin
  if (f_begun && !rst) begin
    cover (f_pop);
    cover (give && passed_on);
    cover (timed_out);
    cover (f_unlimited && f_upd);
    cover (retire && head_error != 3'd0);
    cover (placed > TAGS);
    cover (f_upd && due);
  end
end
