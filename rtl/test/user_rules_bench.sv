// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives both sides of the user's port as the rules of user_rules allow, then breaks one of them: +broken=NUMBER (none: 0).
module user_rules_bench;
  logic clk = 1'b0, rst = 1'b1, user_bus_master = 1'b1;
  logic [2:0] mrrs = 3'd2;
  logic
      mrd_valid = 0, mrd_ready = 0, drd_valid = 0, drd_ready = 0, drd_waits = 0, mrd_data_valid = 0, mrd_data_ready = 0;
  logic mwr_valid = 0, mwr_ready = 0, mwr_data_valid = 0, mwr_data_ready = 0, mwr_done_valid = 0;
  logic post_valid = 0, post_two = 0, post_four = 0, post_ready = 0, swr_valid = 0, swr_ready = 0;
  logic srd_valid = 0, srd_ready = 0, srd_data_valid = 0, srd_data_ready = 0;
  logic [63:0] mrd_addr = 1, drd_addr = 512, mwr_addr = 3, post_addr = 4, post_data = 5;
  logic [31:0] mrd_local = 6, drd_local = 7, mrd_data_addr = 32, mrd_data_strobe = '1, swr_addr = 64, swr_strobe = '1;
  logic [31:0] srd_addr = 96;
  logic [23:0] mrd_len = 100, mwr_len = 64;
  logic [9:0] drd_len = 512;
  logic [4:0] mwr_lane = 5'd1;
  logic [1:0] mrd_id = 0, drd_id = 1, mrd_data_id = 0, mwr_id = 0;
  logic [2:0] swr_bar = 2, srd_bar = 0;
  logic [255:0] mrd_data = 8, mwr_data = 9, swr_data = 10, srd_data = 11;
  user_rules #(.STARVED(32)) rules (.*);

  always #1 clk = !clk;

  int broken = 0;
  task automatic steps(input int count);
    repeat (count) @(negedge clk);
  endtask

  // A request of each kind, held for a while: a write of three words, whose last one comes late.
  task automatic allowed;
    {mrd_valid, drd_valid, mwr_valid, post_valid, mrd_data_valid, swr_valid, srd_valid} = '1;
    mwr_data_valid = 1;
    drd_waits = 1;
    mrd_data_strobe = 32'h7fff_fffe;
    steps(3);
    drd_addr = 1024;  // another one in its place
    mrd_data = {8'd77, mrd_data[247:8], 8'd78};  // bytes that do not count
    steps(1);
    drd_waits = 0;
    post_data[63:32] = 99;  // of a single DW
    {mrd_ready, drd_ready, mwr_ready, post_ready, mrd_data_ready, swr_ready, srd_ready} = '1;
    steps(1);
    {mrd_valid, drd_valid, mwr_valid, post_valid, mrd_data_valid, swr_valid, srd_valid} = '0;
    {mrd_ready, drd_ready, mwr_ready, post_ready, mrd_data_ready, swr_ready, srd_ready} = '0;
    mrd_data_strobe = '1;
    {drd_addr, mrd_addr, post_data} = {64'd2048, 64'd77, 64'd78};
    srd_data_valid = 1;
    mwr_data_ready = 1;
    steps(2);
    srd_data_ready = 1;
    mwr_data_valid = 0;
    steps(1);
    {srd_data_valid, srd_data_ready} = '0;
    steps(30);
    mwr_data_valid = 1;
    steps(1);
    {mwr_data_valid, mwr_data_ready} = '0;
    mwr_done_valid = 1;
    steps(1);
    mwr_done_valid = 0;
    // two DWs, four DWs of header, the last that lie within 4 KiB
    {post_valid, post_ready, post_two, post_four, post_addr} = {4'b1111, 64'h1_0000_0ff8};
    // an answer at once
    {srd_valid, srd_ready, srd_data_valid, srd_data_ready} = '1;
    steps(1);
    // dropped at once, and so is one that waited
    {post_two, post_four, post_addr, user_bus_master} = {2'b00, 64'd4, 1'b0};
    steps(1);
    {post_ready, user_bus_master} = 2'b01;
    steps(1);
    {post_ready, user_bus_master} = 2'b10;
    steps(1);
    {post_valid, post_ready, user_bus_master} = 3'b001;
    {srd_valid, srd_ready, srd_data_valid, srd_data_ready} = '0;
    steps(1);
  endtask

  initial begin
    if (!$value$plusargs("broken=%d", broken)) broken = 0;
    steps(3);
    rst = 0;
    allowed();
    allowed();
    {mrd_valid, drd_valid, mwr_valid, post_valid, mrd_data_valid, swr_valid, srd_valid} = 7'h7f & {7{broken < 20}};
    if (broken == 9 || broken == 10) mwr_data_valid = 1;
    post_two = broken == 8;
    steps(1);
    case (broken)
      1: mrd_len = mrd_len + 1;
      2: mrd_valid = 0;
      3: drd_local = 0;
      4: {drd_waits, drd_valid} = 2'b10;
      5: mwr_lane = 0;
      6: mwr_valid = 0;
      7: post_data[0] = !post_data[0];
      8: post_data[32] = !post_data[32];
      9: mwr_data = '1;
      10: mwr_data_valid = 0;
      11: mrd_data[255] = 1;
      14: mrd_data_strobe = 1;
      12: swr_strobe = 1;
      13: srd_bar = 1;
      20: {mrd_valid, mrd_len} = {1'b1, 24'd0};
      21: {drd_valid, drd_len} = {1'b1, 10'd0};
      22: {drd_valid, drd_addr} = {1'b1, 64'd2049};
      23: {mwr_valid, mwr_len} = {1'b1, 24'd0};
      24: {post_valid, post_addr} = {1'b1, 64'h1_0000_0000};
      25: {post_valid, post_four} = 2'b11;
      26: {post_valid, post_two, post_addr} = {2'b11, 64'hffc};
      27: mwr_data_valid = 1;
      28: {mwr_data_valid, mwr_data_ready, mwr_valid} = '1;
      29: {mwr_valid, mwr_ready} = '1;
      30: {mwr_valid, mwr_ready} = '1;
      31: {srd_valid, srd_ready} = '1;
      32: srd_data_valid = 1;
      33: {srd_valid, srd_ready, srd_data_valid} = '1;
      34: {post_valid, user_bus_master} = 2'b10;
      default: ;
    endcase
    steps(1);
    if (broken == 1 || broken == 5 || broken == 9) {mrd_ready, mwr_ready, mwr_data_ready} = '1;
    if (broken == 29) {mwr_valid, mwr_ready, mwr_done_valid} = 3'b001;
    if (broken == 30) {mwr_valid, mwr_ready, mwr_data_ready} = 3'b001;
    if (broken == 33) {srd_valid, srd_ready, srd_data} = '0;
    steps(40);
    $display("no rule was broken");
    $finish;
  end
endmodule
