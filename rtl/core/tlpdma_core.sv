// SPDX-License-Identifier: MIT OR Apache-2.0
// The tlpdma core: bus mastering between a PCI Express hard IP (TLPs, pcie_clk) and a user design
// with a memory-like port (user_clk).
//
// To the user: master reads (PCIe address, length, local address; data come back with their local
// address in any order), single-TLP reads for descriptors (drd), master writes (PCIe address,
// length, data as they lie in local memory), small posted writes, slave reads and writes. Splitting,
// tags, byte alignment, completion checks and time-outs happen in here. mps and mrrs are the codes
// of the configuration (128 << code bytes); the core uses at most MPS_MAX and MRRS_MAX.
//
// To the shim: headers of 128 bits {DW0..DW3}, payload in 256-bit words whose lane 0 is byte 0; the
// first payload DW of a request is at lane (last header DW)[4:2], of a sent TLP at tx.hdr_lane, of a
// completion at (Lower Address[4:2] + tx.np_lane of its read) mod 8, which the shim also writes to
// rx.cpl_hdr[4:2]. All data words of a sent header are in the data FIFO before the header is shown;
// a received request header is given after (or with) the last of its data words, a completion
// header at any time: its tag is free before its data have come. Room for the data of a completion
// is reserved when the read is issued: 2 MRRS_MAX a tag, as 64 bytes can lie in three words, and the
// two completions in progress that have given back their tags need less than the remaining quarter.
//
// pcie_rst is the only reset; every output of this module is synchronous to the clock stated for it.
module tlpdma_core #(
    parameter int TAGS = 32,  // 32 .. 256, a power of two; more than 32 need cfg.ext_tag
    parameter int MPS_MAX = 512,  // bytes
    parameter int MRRS_MAX = 512,  // bytes
    parameter int CPL_HEADERS = TAGS * MRRS_MAX / 64,  // completions that the hard IP can hold
    parameter int CPL_DATA = TAGS * MRRS_MAX,  // bytes of their data, in pieces of 64; both for two reads or more
    parameter int DROPS = 0,  // 1: without bus mastering the hard IP drops requests, also accepted ones (tx_ready.gone)
    parameter int TX_WORDS = 64  // words queued for transmission at most (latency of slave reads); MPS_MAX / 16 or more
) (
    input  logic pcie_clk,
    input  logic pcie_rst,
    input  logic user_clk,
    output logic user_rst,

    // ---- transmit (pcie_clk): posted requests and completions in order; reads ----
    output tx_t tx,
    input tx_ready_t tx_ready,

    // ---- receive (pcie_clk) ----
    input rx_t rx,
    output rx_ready_t rx_ready,

    // ---- configuration of the hard IP (pcie_clk, quasi static) ----
    input pcie_cfg_t cfg,

    // ---- the same for the user (user_clk; mps and mrrs limited by MPS_MAX, MRRS_MAX) ----
    output user_cfg_t user_cfg,

    // ---- master reads (user_clk): done in the order of the requests, 0 = good ----
    input  mrd_t      mrd,
    output logic      mrd_ready,
    output done_t     mrd_done,
    // reads of one TLP (never across a multiple of MRRS), ahead of the others, done in any order
    input  drd_t      drd,
    input  logic      drd_reserve,    // one tag is for drd with id 2 only
    output logic      drd_ready,
    output logic      drd_waits,      // for a second free tag: another request may take its place
    output done_t     drd_done,
    // data of both
    output mrd_data_t mrd_data,
    input  logic      mrd_data_ready,

    // ---- master writes (user_clk): done when the last TLP is queued (DROPS: has left); error 1: bus master off ----
    input  mwr_t  mwr,
    output logic  mwr_ready,
    input  word_t mwr_data,
    output logic  mwr_data_ready,
    output done_t mwr_done,

    // ---- posted writes of one or two DWs (user_clk) ----
    input  post_t post,
    output logic  post_ready,

    // ---- slave (user_clk) ----
    output swr_t  swr,
    input  logic  swr_ready,
    output srd_t  srd,
    input  logic  srd_ready,
    input  word_t srd_data,
    output logic  srd_data_ready,

    // ---- state (user_clk) ----
    output logic [ 7:0] errors,         // pulses, tlpdma_pkg::E_*
    output logic [ 7:0] tags_in_use,    // 255 stands for 256, too
    input  logic [15:0] timeout_ticks,  // of 256 cycles; 0 = never
    input  logic        drain,          // no new master requests
    output logic        drained,
    output logic        core_idle       // nothing in any FIFO, no tag live
);
  // ---- resets: stretched, so that the slower clock sees it ----
  logic [4:0] reset_left;
  logic pcie_reset;
  always_ff @(posedge pcie_clk) begin
    pcie_reset <= pcie_rst || reset_left != '0;
    if (reset_left != '0) reset_left <= reset_left - 1'b1;
    if (pcie_rst) reset_left <= '1;
  end
  synchronise reset_crossing (
      .clk(user_clk),
      .in (pcie_reset),
      .out(user_rst)
  );

  // ---- configuration ----
  localparam logic [2:0] MPS_TOP = 3'($clog2(MPS_MAX / 128));
  // A header waits for its last word: the queues of words hold more than the largest payload, in any lane.
  localparam int MOST_WORDS = MPS_MAX > 512 ? MPS_MAX / 32 : 16;
  localparam logic [2:0] MRRS_TOP = 3'($clog2(MRRS_MAX / 128));
  logic user_ext_tag, pcie_busy, pcie_busy_seen;
  logic pcie_busy_kept;
  always_ff @(posedge pcie_clk) pcie_busy_kept <= pcie_busy;
  synchronise busy_crossing (
      .clk(user_clk),
      .in (pcie_busy_kept),
      .out(pcie_busy_seen)
  );
  logic [10:0] configuration, configuration_seen;
  logic [2:0] mps_seen, mrrs_seen;
  always_ff @(posedge pcie_clk) begin
    configuration <= {cfg.bus_master, cfg.msix_enable, cfg.msix_mask, cfg.intx_disable, cfg.ext_tag, cfg.mps, cfg.mrrs};
  end
  synchronise #(
      .WIDTH(11)
  ) configuration_crossing (
      .clk(user_clk),
      .in (configuration),
      .out(configuration_seen)
  );
  logic user_bus_master, user_msix_enable, user_msix_mask, user_intx_disable;
  logic [2:0] user_mps, user_mrrs;
  assign {user_bus_master, user_msix_enable, user_msix_mask, user_intx_disable, user_ext_tag, mps_seen, mrrs_seen} =
      configuration_seen;
  always_ff @(posedge user_clk) begin
    user_mps  <= mps_seen < MPS_TOP ? mps_seen : MPS_TOP;
    user_mrrs <= mrrs_seen < MRRS_TOP ? mrrs_seen : MRRS_TOP;
  end
  assign user_cfg = {user_bus_master, user_msix_enable, user_msix_mask, user_intx_disable, user_mps, user_mrrs};

  // ---- master reads ----
  localparam int READ_BLOCKS = MRRS_MAX / 64;
  localparam int CPL_BLOCKS = CPL_HEADERS < CPL_DATA / 64 ? CPL_HEADERS : CPL_DATA / 64;
  generate
    // Two reads: with room for one, `drd_reserve` leaves none for the others. No tool can resolve this module.
    if (CPL_BLOCKS < 2 * READ_BLOCKS) begin : refused
      CPL_HEADERS_and_CPL_DATA_must_have_room_for_two_reads_of_MRRS_MAX refuse ();
    end
  endgenerate
  logic alloc_valid, alloc_next, alloc_room, alloc_spare, alloc_last, alloc_single;
  logic [ 7:0] alloc_tag;
  logic [31:0] alloc_local;
  logic [12:0] alloc_bytes;
  logic [ 6:0] alloc_lower;
  logic [ 1:0] alloc_id;
  logic [ 2:0] alloc_error;
  logic np_valid, np_ready, np_four, read_busy, none_open, timed_out;
  logic [63:2] np_addr;
  logic [ 9:0] np_dws;
  logic [ 7:0] np_be;
  logic [ 2:0] np_lane;
  master_read #(
      .MRRS_MAX(MRRS_MAX)
  ) master_read (
      .clk(user_clk),
      .rst(user_rst),
      .bus_master(user_bus_master),
      .mrrs(user_mrrs),
      .busy(read_busy),
      .reserve(drd_reserve),
      .*
  );

  logic look_ready, look_live, look_poisoned, look_single, upd_valid, upd_poisoned, upd_end, upd_hold;
  logic next_upd, next_fin, fin_valid, fin_single, early_valid, busy_valid;
  logic [7:0] look_tag, upd_tag, early_tag, busy_tag;
  logic [31:0] look_local, upd_local;
  logic [12:0] look_left, upd_left;
  logic [6:0] look_lower, upd_lower;
  logic [1:0] look_id, fin_id;
  logic [8:0] look_place, fin_place;
  logic [2:0] fin_error;
  tags #(
      .TAGS(TAGS),
      .READ_BLOCKS(READ_BLOCKS),
      .CPL_BLOCKS(CPL_BLOCKS)
  ) tags (
      .clk(user_clk),
      .rst(user_rst),
      .ext_tag(user_ext_tag),
      .restart(!user_bus_master),
      .done_valid(mrd_done.valid),
      .done_id(mrd_done.id),
      .done_error(mrd_done.error),
      .single_done_valid(drd_done.valid),
      .single_done_id(drd_done.id),
      .single_done_error(drd_done.error),
      .in_use(tags_in_use),
      .*
  );

  // ---- master writes and posts: requests that may not be sent are dropped ----
  logic tlp_valid, tlp_last, tlp_ready, tlp_four, write_busy, post_sent;
  logic [ 63:2] tlp_addr;
  logic [  9:0] tlp_dws;
  logic [  7:0] tlp_be;
  logic [  2:0] tlp_lane;
  logic [255:0] tlp_data;
  logic posted, queued_valid, queued_error, ends_room, ends_busy, ended_valid, ended_error;
  logic [1:0] queued_id, ended_id;
  master_write #(
      .MPS_MAX(MPS_MAX)
  ) master_write (
      .clk(user_clk),
      .rst(user_rst),
      .bus_master(user_bus_master),
      .mps(user_mps),
      .busy(write_busy),
      .hold(drain || !ends_room),
      .done_valid(queued_valid),
      .done_id(queued_id),
      .done_error(queued_error),
      .*
  );
  generate
    if (DROPS != 0) begin : drops
      write_ends write_ends (
          .clk(user_clk),
          .rst(user_rst),
          .bus_master(user_bus_master),
          .writing(write_busy),
          .room(ends_room),
          .done_valid(ended_valid),
          .done_id(ended_id),
          .done_error(ended_error),
          .busy(ends_busy),
          .pcie_rst(pcie_reset),
          .gone(tx_ready.gone),
          .*
      );
    end else begin : keeps
      assign ends_room = 1'b1;
      assign ends_busy = 1'b0;
      assign ended_valid = queued_valid;
      assign ended_id = queued_id;
      assign ended_error = queued_error;
      logic unused;
      assign unused = &{1'b0, posted, tx_ready.gone};
    end
  endgenerate
  assign mwr_done = {ended_valid, ended_id, ended_error ? tlpdma_pkg::ERR_REFUSED : tlpdma_pkg::ERR_NONE};
  post_t post_admitted;
  assign post_admitted = {post.valid && user_bus_master, post.two, post.four, post.addr, post.data};
  assign post_ready = post_sent || !user_bus_master;

  logic stx_valid, stx_has_data, stx_last, stx_ready, queue_empty, pcie_empty;
  logic [127:0] stx_hdr;
  logic [255:0] stx_data;
  tx_queue #(
      .TAGS(TAGS),
      .TX_WORDS(TX_WORDS > 2 * MOST_WORDS ? TX_WORDS : 2 * MOST_WORDS)
  ) tx_queue (
      .clk(user_clk),
      .rst(user_rst),
      .empty(queue_empty),
      .post(post_admitted),
      .post_ready(post_sent),
      .mwr_valid(tlp_valid),
      .mwr_last(tlp_last),
      .mwr_four(tlp_four),
      .mwr_addr(tlp_addr),
      .mwr_dws(tlp_dws),
      .mwr_be(tlp_be),
      .mwr_lane(tlp_lane),
      .mwr_data(tlp_data),
      .mwr_ready(tlp_ready),
      .np_tag(alloc_tag),
      .pcie_rst(pcie_reset),
      .cfg_id(cfg.id),
      .*
  );

  // ---- completions. Only the header fields in use cross: whether the requester ID is ours, not the IDs ----
  localparam int CPL_WORDS = TAGS * MRRS_MAX / 16;
  logic cpl_valid, cpl_ready, cpl_data_valid, cpl_data_ready, cpl_ours;
  logic [127:0] cpl_hdr;
  logic [255:0] cpl_data;
  logic [7:0] cpl_fmt_type, cpl_tag;
  logic [2:0] cpl_status, cpl_lane;
  logic [9:0] cpl_length;
  logic [11:0] cpl_byte_count;
  logic [6:0] cpl_lower;
  logic cpl_poisoned;
  logic cpl_waiting, cpl_words;
  // Open reads can bring CPL_BLOCKS completions, far more than these 64 headers. None is lost: a full queue holds back
  // the shim, and the shim the hard IP, in which `tags` has reserved room for all of them. Nor can that last: a
  // completion leaves in the larger of four cycles and its words regardless of other traffic, as its path needs no
  // request to be taken and no TLP to be sent; only the user's memory can hold it back.
  async_fifo #(
      .WIDTH(53),
      .DEPTH(64)
  ) completion_headers (
      .wr_clk(pcie_clk),
      .wr_rst(pcie_reset),
      .wr_valid(rx.cpl_valid),
      .wr_ready(rx_ready.cpl),
      .wr_data({
        rx.cpl_hdr[127:120],
        rx.cpl_hdr[110],
        rx.cpl_hdr[105:96],
        rx.cpl_hdr[79:77],
        rx.cpl_hdr[75:64],
        rx.cpl_hdr[63:48] == cfg.id,
        rx.cpl_hdr[47:40],
        rx.cpl_hdr[38:32],
        rx.cpl_hdr[4:2]
      }),
      .wr_some(cpl_waiting),
      .rd_clk(user_clk),
      .rd_rst(user_rst),
      .rd_valid(cpl_valid),
      .rd_ready(cpl_ready),
      .rd_data({
        cpl_fmt_type, cpl_poisoned, cpl_length, cpl_status, cpl_byte_count, cpl_ours, cpl_tag, cpl_lower, cpl_lane
      })
  );
  // the completion block compares with an ID of 0
  assign cpl_hdr = !cpl_valid ? 'x : {
    cpl_fmt_type, 9'd0, cpl_poisoned, 4'd0, cpl_length,
    16'd0, cpl_status, 1'b0, cpl_byte_count,
    15'd0, !cpl_ours, cpl_tag, 1'b0, cpl_lower,
    27'd0, cpl_lane, 2'd0
  };
  async_fifo #(
      .WIDTH(256),
      .DEPTH(CPL_WORDS),
      .BLOCK(1)
  ) completion_data (
      .wr_clk  (pcie_clk),
      .wr_rst  (pcie_reset),
      .wr_valid(rx.cpl_data_valid),
      .wr_ready(rx_ready.cpl_data),
      .wr_data (rx.cpl_data),
      .wr_some (cpl_words),
      .rd_clk  (user_clk),
      .rd_rst  (user_rst),
      .rd_valid(cpl_data_valid),
      .rd_ready(cpl_data_ready),
      .rd_data (cpl_data)
  );
  logic [5:0] completion_errors;
  completion completion (
      .clk(user_clk),
      .rst(user_rst),
      .cfg_id(16'd0),
      .errors(completion_errors),
      .*
  );

  // ---- requests to the core; of their headers, too, only the fields in use cross ----
  logic req_valid, req_ready, req_data_valid, req_data_ready, np_room, slave_busy;
  logic [127:0] req_hdr;
  logic [  7:0] req_fmt_type;
  logic [2:0] req_tc, req_attr;
  logic req_poisoned;
  logic [9:0] req_length;
  logic [31:0] req_dw1;
  logic [31:0] req_low;  // lower half of the address: the part within a BAR
  logic [2:0] req_bar;
  logic rx_write, rx_answer, req_write, req_answer;  // the kind of the request, known before it crosses
  assign rx_write  = rx.req_hdr[tlpdma_pkg::TLP_HAS_DATA_BIT] && rx.req_hdr[124:120] == 5'b00000;
  assign rx_answer = !rx_write && rx.req_hdr[124:123] != 2'b10;  // a message needs no completion
  logic [255:0] req_data;
  logic req_waiting, req_words;
  async_fifo #(
      .WIDTH(94),
      .DEPTH(16),
      .SYNC (3)
  ) request_headers (
      .wr_clk(pcie_clk),
      .wr_rst(pcie_reset),
      .wr_valid(rx.req_valid),
      .wr_ready(rx_ready.req),
      .wr_data({
        rx.req_hdr[127:120],
        rx.req_hdr[118:116],
        rx.req_hdr[114],
        rx.req_hdr[110:108],
        rx.req_hdr[105:64],
        rx.req_hdr[125] ? rx.req_hdr[31:0] : rx.req_hdr[63:32],
        rx.req_bar,
        rx_write,
        rx_answer
      }),
      .wr_some(req_waiting),
      .rd_clk(user_clk),
      .rd_rst(user_rst),
      .rd_valid(req_valid),
      .rd_ready(req_ready),
      .rd_data({
        req_fmt_type,
        req_tc,
        req_attr[2],
        req_poisoned,
        req_attr[1:0],
        req_length,
        req_dw1,
        req_low,
        req_bar,
        req_write,
        req_answer
      })
  );
  assign req_hdr = !req_valid ? 'x : {
    req_fmt_type, 1'b0, req_tc, 1'b0, req_attr[2], 3'd0, req_poisoned, req_attr[1:0], 2'd0, req_length,
    req_dw1, req_low, req_low
  };
  async_fifo #(
      .WIDTH(256),
      .DEPTH(2 * MOST_WORDS)
  ) request_data (
      .wr_clk  (pcie_clk),
      .wr_rst  (pcie_reset),
      .wr_valid(rx.req_data_valid),
      .wr_ready(rx_ready.req_data),
      .wr_data (rx.req_data),
      .wr_some (req_words),
      .rd_clk  (user_clk),
      .rd_rst  (user_rst),
      .rd_valid(req_data_valid),
      .rd_ready(req_data_ready),
      .rd_data (req_data)
  );
  logic np_room_kept;
  always_ff @(posedge user_clk) np_room_kept <= np_room;
  synchronise room_crossing (
      .clk(pcie_clk),
      .in (np_room_kept),
      .out(rx_ready.np)
  );
  logic [1:0] slave_errors;
  slave slave (
      .clk(user_clk),
      .rst(user_rst),
      .busy(slave_busy),
      .errors(slave_errors),
      .*
  );

  // ---- state ----
  assign errors = {slave_errors, completion_errors[5], timed_out, completion_errors[3:0]};
  assign drained = !read_busy && !write_busy && none_open && !alloc_valid && queue_empty && !ends_busy;
  assign pcie_busy = !pcie_empty || cpl_waiting || req_waiting;
  assign core_idle = !read_busy && !write_busy && none_open && queue_empty && !ends_busy && !pcie_busy_seen &&
                     !cpl_valid && !req_valid && !slave_busy && !early_valid && !busy_valid &&
                     !mrd.valid && !drd.valid && !mwr.valid && !post.valid;

`ifndef SYNTHESIS
  shim_rules shim_rules (
      .hdr_valid(tx.hdr_valid),
      .hdr(tx.hdr),
      .hdr_lane(tx.hdr_lane),
      .hdr_ready(tx_ready.hdr),
      .data_valid(tx.data_valid),
      .data_ready(tx_ready.data),
      .*
  );
  user_rules user_rules (
      .clk(user_clk),
      .rst(user_rst),
      .*
  );
`endif

  logic unused;
  assign unused = &{1'b0, completion_errors[4], cpl_words, req_words, cfg, tx_ready, rx};
endmodule
