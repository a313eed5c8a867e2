// SPDX-License-Identifier: MIT OR Apache-2.0
// Proof obligations of channel, by induction, so for every value of the counters (wrap included):
// - a fetch never goes past TAIL, past the end of the ring, or across the boundary of one read
//   request; the buffer has room for it;
// - HEAD <= taken <= ready <= FETCHED <= TAIL; HEAD counts each descriptor once and in order;
// - the pieces of a descriptor cover it once, in order, none crosses a page of the host.
// Assumed: the software's contract (TAIL only grows, at most one turn ahead of HEAD), and that no
// response comes without its request. Of sync_fifo only that it gives back the words put in (proved
// for itself).
(* anyconst *) logic [4:0] f_log2;
(* anyconst *) logic [2:0] f_batch;
(* anyconst *) logic f_pio;
logic f_past = 1'b0;
always_ff @(posedge clk) f_past <= 1'b1;

logic f_set;  // software has written LOG2 and the mode, as it must before it starts
assign f_set = mask == 16'(f_size - 1) && pio == f_pio;
logic f_pushed;
always_ff @(posedge clk) f_pushed <= push;
logic [16:0] f_size, f_new;
assign f_size = 17'd1 << f_log2;
assign f_new  = write_data[16:0] - tail[16:0];
always_comb begin
  assume (f_past || rst);
  assume (!f_past || !rst);
  assume (f_log2 >= 5'd4 && f_log2 <= 5'd16);
  assume (f_batch >= 3'd3 && f_batch <= 3'd5 && batch_log2 == f_batch);
  if (write && write_at == AT_LOG2) assume (write_data == {27'b0, f_log2});
  if (write && write_at == AT_CONTROL) assume (write_data[2] == f_pio && (mask == 16'(f_size - 1) || !write_data[0]));
  if (write && (write_at == AT_TAIL || write_at == AT_PIO_LAST)) assume (f_set);
  assume (!arrived || !complete[arrived_block]);
  assume (!fetch_done || fetches != '0);
  assume (!piece_done || flight_valid);
  if (f_pushed) assume (!push);  // the bus carries other DWs between
  if (write && write_at == AT_TAIL) assume (f_new <= f_size && f_new <= f_size - (tail[16:0] - head[16:0]));
end

// ---- pieces in flight ----
localparam int FW = $clog2(FLIGHT);
logic [FLIGHT-1:0] f_lasts;
logic [FW:0] f_in, f_out, f_held;
assign f_held = f_in - f_out;
always_ff @(posedge clk) begin
  if (rst) {f_in, f_out} <= '0;
  else begin
    if (sent) f_lasts[f_in[FW-1:0]] <= last;
    f_in  <= f_in + {{FW{1'b0}}, sent};
    f_out <= f_out + {{FW{1'b0}}, piece_done};
  end
end
always_comb begin
  assume (flight_count == f_held);
  assume (flight_valid == (f_held != '0));
  assume (flight_ready == !f_held[FW]);
  if (flight_valid) assume (done_last == f_lasts[f_out[FW-1:0]]);
end

logic [16:0] f_ends;  // last pieces in flight
always_comb begin
  f_ends = '0;
  for (int i = 0; i < FLIGHT; i++) begin
    if (i < f_held && f_lasts[FW'(f_out+i)]) f_ends = f_ends + 17'd1;
  end
end

// ---- counters ----
logic [16:0] f_taken;  // as `taken`, wide
logic [16:0] f_lost;  // ended without being counted: halted or being reset
logic f_cutting, f_loading;
assign f_cutting = cutter == CUT || cutter == FIT || cutter == CHECK || cutter == SEND || cutter == REJECT;
assign f_loading = cutter == HOST || cutter == LOCAL;
always_ff @(posedge clk) begin
  if (cutter == LOCAL) f_taken <= f_taken + 17'd1;
  f_lost <= f_lost + {16'b0, piece_done && done_last && !counted}
      + {16'b0, f_cutting && !(cutter == SEND && sent && last)
                && ((cutter == SEND && !refused && sent && (halted || resetting))
                || (cutter == REJECT && (halted || resetting)))};
  if (rst || cleared) {f_taken, f_lost} <= '0;
end

logic [16:0] f_head_taken, f_taken_fetched, f_fetched_tail;
logic [IW:0] f_taken_ready, f_ready_fetched;
assign f_head_taken = f_taken - head[16:0];
assign f_taken_fetched = fetched - f_taken;
assign f_fetched_tail = tail[16:0] - fetched;
assign f_taken_ready = ready - taken;
assign f_ready_fetched = fetched[IW:0] - ready;

always_comb begin
  if (f_past && !f_set) begin
    untouched :
    assert (tail == '0 && fetched == '0 && f_taken == '0 && ready == '0 && head == '0
        && f_lost == '0 && !run && !halted && f_held == '0 && cutter == NEXT && fetcher == LOOK
        && fetches == '0 && complete == '1 && fetch_fault == '0);
  end
  if (f_past) begin
    counters_width : assert (taken == f_taken[IW:0]);
    head_once : assert (f_head_taken == f_ends + f_lost + {16'b0, f_cutting});
    head_near : assert (f_ends + f_lost + {16'b0, f_cutting} + {16'b0, f_loading} <= FLIGHT + 1);
    head_all : assert (halted || resetting || f_lost == '0);
    room_known : assert (!pio_room || room != '0 || f_pushed);
    buffer_holds : assert (f_taken_fetched <= {{(16 - IW) {1'b0}}, DEPTH});
    ready_order : assert ({1'b0, f_taken_ready} + {1'b0, f_ready_fetched} == {1'b0, f_taken_fetched[IW:0]});
    loading_some : assert (!f_loading || f_taken_ready != '0);
    if (!f_pio && f_set) begin
      tail_order : assert (f_fetched_tail <= f_size && tail[16:0] - head[16:0] <= f_size);
      ring_turn : assert (f_fetched_tail + f_taken_fetched + f_head_taken <= f_size);
    end
    in_flight : assert (f_held <= FLIGHT[FW:0]);
    valid_states : assert (cutter <= REJECT);
  end
end

// ---- fetches ----
logic [5:0] f_limit;
assign f_limit = ({1'b0, batch} + 6'd1) - {1'b0, fetched[4:0] & batch};
always_comb begin
  if (f_past && f_set && fetcher != LOOK) begin
    only_ring : assert (!f_pio);
    block_waits : assert (block_free);
  end
  if (f_past && f_set && fetcher == COUNT)
    count_snapshot : assert (!some || (pending != '1 && pending < f_fetched_tail));
  if (f_past && f_set && fetcher == DECIDE) begin
    snapshot :
    assert ({1'b0, limit} + 6'd1 == f_limit && (!some || f_fetched_tail != '0)
        && (!some || !many || f_fetched_tail > 17'd32)
        && (!some || many || {12'b0, few} < f_fetched_tail));
  end
  if (f_past && f_set && fetcher == OFFER) begin
    fetch_some : assert (fetch_count != '0);
    fetch_to_tail : assert ({11'b0, fetch_count} <= f_fetched_tail);
    fetch_in_ring : assert ({1'b0, fetch_slot} + {11'b0, fetch_count} <= f_size);
    fetch_one_request : assert (fetch_count <= f_limit);
    fetch_fits : assert (f_taken_fetched + {11'b0, fetch_count} <= {{(16 - IW) {1'b0}}, DEPTH});
  end
end

// ---- pieces ----
logic [23:0] f_sum, f_moved;  // bytes of the descriptor sent, and as the channel keeps them
assign f_moved = later ? {pages, first} : '0;
always_ff @(posedge clk) begin
  if (cutter == LOCAL) f_sum <= '0;
  else if (sent) f_sum <= f_sum + {11'b0, piece_len};
end
always_comb begin
  if (f_past && f_set && f_cutting && cutter != REJECT && (cutter == CUT ? length != '0 : !malformed)) begin
    cut_sum : assert (f_sum == f_moved && f_sum < length);
    cut_page : assert (first == -host[11:0] && ragged == (host[11:0] != '0));
    cut_later : assert (later || pages == '0);
  end
  if (f_past && f_set && (cutter == CHECK || cutter == SEND) && !malformed) begin
    piece_at : assert (piece_host == host + {40'b0, f_sum} && piece_local == local_at + {8'b0, f_sum});
    piece_some : assert (piece_len != '0 && {11'b0, piece_len} <= length - f_sum);
    piece_last : assert (last == ({11'b0, piece_len} == length - f_sum));
    piece_page : assert ({2'b0, piece_host[11:0]} + {1'b0, piece_len} <= 14'd4096);
    piece_to_page : assert (last || piece_host[11:0] + piece_len[11:0] == '0);
  end
  if (f_past && f_set && cutter == FIT) begin
    cut_rest : assert (rest == length - f_moved && malformed == (flags[7:2] != '0 || length == '0));
    cut_at : assert (piece_host == host + {40'b0, f_moved} && piece_local == local_at + {8'b0, f_moved});
  end
  if (f_past && f_set && (cutter == CHECK || cutter == SEND)) seen : assert (malformed || length != '0);
  if (f_past && f_set && cutter == SEND && malformed) refused_malformed : assert (refused);
  if (f_past && f_set && cutter == LOCAL) fresh : assert (!later && pages == '0);
  if (f_past && f_set && cutter == HOST) fresh_too : assert (!later && pages == '0);
end

// ---- arrival: no descriptor is read while its fetch waits for data ----
logic [BLOCKS-1:0][5:0] f_left;  // descriptors of each block that were requested and have not arrived
always_ff @(posedge clk) begin
  for (int b = 0; b < BLOCKS; b++) begin
    if (asked && fetch_block == (IW - 5)'(b)) f_left[b] <= fetch_count;
    else if (arrived && arrived_block == (IW - 5)'(b)) f_left[b] <= f_left[b] - 6'd1;
  end
  if (rst || cleared) f_left <= '0;
end
always_comb begin
  for (int b = 0; b < BLOCKS; b++)
  if (f_past) assert (complete[b] ? f_left[b] == '0 : f_left[b] != '0 && f_left[b] == left[b]);
end
(* anyconst *) logic [IW-1:0] f_slot;
logic f_asked, f_waiting;
logic [IW-1:0] f_offset;
assign f_offset  = f_slot - ready[IW-1:0];
assign f_waiting = f_asked && !complete[f_slot[IW-1:5]];
always_ff @(posedge clk) begin
  if (rst || cleared) f_asked <= 1'b0;
  else if (asked && f_slot >= fetch_index && {1'b0, f_slot} < {1'b0, fetch_index} + {{(IW - 5) {1'b0}}, fetch_count})
    f_asked <= 1'b1;
  else if (complete[f_slot[IW-1:5]]) f_asked <= 1'b0;
end
always_comb begin
  if (f_past && f_waiting) waits_behind : assert ({1'b0, f_offset} < f_ready_fetched);
  if (f_past && f_loading && f_slot == taken[IW-1:0]) has_arrived : assert (!f_waiting);
end
