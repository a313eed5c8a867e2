// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives both sides of the user's port as user_rules allows, then breaks one of its rules: +broken=NUMBER (none: 0).
module user_rules_bench;
  logic clk = 1'b0, rst = 1'b1;
  user_cfg_t user_cfg;
  mrd_t mrd;
  drd_t drd;
  mrd_data_t mrd_data;
  mwr_t mwr;
  word_t mwr_data, srd_data;
  done_t mwr_done;
  post_t post;
  swr_t  swr;
  srd_t  srd;
  logic mrd_ready, drd_ready, drd_waits, mrd_data_ready, mwr_ready, mwr_data_ready, post_ready;
  logic swr_ready, srd_ready, srd_data_ready;
  user_rules #(.STARVED(32)) rules (.*);

  always #1 clk = !clk;

  int broken = 0;
  task automatic steps(input int count);
    repeat (count) @(negedge clk);
  endtask

  // A request of each kind, held for a while: a write of three words, the last of which comes late.
  task automatic allowed;
    {mrd.valid, drd.valid, mwr.valid, post.valid, mrd_data.valid, swr.valid, srd.valid} = '1;
    mwr_data.valid = 1;
    drd_waits = 1;
    mrd_data.strobe = 32'h7fff_fffe;
    steps(3);
    drd.addr = 1024;  // another request in its place
    mrd_data.data = {8'd77, mrd_data.data[247:8], 8'd78};  // bytes without a strobe
    steps(1);
    drd_waits = 0;
    post.data[63:32] = 99;  // of a single DW
    {mrd_ready, drd_ready, mwr_ready, post_ready, mrd_data_ready, swr_ready, srd_ready} = '1;
    steps(1);
    {mrd.valid, drd.valid, mwr.valid, post.valid, mrd_data.valid, swr.valid, srd.valid} = '0;
    {mrd_ready, drd_ready, mwr_ready, post_ready, mrd_data_ready, swr_ready, srd_ready} = '0;
    mrd_data.strobe = '1;
    {drd.addr, mrd.addr, post.data} = {64'd2048, 64'd77, 64'd78};
    srd_data.valid = 1;
    mwr_data_ready = 1;
    steps(2);
    srd_data_ready = 1;
    mwr_data.valid = 0;
    steps(1);
    {srd_data.valid, srd_data_ready} = '0;
    steps(30);
    mwr_data.valid = 1;
    steps(1);
    {mwr_data.valid, mwr_data_ready} = '0;
    mwr_done.valid = 1;
    steps(1);
    mwr_done.valid = 0;
    // two DWs of data, four DWs of header, the last place within 4 KiB
    {post.valid, post_ready, post.two, post.four, post.addr} = {4'b1111, 64'h1_0000_0ff8};
    // an answer at once
    {srd.valid, srd_ready, srd_data.valid, srd_data_ready} = '1;
    steps(1);
    // dropped at once, and so is a post that waited
    {post.two, post.four, post.addr, user_cfg.bus_master} = {2'b00, 64'd4, 1'b0};
    steps(1);
    {post_ready, user_cfg.bus_master} = 2'b01;
    steps(1);
    {post_ready, user_cfg.bus_master} = 2'b10;
    steps(1);
    {post.valid, post_ready, user_cfg.bus_master} = 3'b001;
    {srd.valid, srd_ready, srd_data.valid, srd_data_ready} = '0;
    steps(1);
  endtask

  initial begin
    {user_cfg, mrd, drd, mrd_data, mwr, mwr_data, srd_data, mwr_done, post, swr, srd} = '0;
    {mrd_ready, drd_ready, drd_waits, mrd_data_ready, mwr_ready, mwr_data_ready, post_ready} = '0;
    {swr_ready, srd_ready, srd_data_ready} = '0;
    {user_cfg.bus_master, user_cfg.mrrs} = {1'b1, 3'd2};
    {mrd.addr, mrd.place, mrd.len} = {64'd1, 32'd6, 24'd100};
    {drd.addr, drd.place, drd.len, drd.id} = {64'd512, 32'd7, 10'd512, 2'd1};
    {mrd_data.addr, mrd_data.strobe, mrd_data.data} = {32'd32, 32'hffff_ffff, 256'd8};
    {mwr.addr, mwr.len, mwr.lane} = {64'd3, 24'd64, 5'd1};
    {post.addr, post.data} = {64'd4, 64'd5};
    {swr.addr, swr.strobe, swr.bar, swr.data} = {32'd64, 32'hffff_ffff, 3'd2, 256'd10};
    {mwr_data.data, srd.addr, srd_data.data} = {256'd9, 32'd96, 256'd11};
    if (!$value$plusargs("broken=%d", broken)) broken = 0;
    steps(3);
    rst = 0;
    allowed();
    allowed();
    {mrd.valid, drd.valid, mwr.valid, post.valid, mrd_data.valid, swr.valid, srd.valid} = 7'h7f & {7{broken < 20}};
    if (broken == 9 || broken == 10) mwr_data.valid = 1;
    post.two = broken == 8;
    steps(1);
    case (broken)
      1: mrd.len = mrd.len + 1;
      2: mrd.valid = 0;
      3: drd.place = 0;
      4: {drd_waits, drd.valid} = 2'b10;
      5: mwr.lane = 0;
      6: mwr.valid = 0;
      7: post.data[0] = !post.data[0];
      8: post.data[32] = !post.data[32];
      9: mwr_data.data = '1;
      10: mwr_data.valid = 0;
      11: mrd_data.data[255] = 1;
      14: mrd_data.strobe = 1;
      12: swr.strobe = 1;
      13: srd.bar = 1;
      20: {mrd.valid, mrd.len} = {1'b1, 24'd0};
      21: {drd.valid, drd.len} = {1'b1, 10'd0};
      22: {drd.valid, drd.addr} = {1'b1, 64'd2049};
      23: {mwr.valid, mwr.len} = {1'b1, 24'd0};
      24: {post.valid, post.addr} = {1'b1, 64'h1_0000_0000};
      25: {post.valid, post.four} = 2'b11;
      26: {post.valid, post.two, post.addr} = {2'b11, 64'hffc};
      27: mwr_data.valid = 1;
      28: {mwr_data.valid, mwr_data_ready, mwr.valid} = '1;
      29: {mwr.valid, mwr_ready} = '1;
      30: {mwr.valid, mwr_ready} = '1;
      31: {srd.valid, srd_ready} = '1;
      32: srd_data.valid = 1;
      33: {srd.valid, srd_ready, srd_data.valid} = '1;
      34: {post.valid, user_cfg.bus_master} = 2'b10;
      default: ;
    endcase
    steps(1);
    if (broken == 1 || broken == 5 || broken == 9) {mrd_ready, mwr_ready, mwr_data_ready} = '1;
    if (broken == 29) {mwr.valid, mwr_ready, mwr_done.valid} = 3'b001;
    if (broken == 30) {mwr.valid, mwr_ready, mwr_data_ready} = 3'b001;
    if (broken == 33) {srd.valid, srd_ready, srd_data.data} = '0;
    steps(40);
    $display("no rule was broken");
    $finish;
  end
endmodule
