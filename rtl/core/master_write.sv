// SPDX-License-Identifier: MIT OR Apache-2.0
// Master writes: cuts requests into TLPs and moves their data from local lanes to the lanes in
// which they are sent. Only the bytes within a DW are moved (by addr - lane mod 4): the first DW of
// a TLP is at tlp_lane of its first word. A word that two TLPs share is given twice.
//
// mwr     a request, 1 .. 2^24 - 1 bytes, its first byte at mwr.lane of the first data word
// tlp_*   one beat a data word; the header's fields (addr, dws, be, lane) stand with the first
// done_*  pulse with the last beat of a request; error: (part of) it was refused, because bus
//         mastering was off. Its data were taken and dropped.
module master_write #(
    parameter int MPS_MAX = 512
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          bus_master,
    input  logic  [  2:0] mps,
    output logic          busy,
    input  logic          hold,            // no request is taken
    input  mwr_t          mwr,
    output logic          mwr_ready,
    input  word_t         mwr_data,
    output logic          mwr_data_ready,
    output logic          tlp_valid,
    output logic          tlp_last,
    output logic          tlp_four,        // the address needs 64 bits
    output logic  [ 63:2] tlp_addr,
    output logic  [  9:0] tlp_dws,
    output logic  [  7:0] tlp_be,          // last, first
    output logic  [  2:0] tlp_lane,
    output logic  [255:0] tlp_data,
    input  logic          tlp_ready,
    output logic          done_valid,
    output logic  [  1:0] done_id,
    output logic          done_error
);
  localparam int CB = $clog2(MPS_MAX / 32) + 1;  // bits of a count of words

  // ---- per request ----
  // bytes are moved up by `move`; DWs of the address `a` are at lane a[4:2] + skew
  logic take;
  logic [4:0] gap;  // lane - addr
  assign gap = mwr.lane - mwr.addr[4:0];
  logic [1:0] next_move, next_id;
  logic [2:0] next_skew;
  logic [4:0] next_tail, next_lane;  // lanes of the last and the first byte, before they are moved
  assign take = mwr.valid && mwr_ready;
  always_ff @(posedge clk) begin
    if (take) begin
      next_move <= 2'd0 - gap[1:0];
      next_skew <= gap[4:2] + {2'd0, gap[1:0] != 2'd0};
      next_lane <= mwr.lane;
      next_tail <= mwr.lane + mwr.len[4:0] - 5'd1;
      next_id   <= mwr.id;
    end
  end
  // the last byte moves into one more word; the first byte leaves the first word
  logic next_flush, next_skip;
  logic [5:0] moved_tail, moved_lane;
  assign moved_tail = {1'b0, next_tail} + {4'd0, next_move};
  assign moved_lane = {1'b0, next_lane} + {4'd0, next_move};
  assign next_flush = moved_tail[5];
  assign next_skip  = moved_lane[5];

  // ---- TLPs ----
  logic chunk_valid, chunk_ready, chunk_final, split_ready;
  logic [63:0] chunk_addr;
  logic [11:0] chunk_m1, chunk_end;
  splitter #(
      .MAX(MPS_MAX)
  ) split (
      .clk,
      .rst,
      .valid(mwr.valid && !hold),
      .ready(split_ready),
      .addr(mwr.addr),
      .len(mwr.len),
      .code(mps),
      .chunk_valid,
      .chunk_ready,
      .chunk_addr,
      .chunk_bytes_m1(chunk_m1),
      .chunk_end,
      .chunk_four(tlp_four),
      .chunk_final
  );
  assign mwr_ready = split_ready && !hold;
  logic [ 2:0] lane;
  logic [10:0] end_dw;  // offset of the last DW from lane 0 of the first word
  assign lane   = chunk_addr[4:2] + next_skew;
  assign end_dw = {1'b0, chunk_end[11:2]} + {8'd0, lane};

  // ---- the words of a TLP: its header stays in the splitter until the first word is taken ----
  logic active, first, final_one, ends, flush, skip, refuse, refused;
  logic [1:0] move, id;
  logic [CB-1:0] words;  // after this one
  logic word, word_last, start, fresh;
  logic need;  // this word needs a user word: not if it has only the remaining bytes of the word before
  assign tlp_valid = active && !skip && !refuse && (mwr_data.valid || !need);
  assign word = active && !skip && (mwr_data.valid || !need) && (tlp_ready || refuse);
  assign mwr_data_ready = active && (skip || (need && (tlp_ready || refuse) && (!word_last || ends || final_one)));
  assign tlp_last = word_last;
  assign chunk_ready = word && first;
  // the next TLP begins right after this one, if the splitter has it
  assign start = chunk_valid && !first && (!active || (word && word_last));
  always_ff @(posedge clk) begin
    done_valid <= word && word_last && final_one;
    done_id <= id;
    done_error <= refuse || refused;
    if (word && refuse) refused <= 1'b1;
    if (start && fresh) refused <= 1'b0;
    if (!start) begin
      if (active && skip && mwr_data.valid) skip <= 1'b0;
      if (word) begin
        if (word_last) active <= 1'b0;
        need <= !(flush && final_one && words == CB'(1));
        word_last <= words == CB'(1);
        words <= words - 1'b1;
        first <= 1'b0;
      end
    end
    if (start) begin
      words <= end_dw[CB+2:3];
      word_last <= end_dw[CB+2:3] == '0;
      need <= !((fresh ? next_flush : flush) && chunk_final && end_dw[CB+2:3] == '0);
      ends <= end_dw[2:0] == 3'd7;
      final_one <= chunk_final;
      refuse <= !bus_master;
      first <= 1'b1;
      active <= 1'b1;
      if (fresh) begin
        move <= next_move;
        flush <= next_flush;
        id <= next_id;
        skip <= next_skip;
      end
      fresh <= chunk_final;
    end
    if (rst) begin
      active <= 1'b0;
      first <= 1'b0;
      fresh <= 1'b1;
      done_valid <= 1'b0;
    end
  end
  assign busy = active || !split_ready;

  logic [3:0] first_be, last_be;
  assign first_be = 4'hf << chunk_addr[1:0];
  assign last_be  = 4'hf >> ~chunk_end[1:0];
  assign tlp_addr = chunk_addr[63:2];
  assign tlp_dws  = chunk_end[11:2] + 10'd1;
  assign tlp_be   = chunk_end[11:2] == '0 ? {4'h0, first_be & last_be} : {last_be, first_be};
  assign tlp_lane = lane;

  realign bytes_in_dw (
      .clk,
      .advance(mwr_data.valid && mwr_data_ready),
      .shift(move),
      .in_data(mwr_data.data),
      .valid(tlp_valid),
      .out_data(tlp_data)
  );

  logic unused;
  assign unused = &{1'b0, moved_tail[4:0], moved_lane[4:0], end_dw, chunk_m1};
endmodule
