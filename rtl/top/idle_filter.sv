// SPDX-License-Identifier: MIT OR Apache-2.0
// Tells a simulator when time may be skipped. `outer_idle` (clk): nothing is in the shim; `inner_idle` (another
// clock): nothing is behind the crossing. A TLP in the crossing is seen by neither for some cycles, so both must
// have held for HOLD cycles of clk: more than the inner clock needs to see a TLP that has crossed.
module idle_filter #(
    parameter int HOLD = 64
) (
    input  logic clk,
    input  logic rst,
    input  logic outer_idle,
    input  logic inner_idle,
    output logic idle
);
  localparam int CW = $clog2(HOLD);
  logic          inner_seen;
  logic [CW-1:0] quiet;

  synchronise crossing (
      .clk(clk),
      .in (inner_idle),
      .out(inner_seen)
  );

  always_ff @(posedge clk) begin
    if (!idle) quiet <= quiet + 1'b1;
    if (rst || !outer_idle || !inner_seen) quiet <= '0;
  end

  assign idle = &quiet;
endmodule
