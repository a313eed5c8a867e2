// SPDX-License-Identifier: MIT OR Apache-2.0
// Master writes end when their last TLP has left the hard IP: a hard IP that drops requests without bus mastering,
// including requests accepted before, loses writes that are queued already. Until then the end of a write waits here;
// if bus mastering was off meanwhile, the write ends with an error, whether its TLPs were dropped or had left.
//
// Posted TLPs are counted on both sides: `posted` when a TLP is put in line (clk), `gone` when a TLP has left the hard
// IP or was dropped (pcie_clk). The count crosses as Gray code, later than `bus_master` does.
module write_ends #(
    parameter int DEPTH = 64  // waiting writes, a power of two; `room` keeps four places for the writes in master_write
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       bus_master,
    input  logic       writing,       // part of a write may be in line, but not its end
    input  logic       posted,        // pulse, with queued_valid or before it
    input  logic       queued_valid,  // pulse: the last TLP of a write is in line
    input  logic [1:0] queued_id,
    input  logic       queued_error,
    output logic       room,          // for another write
    output logic       done_valid,
    output logic [1:0] done_id,
    output logic       done_error,
    output logic       busy,

    input logic pcie_clk,
    input logic pcie_rst,
    input logic gone       // pulse
);
  // More than twice the largest difference of the two counts: 33 headers in line, and 128 in the shim and the hard IP.
  localparam int CW = 9;

  // ---- PCIe side ----
  logic [CW-1:0] left, left_gray, gray_seen, left_seen;
  always_ff @(posedge pcie_clk) begin
    left_gray <= left ^ (left >> 1);
    left <= left + CW'(gone);
    if (pcie_rst) begin
      left_gray <= '0;
      left <= '0;
    end
  end
  synchronise #(
      .WIDTH(CW)
  ) gone_crossing (
      .clk(clk),
      .in (left_gray),
      .out(gray_seen)
  );
  function automatic logic [CW-1:0] binary(input logic [CW-1:0] gray);
    binary = gray;
    for (int s = 1; s < CW; s = 2 * s) binary = binary ^ (binary >> s);
  endfunction

  // ---- user's side ----
  logic [CW-1:0] issued, now_issued, behind, head_count;
  logic head_valid, head_error, waits, pop, broken, wr_room;
  logic [1:0] head_id;
  logic [$clog2(DEPTH):0] count, doubtful;
  assign now_issued = issued + CW'(posted);
  assign behind = left_seen - head_count;
  assign waits = behind[CW-1];
  assign pop = head_valid && !waits;
  assign busy = head_valid || queued_valid || done_valid;
  sync_fifo #(
      .WIDTH(CW + 3),
      .DEPTH(DEPTH)
  ) ends (
      .clk,
      .rst,
      .wr_valid(queued_valid),
      .wr_ready(wr_room),
      .wr_data({queued_id, queued_error || broken || !bus_master, now_issued}),
      .rd_valid(head_valid),
      .rd_ready(pop),
      .rd_data({head_id, head_error, head_count}),
      .count(count)
  );
  always_ff @(posedge clk) begin
    room <= count < ($clog2(DEPTH) + 1)'(DEPTH - 4);
    done_valid <= pop;
    done_id <= head_id;
    done_error <= head_error || doubtful != '0 || !bus_master;
    // All writes that waited when bus mastering was last off.
    if (pop && doubtful != '0) doubtful <= doubtful - 1'b1;
    if (!bus_master) doubtful <= count + ($clog2(DEPTH) + 1)'(queued_valid) - ($clog2(DEPTH) + 1)'(pop);
    broken <= (writing && !bus_master) || (broken && !queued_valid);
    issued <= now_issued;
    left_seen <= binary(gray_seen);
    if (rst) begin
      room <= 1'b0;
      done_valid <= 1'b0;
      doubtful <= '0;
      broken <= 1'b0;
      issued <= '0;
      left_seen <= '0;
    end
  end

  logic unused;
  assign unused = &{1'b0, behind[CW-2:0], wr_room};
endmodule
