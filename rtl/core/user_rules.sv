// SPDX-License-Identifier: MIT OR Apache-2.0
// The rules of the user's port of tlpdma_core for both sides, as rtl/README.md has them ("The user's port"), for simulation:
// a broken rule ends the run with a message. Synthesis does not see this.
//
// Waiting signals are kept and compared later, large requests and words when they are taken; no part of a port is evaluated in a
// cycle in which it is idle. Co-simulation under load takes 2 % more instructions, and 7 % more time.
`ifndef SYNTHESIS
module user_rules #(
    parameter int STARVED = 1 << 20  // cycles for which a master write may wait for a word: it holds all that is sent
) (
    input logic         clk,
    input logic         rst,
    input logic         user_bus_master,
    input logic [  2:0] mrrs,
    input logic         mrd_valid,
    input logic [ 63:0] mrd_addr,
    input logic [ 31:0] mrd_local,
    input logic [ 23:0] mrd_len,
    input logic [  1:0] mrd_id,
    input logic         mrd_ready,
    input logic         drd_valid,
    input logic [ 63:0] drd_addr,
    input logic [ 31:0] drd_local,
    input logic [  9:0] drd_len,
    input logic [  1:0] drd_id,
    input logic         drd_ready,
    input logic         drd_waits,
    input logic         mrd_data_valid,
    input logic [ 31:0] mrd_data_addr,
    input logic [255:0] mrd_data,
    input logic [ 31:0] mrd_data_strobe,
    input logic [  1:0] mrd_data_id,
    input logic         mrd_data_ready,
    input logic         mwr_valid,
    input logic [ 63:0] mwr_addr,
    input logic [ 23:0] mwr_len,
    input logic [  4:0] mwr_lane,
    input logic [  1:0] mwr_id,
    input logic         mwr_ready,
    input logic         mwr_data_valid,
    input logic [255:0] mwr_data,
    input logic         mwr_data_ready,
    input logic         mwr_done_valid,
    input logic         post_valid,
    input logic [ 63:0] post_addr,
    input logic [ 63:0] post_data,
    input logic         post_two,
    input logic         post_four,
    input logic         post_ready,
    input logic         swr_valid,
    input logic [  2:0] swr_bar,
    input logic [ 31:0] swr_addr,
    input logic [255:0] swr_data,
    input logic [ 31:0] swr_strobe,
    input logic         swr_ready,
    input logic         srd_valid,
    input logic [  2:0] srd_bar,
    input logic [ 31:0] srd_addr,
    input logic         srd_ready,
    input logic         srd_data_valid,
    input logic [255:0] srd_data,
    input logic         srd_data_ready
);
  // Before the first reset anything may stand at the ports.
  logic begun;
  initial begun = 1'b0;
  always @(posedge clk) if (rst) begun <= 1'b1;

  // ---- requests ----
  logic mrd_waited, drd_waited, mwr_waited, post_waited, drd_exchanged;
  logic [121:0] mrd_kept;
  logic [107:0] drd_kept;
  logic [ 94:0] mwr_kept;
  logic [129:0] post_kept;
  logic [ 12:0] drd_end;  // from the multiple of MRRS before it
  assign drd_end = {1'b0, drd_addr[11:0] & ~(12'hf80 << mrrs)} + {3'd0, drd_len};
  always @(posedge clk) begin
    if (!rst && begun) begin
      if (mrd_valid || mrd_waited) begin
        if (mrd_waited) begin
          if (!mrd_valid) $fatal(1, "%m: mrd_* changed before it was taken");
          if (mrd_ready)
            if ({mrd_addr, mrd_local, mrd_len, mrd_id} !== mrd_kept) $fatal(1, "%m: mrd_* changed before it was taken");
        end else begin
          if (mrd_len == '0) $fatal(1, "%m: mrd_len is 0");
          if (!mrd_ready) mrd_kept <= {mrd_addr, mrd_local, mrd_len, mrd_id};
        end
        mrd_waited <= !mrd_ready;
      end
      if (drd_valid || drd_waited) begin
        if (!drd_valid) $fatal(1, "%m: drd_* changed before it was taken");
        if (drd_waited && !drd_exchanged) begin
          if ({drd_addr, drd_local, drd_len, drd_id} !== drd_kept) $fatal(1, "%m: drd_* changed before it was taken");
        end else begin
          if (drd_len == '0) $fatal(1, "%m: drd_len is 0");
          if (drd_end > (13'd128 << mrrs)) $fatal(1, "%m: drd_* crosses a multiple of Max Read Request Size");
          if (!drd_ready) drd_kept <= {drd_addr, drd_local, drd_len, drd_id};
        end
        drd_exchanged <= drd_waits;
        drd_waited <= !drd_ready;
      end
      if (mwr_valid || mwr_waited) begin
        if (mwr_waited) begin
          if (!mwr_valid) $fatal(1, "%m: mwr_* changed before it was taken");
          if (mwr_ready)
            if ({mwr_addr, mwr_len, mwr_lane, mwr_id} !== mwr_kept) $fatal(1, "%m: mwr_* changed before it was taken");
        end else begin
          if (mwr_len == '0) $fatal(1, "%m: mwr_len is 0");
          if (!mwr_ready) mwr_kept <= {mwr_addr, mwr_len, mwr_lane, mwr_id};
        end
        mwr_waited <= !mwr_ready;
      end
      if (post_valid || post_waited) begin
        if (!post_ready && !user_bus_master) $fatal(1, "%m: post_* waits without bus mastering");
        if (post_waited) begin
          if (!post_valid || {post_addr, post_two, post_four} !== post_kept[129:64])
            $fatal(1, "%m: post_* changed before it was taken");
          // a single DW leaves the upper one open
          if (post_data[31:0] !== post_kept[31:0] || (post_two && post_data[63:32] !== post_kept[63:32]))
            $fatal(1, "%m: post_* changed before it was taken");
        end else begin
          if (post_four != (post_addr[63:32] != '0))
            $fatal(1, "%m: post_four contradicts post_addr: it is 1 exactly for an address of 64 bits");
          if (post_two && post_addr[11:2] == '1) $fatal(1, "%m: post_* crosses 4 KiB");
          if (!post_ready) post_kept <= {post_addr, post_two, post_four, post_data};
        end
        post_waited <= !post_ready;
      end
    end
    if (rst) {mrd_waited, drd_waited, mwr_waited, post_waited} <= '0;
  end

  // ---- the words of master writes: the request is shown before the first of them, or with it ----
  logic mwr_data_waited;
  logic [255:0] mwr_data_kept;
  logic [31:0] owed, waiting, span;  // words; cycles
  logic [7:0] writes;  // taken and not done
  assign span = {8'd0, mwr_len} + {27'd0, mwr_lane} + 32'd31;
  always @(posedge clk) begin
    if (!rst && begun) begin
      if (mwr_data_valid || mwr_data_waited) begin
        if (mwr_data_waited) begin
          if (!mwr_data_valid) $fatal(1, "%m: mwr_data changed before it was taken");
          if (mwr_data_ready) if (mwr_data !== mwr_data_kept) $fatal(1, "%m: mwr_data changed before it was taken");
        end else begin
          if (!mwr_data_ready) mwr_data_kept <= mwr_data;
        end
        if (owed == '0) begin
          if (!mwr_valid) $fatal(1, "%m: mwr_data has more words than requested");
          if (mwr_data_ready) $fatal(1, "%m: the core takes a word before its mwr_*");
        end
        mwr_data_waited <= !mwr_data_ready;
      end
      if (mwr_data_ready && !mwr_data_valid && owed != '0) begin
        if (waiting == STARVED)
          $fatal(1, "%m: mwr_data has fewer words than requested, or blocks other TLPs for too long");
        waiting <= waiting + 1'b1;
      end
      if (mwr_done_valid || (mwr_valid && mwr_ready)) begin
        if (mwr_done_valid && writes == 8'd1 && owed != '0) $fatal(1, "%m: mwr_done before the last word was taken");
        writes <= writes + 8'(mwr_valid && mwr_ready) - 8'(mwr_done_valid);
      end
      if ((mwr_data_valid && mwr_data_ready) || (mwr_valid && mwr_ready)) begin
        owed <= owed + (mwr_valid && mwr_ready ? span >> 5 : '0) - 32'(mwr_data_valid && mwr_data_ready);
        waiting <= '0;
      end
    end
    if (rst) begin
      mwr_data_waited <= 1'b0;
      owed <= '0;
      waiting <= '0;
      writes <= '0;
    end
  end

  // ---- what the core gives: data of reads, slave requests; and the answer to one ----
  logic mrd_data_waited, swr_waited, srd_waited, srd_data_waited, srd_open;
  function automatic logic [255:0] bytes(input logic [31:0] strobe);
    for (int i = 0; i < 32; i++) bytes[8*i+:8] = {8{strobe[i]}};
  endfunction
  logic [255:0] mrd_data_kept;
  logic [ 65:0] mrd_place_kept;
  logic [322:0] swr_kept;
  logic [ 34:0] srd_kept;
  logic [255:0] srd_data_kept;
  always @(posedge clk) begin
    if (!rst && begun) begin
      if (mrd_data_valid || mrd_data_waited) begin
        if (mrd_data_waited) begin
          if (!mrd_data_valid || {mrd_data_addr, mrd_data_strobe, mrd_data_id} !== mrd_place_kept)
            $fatal(1, "%m: mrd_data_* changed before it was taken");
          // bytes that are not strobed may be those of the next word
          if (mrd_data !== mrd_data_kept)
            if ((mrd_data & bytes(mrd_data_strobe)) !== (mrd_data_kept & bytes(mrd_data_strobe)))
              $fatal(1, "%m: mrd_data changed before it was taken");
        end else if (!mrd_data_ready) begin
          mrd_data_kept  <= mrd_data;
          mrd_place_kept <= {mrd_data_addr, mrd_data_strobe, mrd_data_id};
        end
        mrd_data_waited <= !mrd_data_ready;
      end
      if (swr_valid || swr_waited) begin
        if (swr_waited) begin
          if (!swr_valid || {swr_bar, swr_addr, swr_data, swr_strobe} !== swr_kept)
            $fatal(1, "%m: swr_* changed before it was taken");
        end else begin
          if (!swr_ready) swr_kept <= {swr_bar, swr_addr, swr_data, swr_strobe};
        end
        swr_waited <= !swr_ready;
      end
      if (srd_valid || srd_waited) begin
        if (srd_waited) begin
          if (!srd_valid || {srd_bar, srd_addr} !== srd_kept) $fatal(1, "%m: srd_* changed before it was taken");
        end else begin
          if (srd_open) $fatal(1, "%m: srd_* while another read is open");
          if (!srd_ready) srd_kept <= {srd_bar, srd_addr};
        end
        srd_waited <= !srd_ready;
      end
      if (srd_data_valid || srd_data_waited) begin
        if (srd_data_waited) begin
          if (!srd_data_valid || srd_data !== srd_data_kept) $fatal(1, "%m: srd_data changed before it was taken");
        end else begin
          if (!srd_open && !(srd_valid && srd_ready)) $fatal(1, "%m: srd_data without a read");
          if (!srd_data_ready) srd_data_kept <= srd_data;
        end
        srd_data_waited <= !srd_data_ready;
      end
      if (srd_valid && srd_ready) srd_open <= 1'b1;
      if (srd_data_valid && srd_data_ready) srd_open <= 1'b0;
    end
    if (rst) {mrd_data_waited, swr_waited, srd_waited, srd_data_waited, srd_open} <= '0;
  end
endmodule
`endif
