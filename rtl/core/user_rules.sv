// SPDX-License-Identifier: MIT OR Apache-2.0
// The rules of the user's port of tlpdma_core for both sides, as in rtl/README.md ("The user's port"), for simulation:
// a broken rule ends the run with a message. Not for synthesis.
//
// Waiting signals are kept and compared later, field by field so that no simulator assembles a struct for it; large
// requests and words when they are taken; no part of a port is evaluated in a cycle in which it is idle. Co-simulation
// under load takes 5 % more instructions.
`ifndef SYNTHESIS
module user_rules #(
    parameter int STARVED = 1 << 20  // cycles for which a master write may wait for a word: it blocks other TLPs
) (
    input logic      clk,
    input logic      rst,
    input user_cfg_t user_cfg,
    input mrd_t      mrd,
    input logic      mrd_ready,
    input drd_t      drd,
    input logic      drd_ready,
    input logic      drd_waits,
    input mrd_data_t mrd_data,
    input logic      mrd_data_ready,
    input mwr_t      mwr,
    input logic      mwr_ready,
    input word_t     mwr_data,
    input logic      mwr_data_ready,
    input done_t     mwr_done,
    input post_t     post,
    input logic      post_ready,
    input swr_t      swr,
    input logic      swr_ready,
    input srd_t      srd,
    input logic      srd_ready,
    input word_t     srd_data,
    input logic      srd_data_ready
);
  // Before the first reset the ports may have any value.
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
  assign drd_end = {1'b0, drd.addr[11:0] & ~(12'hf80 << user_cfg.mrrs)} + {3'd0, drd.len};
  always @(posedge clk) begin
    if (!rst && begun) begin
      if (mrd.valid || mrd_waited) begin
        if (mrd_waited) begin
          if (!mrd.valid) $fatal(1, "%m: mrd changed before it was taken");
          if (mrd_ready)
            if ({mrd.id, mrd.len, mrd.place, mrd.addr} !== mrd_kept) $fatal(1, "%m: mrd changed before it was taken");
        end else begin
          if (mrd.len == '0) $fatal(1, "%m: mrd.len is 0");
          if (!mrd_ready) mrd_kept <= {mrd.id, mrd.len, mrd.place, mrd.addr};
        end
        mrd_waited <= !mrd_ready;
      end
      if (drd.valid || drd_waited) begin
        if (!drd.valid) $fatal(1, "%m: drd changed before it was taken");
        if (drd_waited && !drd_exchanged) begin
          if ({drd.id, drd.len, drd.place, drd.addr} !== drd_kept) $fatal(1, "%m: drd changed before it was taken");
        end else begin
          if (drd.len == '0) $fatal(1, "%m: drd.len is 0");
          if (drd_end > (13'd128 << user_cfg.mrrs)) $fatal(1, "%m: drd crosses a multiple of Max Read Request Size");
          if (!drd_ready) drd_kept <= {drd.id, drd.len, drd.place, drd.addr};
        end
        drd_exchanged <= drd_waits;
        drd_waited <= !drd_ready;
      end
      if (mwr.valid || mwr_waited) begin
        if (mwr_waited) begin
          if (!mwr.valid) $fatal(1, "%m: mwr changed before it was taken");
          if (mwr_ready)
            if ({mwr.id, mwr.lane, mwr.len, mwr.addr} !== mwr_kept) $fatal(1, "%m: mwr changed before it was taken");
        end else begin
          if (mwr.len == '0) $fatal(1, "%m: mwr.len is 0");
          if (!mwr_ready) mwr_kept <= {mwr.id, mwr.lane, mwr.len, mwr.addr};
        end
        mwr_waited <= !mwr_ready;
      end
      if (post.valid || post_waited) begin
        if (!post_ready && !user_cfg.bus_master) $fatal(1, "%m: post waits without bus mastering");
        if (post_waited) begin
          if (!post.valid || {post.two, post.four, post.addr} !== post_kept[129:64])
            $fatal(1, "%m: post changed before it was taken");
          // the upper DW may have any value if only one is written
          if (post.data[31:0] !== post_kept[31:0] || (post.two && post.data[63:32] !== post_kept[63:32]))
            $fatal(1, "%m: post changed before it was taken");
        end else begin
          if (post.four != (post.addr[63:32] != '0))
            $fatal(1, "%m: post.four contradicts post.addr: it is 1 exactly for an address of 64 bits");
          if (post.two && post.addr[11:2] == '1) $fatal(1, "%m: post crosses 4 KiB");
          if (!post_ready) post_kept <= {post.two, post.four, post.addr, post.data};
        end
        post_waited <= !post_ready;
      end
    end
    if (rst) {mrd_waited, drd_waited, mwr_waited, post_waited} <= '0;
  end

  // ---- the words of master writes: the request is shown before the first word, or with it ----
  logic mwr_data_waited;
  logic [255:0] mwr_data_kept;
  logic [31:0] owed, waiting, span;  // words; cycles
  logic [7:0] writes;  // taken and not done
  assign span = {8'd0, mwr.len} + {27'd0, mwr.lane} + 32'd31;
  always @(posedge clk) begin
    if (!rst && begun) begin
      if (mwr_data.valid || mwr_data_waited) begin
        if (mwr_data_waited) begin
          if (!mwr_data.valid) $fatal(1, "%m: mwr_data changed before it was taken");
          if (mwr_data_ready)
            if (mwr_data.data !== mwr_data_kept) $fatal(1, "%m: mwr_data changed before it was taken");
        end else begin
          if (!mwr_data_ready) mwr_data_kept <= mwr_data.data;
        end
        if (owed == '0) begin
          if (!mwr.valid) $fatal(1, "%m: mwr_data has more words than requested");
          if (mwr_data_ready) $fatal(1, "%m: the core takes a word before its mwr");
        end
        mwr_data_waited <= !mwr_data_ready;
      end
      if (mwr_data_ready && !mwr_data.valid && owed != '0) begin
        if (waiting == STARVED)
          $fatal(1, "%m: mwr_data has fewer words than requested, or blocks other TLPs for too long");
        waiting <= waiting + 1'b1;
      end
      if (mwr_done.valid || (mwr.valid && mwr_ready)) begin
        if (mwr_done.valid && writes == 8'd1 && owed != '0) $fatal(1, "%m: mwr_done before the last word was taken");
        writes <= writes + 8'(mwr.valid && mwr_ready) - 8'(mwr_done.valid);
      end
      if ((mwr_data.valid && mwr_data_ready) || (mwr.valid && mwr_ready)) begin
        owed <= owed + (mwr.valid && mwr_ready ? span >> 5 : '0) - 32'(mwr_data.valid && mwr_data_ready);
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

  // ---- outputs of the core: data of reads, slave requests; and the answer to a slave read ----
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
      if (mrd_data.valid || mrd_data_waited) begin
        if (mrd_data_waited) begin
          if (!mrd_data.valid || {mrd_data.addr, mrd_data.strobe, mrd_data.id} !== mrd_place_kept)
            $fatal(1, "%m: mrd_data changed before it was taken");
          // bytes without a strobe may be bytes of the next word
          if (mrd_data.data !== mrd_data_kept)
            if ((mrd_data.data & bytes(mrd_data.strobe)) !== (mrd_data_kept & bytes(mrd_data.strobe)))
              $fatal(1, "%m: mrd_data.data changed before it was taken");
        end else if (!mrd_data_ready) begin
          mrd_data_kept  <= mrd_data.data;
          mrd_place_kept <= {mrd_data.addr, mrd_data.strobe, mrd_data.id};
        end
        mrd_data_waited <= !mrd_data_ready;
      end
      if (swr.valid || swr_waited) begin
        if (swr_waited) begin
          if (!swr.valid || {swr.bar, swr.addr, swr.strobe, swr.data} !== swr_kept)
            $fatal(1, "%m: swr changed before it was taken");
        end else begin
          if (!swr_ready) swr_kept <= {swr.bar, swr.addr, swr.strobe, swr.data};
        end
        swr_waited <= !swr_ready;
      end
      if (srd.valid || srd_waited) begin
        if (srd_waited) begin
          if (!srd.valid || {srd.bar, srd.addr} !== srd_kept) $fatal(1, "%m: srd changed before it was taken");
        end else begin
          if (srd_open) $fatal(1, "%m: srd while another read is open");
          if (!srd_ready) srd_kept <= {srd.bar, srd.addr};
        end
        srd_waited <= !srd_ready;
      end
      if (srd_data.valid || srd_data_waited) begin
        if (srd_data_waited) begin
          if (!srd_data.valid || srd_data.data !== srd_data_kept) $fatal(1, "%m: srd_data changed before it was taken");
        end else begin
          if (!srd_open && !(srd.valid && srd_ready)) $fatal(1, "%m: srd_data without a read");
          if (!srd_data_ready) srd_data_kept <= srd_data.data;
        end
        srd_data_waited <= !srd_data_ready;
      end
      if (srd.valid && srd_ready) srd_open <= 1'b1;
      if (srd_data.valid && srd_data_ready) srd_open <= 1'b0;
    end
    if (rst) {mrd_data_waited, swr_waited, srd_waited, srd_data_waited, srd_open} <= '0;
  end

  logic unused;
  assign unused = &{1'b0, user_cfg, mwr_done};
endmodule
`endif
