// SPDX-License-Identifier: MIT OR Apache-2.0
// Takes every completion: checks it against the expected state of its tag and writes good data to the user port,
// at their local addresses, with byte strobes. A completion that fails a check writes no data.
//
// * The data words of a header may arrive later than the header. They start at lane `cpl_hdr[4:2]`, the lane of
//   their DW in local memory; the remaining shift is 0 to 3 bytes.
// * Checks: requester, tag live with bytes left (else: unexpected), status, kind, Byte Count, Lower Address,
//   Length, poison. `upd` advances the tag's expected state, or frees the tag after the read's last completion,
//   without waiting for this or earlier data; `fin` reports that the last data of a read were taken, with its error.
// * The next header is looked up while data are written. A completion takes as many cycles as it has words to
//   write, at least three.
module completion (
    input logic        clk,
    input logic        rst,
    input logic [15:0] cfg_id,

    input  logic         cpl_valid,
    input  logic [127:0] cpl_hdr,
    output logic         cpl_ready,
    input  logic         cpl_data_valid,
    input  logic [255:0] cpl_data,
    output logic         cpl_data_ready,

    output logic [ 7:0] look_tag,
    input  logic        look_ready,
    input  logic        look_live,
    input  logic [31:0] look_local,     // local address of the next byte
    input  logic [12:0] look_left,      // bytes still to come
    input  logic [ 6:0] look_lower,     // Lower Address of the next byte
    input  logic        look_poisoned,  // an earlier completion was poisoned
    input  logic [ 1:0] look_id,
    input  logic        look_single,
    input  logic [ 8:0] look_place,     // the read's place in the order, returned with fin
    output logic        next_upd,       // upd_valid in the next cycle
    output logic        upd_valid,
    output logic [ 7:0] upd_tag,
    output logic [31:0] upd_local,      // new values of look_*
    output logic [12:0] upd_left,
    output logic [ 6:0] upd_lower,
    output logic        upd_poisoned,
    output logic        upd_end,        // or: the read has ended
    output logic        upd_hold,       // and more completions may come
    output logic        next_fin,       // fin_valid in the next cycle
    output logic        fin_valid,
    output logic [ 8:0] fin_place,
    output logic        fin_single,
    output logic [ 1:0] fin_id,
    output logic [ 2:0] fin_error,
    output logic        early_valid,    // `early_tag` was looked up, its data are not on their way yet
    output logic [ 7:0] early_tag,
    output logic        busy_valid,     // `busy_tag` has data on their way
    output logic [ 7:0] busy_tag,

    output mrd_data_t mrd_data,
    input  logic      mrd_data_ready,

    output logic [5:0] errors  // a pulse each, as in tlpdma_pkg
);

  // ---- 1: the header and the expected state of its tag -----------------------------------------------
  logic a_valid, b_valid, d_valid;  // a header is in stage 2, 3, 4
  logic look;
  logic a_single, a_was_poisoned, a_known, a_asked, a_poisoned, a_kind_ok, a_count_ok, a_lower_ok;
  logic [2:0] a_status, a_lane;
  logic [3:0] a_dw;  // of Lower Address, within 64 bytes
  logic [10:0] a_words32, hdr_length;  // Length, 1 .. 1024; a_words32: 0 without data
  logic [10:0] hdr_words32;
  logic [12:0] a_room;  // bytes that Length gives
  logic [ 6:0] a_lower;
  logic [ 8:0] a_order;  // the read's place in the order
  logic [ 7:0] a_tag;
  logic [1:0] a_id, a_offset;
  logic [12:0] a_left, look_need;
  logic [10:0] a_need;  // Length if this is the read's last completion
  logic [31:0] a_local;

  assign hdr_length  = {cpl_hdr[tlpdma_pkg::LENGTH_LSB+:10] == 10'd0, cpl_hdr[tlpdma_pkg::LENGTH_LSB+:10]};
  assign look_tag    = cpl_hdr[tlpdma_pkg::CPL_TAG_LSB+:8];
  assign hdr_words32 = cpl_hdr[tlpdma_pkg::TLP_HAS_DATA_BIT] ? hdr_length : 11'd0;
  assign cpl_ready   = !a_valid && !b_valid && look_ready;
  assign look        = cpl_valid && cpl_ready;
  assign look_need   = look_left + {11'd0, cpl_hdr[tlpdma_pkg::CPL_LOWER_ADDRESS_LSB+:2]} + 13'd3;

  always_ff @(posedge clk) begin
    if (look) begin
      a_known <= look_live && cpl_hdr[tlpdma_pkg::CPL_REQUESTER_LSB+:16] == cfg_id;
      a_asked <= cpl_hdr[tlpdma_pkg::CPL_STATUS_LSB+:3] == tlpdma_pkg::CPL_SC;
      a_status <= cpl_hdr[tlpdma_pkg::CPL_STATUS_LSB+:3];
      a_poisoned <= cpl_hdr[tlpdma_pkg::EP_LSB];
      a_kind_ok <= cpl_hdr[tlpdma_pkg::FMT_TYPE_LSB+:8] == tlpdma_pkg::TLP_CPLD;
      a_count_ok <= {cpl_hdr[tlpdma_pkg::CPL_BYTE_COUNT_LSB +: 12] == 12'd0, cpl_hdr[tlpdma_pkg::CPL_BYTE_COUNT_LSB +: 12]} == look_left;
      a_lower_ok <= cpl_hdr[tlpdma_pkg::CPL_LOWER_ADDRESS_LSB+:7] == look_lower;
      a_words32 <= hdr_words32;
      a_room <= {hdr_words32, 2'b00} - {11'd0, cpl_hdr[tlpdma_pkg::CPL_LOWER_ADDRESS_LSB+:2]};
      a_lower <= look_lower;
      a_lane <= cpl_hdr[4:2];
      a_dw <= cpl_hdr[tlpdma_pkg::CPL_LOWER_ADDRESS_LSB+2+:4];
      a_tag <= look_tag;
      a_id <= look_id;
      a_single <= look_single;
      a_order <= look_place;
      a_was_poisoned <= look_poisoned;
      a_offset <= cpl_hdr[tlpdma_pkg::CPL_LOWER_ADDRESS_LSB+:2];
      a_left <= look_left;
      a_need <= look_need[12:2];
      a_local <= look_local;
    end
  end

  // ---- 2: the verdict ----------------------------------------------------------------------------------
  logic b_known, b_over, b_skip, b_single, b_was_poisoned;
  logic [2:0] b_error, b_lane;
  logic [ 8:0] b_order;
  logic [10:0] b_words32;
  logic [ 7:0] b_tag;
  logic [1:0] b_id, b_shift;
  logic [ 5:0] b_extent;  // bytes less one, modulo two words
  logic [31:0] b_local;

  // The tag's state advances. The tag of a finished read is free from here: no completion of it is looked up any more.
  assign next_upd    = !rst && a_valid && a_known;
  assign early_valid = a_valid || b_valid;   // b has the same tag: no header is looked up before b has left
  assign early_tag   = a_tag;

  always_ff @(posedge clk) begin
    upd_valid <= next_upd;
    if (a_valid) begin : judge
      logic last, fits, over;
      logic [1:0] shift;
      logic [2:0] error;
      logic [3:0] place, end_dw;
      last   = a_room >= a_left;
      // The last completion has no DW too many; the others end at a Read Completion Boundary (64 bytes at least),
      // so that a completion whose Length is too short is detected at once.
      end_dw = a_dw + a_words32[3:0];
      fits   = last ? a_need == a_words32 : end_dw == 4'd0;
      // The remaining shift of the bytes, and the lane of their place (bit 3: in the next word).
      shift  = a_local[1:0] - a_offset;
      place  = {1'b0, a_lane} + {3'd0, a_local[1:0] < a_offset};
      if (!a_asked)
        error = (a_status == tlpdma_pkg::CPL_CA || a_status == tlpdma_pkg::CPL_CRS) ? tlpdma_pkg::ERR_CA : tlpdma_pkg::ERR_UR;
      else if (!a_kind_ok || !a_count_ok || !a_lower_ok || !fits || place[2:0] != a_local[4:2])
        error = tlpdma_pkg::ERR_MISMATCH;
      else if (a_poisoned) error = tlpdma_pkg::ERR_POISONED;
      else error = tlpdma_pkg::ERR_NONE;
      // a poisoned completion is counted like a good one; the other errors end the request
      over = last || (error != tlpdma_pkg::ERR_NONE && error != tlpdma_pkg::ERR_POISONED);

      upd_tag        <= a_tag;
      upd_local      <= a_local + {19'd0, a_room};
      upd_left       <= a_left - a_room;
      upd_lower      <= a_lower + a_room[6:0];
      upd_poisoned   <= a_was_poisoned || error == tlpdma_pkg::ERR_POISONED;
      upd_end        <= over;
      upd_hold       <= error == tlpdma_pkg::ERR_MISMATCH;
      b_known        <= a_known;
      b_error        <= error;
      b_over         <= over;
      b_extent       <= last ? a_left[5:0] - 6'd1 : a_room[5:0] - 6'd1;
      b_words32      <= a_words32;
      b_lane         <= a_lane;
      b_skip         <= place[3];
      b_shift        <= shift;
      b_tag          <= a_tag;
      b_id           <= a_id;
      b_single       <= a_single;
      b_order        <= a_order;
      b_was_poisoned <= a_was_poisoned;
      b_local        <= a_local;
    end else begin
      {upd_tag, upd_local, upd_left, upd_lower, upd_poisoned, upd_end, upd_hold} <= 'x;
    end
  end

  // ---- 3: the data stage is loaded --------------------------------------------------------------------------
  logic load, d_done;
  assign load = b_valid && (!d_valid || d_done);

  // ---- 4: data -------------------------------------------------------------------------------------------
  logic d_ends, d_single, d_known, d_write, d_first, d_last, d_step, d_fresh;
  logic d_takes, d_gives;  // this step takes a word, gives a word
  logic [2:0] d_error, d_verdict;  // of the read so far; of this completion
  logic       d_tail;  // the last step takes no word
  logic [8:0] d_order;
  logic [7:0] d_tag, d_left;  // d_left: steps after this one
  logic [1:0] d_id, d_shift;
  logic [26:0] d_word;
  logic [4:0] d_start, d_end;

  assign d_step  = d_valid && (!d_takes || cpl_data_valid) && (!d_gives || mrd_data_ready);
  assign d_done  = d_step && d_last;

  assign cpl_data_ready = d_valid && d_takes && (!d_gives || mrd_data_ready);
  assign mrd_data.valid = d_valid && d_gives && (!d_takes || cpl_data_valid);
  assign mrd_data.addr  = {d_word, 5'd0};
  assign mrd_data.id    = d_id;
  // no byte before the start (in the first word), none after the end (in the last word)
  assign mrd_data.strobe = (d_first ? 32'hffffffff << d_start : '1)
                           & (d_last ? 32'hffffffff >> ~d_end : '1);

  realign align (
      .clk(clk),
      .advance(d_step),
      .shift(d_shift),
      .in_data(cpl_data),
      .valid(mrd_data.valid),
      .out_data(mrd_data.data)
  );

  assign next_fin   = !rst && d_done && d_ends;
  assign busy_valid = d_valid && d_known;
  assign busy_tag   = d_tag;

  always_ff @(posedge clk) begin
    d_valid    <= load || (d_valid && !d_done);
    b_valid    <= a_valid || (b_valid && !load);
    a_valid    <= look;
    fin_valid  <= next_fin;
    fin_place  <= d_order;
    fin_single <= d_single;
    fin_id     <= d_id;
    fin_error  <= d_error;
    errors     <= 6'd0;
    if (d_fresh) begin
      errors[tlpdma_pkg::E_UNEXPECTED] <= !d_known;
      errors[tlpdma_pkg::E_UR]         <= d_known && d_verdict == tlpdma_pkg::ERR_UR;
      errors[tlpdma_pkg::E_CA]         <= d_known && d_verdict == tlpdma_pkg::ERR_CA;
      errors[tlpdma_pkg::E_POISONED]   <= d_known && d_verdict == tlpdma_pkg::ERR_POISONED;
      errors[tlpdma_pkg::E_MISMATCH]   <= d_known && d_verdict == tlpdma_pkg::ERR_MISMATCH;
    end
    d_fresh <= load;
    if (d_step) begin
      d_takes <= d_takes && !(d_tail && d_left == 8'd1);
      d_last  <= d_left == 8'd1;
      d_left  <= d_left - 8'd1;
      if (d_gives) begin
        d_first <= 1'b0;
        d_word  <= d_word + 27'd1;
      end
      d_gives <= d_write;
    end
    if (load) begin : prepare
      logic write, tail;
      logic [7:0] last;  // the number of the word with the last DW to take
      logic [5:0] end_byte;  // the place of the last byte to give, modulo two words
      write    = b_known && b_error == tlpdma_pkg::ERR_NONE;
      last     = 8'((b_words32 + (b_lane == 3'd0 ? 11'h7ff : {8'd0, b_lane - 3'd1})) >> 3);
      end_byte = b_extent + {1'b0, b_local[4:0]};
      // The bytes may end one word later than they arrived: a word is then given for which no word is taken.
      tail     = write && last[0] != end_byte[5] ^ b_skip;
      d_known <= b_known;
      d_write <= write;
      d_error <= b_was_poisoned ? tlpdma_pkg::ERR_POISONED : b_error;
      d_verdict <= b_error;
      d_ends  <= b_known && b_over;
      d_single <= b_single;
      d_order <= b_order;
      d_tag   <= b_tag;
      d_id    <= b_id;
      d_takes <= b_words32 != 11'd0;
      d_gives <= write && !b_skip;
      d_tail  <= tail;
      d_left  <= b_words32 == 11'd0 ? 8'd0 : last + {7'd0, tail};
      d_last  <= b_words32 == 11'd0 || (last == 8'd0 && !tail);
      d_first <= 1'b1;
      d_shift <= b_shift;
      d_word  <= b_local[31:5];
      d_start <= b_local[4:0];
      d_end   <= end_byte[4:0];
    end
    if (rst) begin
      a_valid <= 1'b0;
      b_valid <= 1'b0;
      d_valid <= 1'b0;
      d_fresh <= 1'b0;
      errors  <= 6'd0;
    end
  end

  logic unused;
  assign unused = &{1'b0, cpl_hdr, look_need[1:0]};
endmodule
