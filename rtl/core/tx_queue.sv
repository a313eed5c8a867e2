// SPDX-License-Identifier: MIT OR Apache-2.0
// The transmit path into the PCIe clock: whole TLPs of slave completions, small posted writes and master
// writes in one line, in this priority between TLPs; and the headers of reads in a queue of their own.
//
// A read carries the number of TLPs complete before it; at the far end it waits until as many have left
// the line, and then in a queue with a place for every tag. So it is held back by the TLPs before it,
// and holds back none.
//
// stx_*  completions as 128-bit headers, held for all beats; a beat is a word, or just the header
// mwr_*  see master_write: the header's fields stand with the first beat
// Bounds: a completion waits for the TLP in progress and at most TX_WORDS words and HEADERS headers
// ahead of it.
module tx_queue #(
    parameter int TAGS = 32,
    parameter int TX_WORDS = 64,  // of the 512 that the data FIFO could hold
    parameter int HEADERS = 32
) (
    input  logic          clk,
    input  logic          rst,
    output logic          posted,        // pulse: a posted TLP was put in the line
    output logic          empty,         // all headers have left for the PCIe clock's side
    input  logic          stx_valid,
    input  logic  [127:0] stx_hdr,
    input  logic  [255:0] stx_data,
    input  logic          stx_has_data,
    input  logic          stx_last,
    output logic          stx_ready,
    input  post_t         post,
    output logic          post_ready,
    input  logic          mwr_valid,
    input  logic          mwr_last,
    input  logic          mwr_four,
    input  logic  [ 63:2] mwr_addr,
    input  logic  [  9:0] mwr_dws,
    input  logic  [  7:0] mwr_be,
    input  logic  [  2:0] mwr_lane,
    input  logic  [255:0] mwr_data,
    output logic          mwr_ready,
    input  logic          np_valid,
    input  logic          np_four,
    input  logic  [ 63:2] np_addr,
    input  logic  [  9:0] np_dws,
    input  logic  [  7:0] np_be,
    input  logic  [  7:0] np_tag,
    input  logic  [  2:0] np_lane,
    output logic          np_ready,

    input  logic             pcie_clk,
    input  logic             pcie_rst,
    input  logic      [15:0] cfg_id,
    output logic             pcie_empty,  // (pcie_clk) no header waits here
    output tx_t              tx,
    input  tx_ready_t        tx_ready
);
  // A header without its constant bits:
  //   [99:97] lane of the first DW
  //   [96] completion  [95] with data  [94:92] TC  [91:90] Attr  [89:80] Length
  //   [79:64] tag and byte enables, or status, a bit for a locked read, and byte count
  //   [63:0] address, or the third DW of a completion
  localparam int SHORT = 100;

  // The header as sent, of three or four DWs, from a short one without lane; `id` is our requester or completer ID
  function automatic logic [127:0] whole(input logic four, input logic [96:0] h, input logic [15:0] id);
    whole = {
      1'b0,
      h[95],
      four,
      h[96] ? {4'b0101, h[76]} : 5'b00000,
      1'b0,
      h[94:92],
      6'd0,
      h[91:90],
      2'd0,
      h[89:80],
      id,
      h[79:77],
      h[76] && !h[96],
      h[75:0]
    };
  endfunction

  // ---- arbitration; changes between TLPs only ----
  logic stx_turn, post_turn, mwr_turn;  // one of them is set
  logic midway, valid, last, has_data, room, data_room, line_room, word, ending, pushed, waiting;
  logic [SHORT-1:0] ready_hdr;
  logic ready_four;
  logic [255:0] data;
  logic [SHORT-1:0] stx_short, post_short, mwr_short;
  logic [255:0] post_word;
  logic post_valid;
  assign post_valid = post.valid;
  assign stx_short = {
    stx_has_data ? stx_hdr[36:34] : 3'd0,
    1'b1,
    stx_has_data,
    stx_hdr[118:116],
    stx_hdr[109:108],
    stx_hdr[105:96],
    stx_hdr[79:77],
    stx_hdr[120],
    stx_hdr[75:64],
    32'd0,
    stx_hdr[63:32]
  };
  assign post_short = {
    3'd0, 7'b0100000, 8'd0, post.two, !post.two, 8'd0, post.two ? 8'hff : 8'h0f, post.addr[63:2], 2'd0
  };
  assign mwr_short = {mwr_lane, 7'b0100000, mwr_dws, 8'd0, mwr_be, mwr_addr, 2'd0};
  assign post_word = {mwr_data[255:64], post.data};
  always_comb begin
    if (stx_turn) begin
      valid = stx_valid;
      last = stx_last;
      has_data = stx_has_data;
      data = stx_data;
    end else if (post_turn) begin
      valid = post_valid;
      last = 1'b1;
      has_data = 1'b1;
      data = post_word;
    end else begin
      valid = mwr_valid;
      last = mwr_last;
      has_data = 1'b1;
      data = mwr_data;
    end
  end
  // a TLP begins when the header before it has its place in the line, or gets it now
  assign room = data_room && (midway || !waiting || line_room);
  assign word = valid && room;
  assign ending = word && last;
  assign stx_ready = stx_turn && room;
  assign post_ready = post_turn && room;
  assign mwr_ready = mwr_turn && room;

  always_ff @(posedge clk) begin
    if (word && !midway) begin
      if (stx_turn) ready_hdr <= stx_short;
      else if (post_turn) ready_hdr <= post_short;
      else ready_hdr <= mwr_short;
      ready_four <= mwr_turn ? mwr_four : post_turn && post.four;
    end
    posted <= ending && !stx_turn && !rst;
    if (ending || (!midway && !word)) begin
      {stx_turn, post_turn, mwr_turn} <= '0;
      if (stx_valid && !(ending && stx_turn)) stx_turn <= 1'b1;
      else if (post_valid && !(ending && post_turn)) post_turn <= 1'b1;
      else mwr_turn <= 1'b1;
    end
    if (word) midway <= !last;
    if (pushed) waiting <= 1'b0;
    if (ending) waiting <= 1'b1;
    if (rst) begin
      midway <= 1'b0;
      waiting <= 1'b0;
      {stx_turn, post_turn, mwr_turn} <= 3'b001;
    end
  end

  // ---- the line of headers ----
  logic line_some, line_valid;
  logic [SHORT:0] line_in, line_out;
  assign pushed = waiting && line_room;
  // the address in its place: one DW if the upper DW is 0 (the fourth DW is unused then)
  assign line_in = {
    ready_four, ready_hdr[SHORT-1:64], ready_four ? ready_hdr[63:32] : ready_hdr[31:0], ready_hdr[31:0]
  };
  async_fifo #(
      .WIDTH(SHORT + 1),
      .DEPTH(HEADERS),
      .SYNC (4)           // data FIFO: 2, and 2 registers
  ) line (
      .wr_clk  (clk),
      .wr_rst  (rst),
      .wr_valid(waiting),
      .wr_ready(line_room),
      .wr_data (line_in),
      .wr_some (line_some),
      .rd_clk  (pcie_clk),
      .rd_rst  (pcie_rst),
      .rd_valid(line_valid),
      .rd_ready(tx_ready.hdr),
      .rd_data (line_out)
  );

  // ---- reads: {four, lane, Length, tag, byte enables, address}, and the number of TLPs complete before ----
  // The count has room for all TLPs that can be in the line before a read (HEADERS and a few registers)
  // and for the TLPs that can leave it, one a cycle, while a read is behind other reads here.
  localparam int CW = $clog2(HEADERS) + 2, READ = 94, READS = 16;
  logic [CW-1:0] complete, earlier;
  logic come_valid, come_ready, come_some, ended;
  logic [READ-1:0] read_in, come, read_hdr;
  assign read_in = {
    np_four, np_lane, np_dws, np_tag, np_be, np_four ? np_addr[63:32] : {np_addr[31:2], 2'd0}, np_addr[31:2], 2'd0
  };
  always_ff @(posedge clk) begin
    complete <= complete + CW'(ended);
    if (rst) complete <= '0;
    ended <= ending && !rst;  // no requester that waits for a write can request a read so soon
  end
  async_fifo #(
      .WIDTH (CW + READ),
      .DEPTH (READS),
      .DIRECT(1)
  ) coming (
      .wr_clk  (clk),
      .wr_rst  (rst),
      .wr_valid(np_valid),
      .wr_ready(np_ready),
      .wr_data ({complete, read_in}),
      .wr_some (come_some),
      .rd_clk  (pcie_clk),
      .rd_rst  (pcie_rst),
      .rd_valid(come_valid),
      .rd_ready(come_ready),
      .rd_data ({earlier, come})
  );
  assign empty = !line_some && !come_some && !waiting && !midway;

  logic data_some;
  async_fifo #(
      .WIDTH(256),
      .DEPTH(512),
      .LIMIT(TX_WORDS),
      .BLOCK(1)
  ) words (
      .wr_clk  (clk),
      .wr_rst  (rst),
      .wr_valid(word && has_data),
      .wr_ready(data_room),
      .wr_data (data),
      .wr_some (data_some),
      .rd_clk  (pcie_clk),
      .rd_rst  (pcie_rst),
      .rd_valid(tx.data_valid),
      .rd_ready(tx_ready.data),
      .rd_data (tx.data)
  );

  // ---- PCIe side ----
  logic [15:0] our_id;
  always_ff @(posedge pcie_clk) our_id <= cfg_id;
  assign tx.hdr_valid = line_valid;
  assign tx.hdr_lane = line_out[99:97];
  // only when there is a header: a simulator need not evaluate it in the other cycles
  assign tx.hdr = line_valid ? whole(line_out[100], line_out[96:0], our_id) : 'x;
  assign tx.np_hdr = tx.np_valid ? whole(read_hdr[93], {7'd0, read_hdr[89:0]}, our_id) : 'x;
  assign tx.np_lane = read_hdr[92:90];
  assign pcie_empty = !line_valid && !come_valid && !tx.np_valid;

  // A line that stays empty while a read waits has no TLP left from before the read: should a read ever
  // wait here for so long that the counts become ambiguous, it does not wait for ever.
  logic read_room, may_pass, leaves;
  logic [3:0] quiet;
  logic [CW-1:0] left, ahead;  // TLPs that have left the line, in all and after the read
  logic [$clog2(TAGS):0] read_count;
  assign ahead = left - earlier;
  assign may_pass = !ahead[CW-1] || &quiet;
  assign come_ready = may_pass && read_room;
  always_ff @(posedge pcie_clk) begin
    left <= left + CW'(leaves);
    if (pcie_rst) left <= '0;
    leaves <= tx.hdr_valid && tx_ready.hdr && !pcie_rst;
    if (!(&quiet)) quiet <= quiet + 1'b1;
    if (line_valid || !come_valid || come_ready) quiet <= '0;
  end
  sync_fifo #(
      .WIDTH(READ),
      .DEPTH(TAGS),
      .BLOCK(TAGS > 64 ? 1 : 0),
      .EAGER(1)
  ) reads (
      .clk(pcie_clk),
      .rst(pcie_rst),
      .wr_valid(come_valid && may_pass),
      .wr_ready(read_room),
      .wr_data(come),
      .rd_valid(tx.np_valid),
      .rd_ready(tx_ready.np),
      .rd_data(read_hdr),
      .count(read_count)
  );

  // unused: the fields of a completion's header that are not kept, and these counts
  logic unused;
  assign unused = &{1'b0, stx_hdr, post, tx_ready, data_some, read_count};
endmodule
