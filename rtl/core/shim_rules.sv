// SPDX-License-Identifier: MIT OR Apache-2.0
// The rules that tlpdma_core keeps towards its shim, for simulation: all words of a header are there when it is shown,
// so that no TLP stops in the middle for lack of data. A shim then checks only its own ready. Not for synthesis.
`ifndef SYNTHESIS
module shim_rules (
    input logic         pcie_clk,
    input logic         pcie_reset,
    input logic         hdr_valid,
    input logic [127:0] hdr,
    input logic [  2:0] hdr_lane,
    input logic         hdr_ready,
    input logic         data_valid,
    input logic         data_ready
);
  // Words of the headers taken, less the words taken: below 0 where a shim takes words before their header.
  int owed, shown;
  logic begun;  // before the first reset the ports may have any value
  initial begun = 1'b0;
  function automatic int words(input logic [9:0] length, input logic [2:0] lane);
    words = ((length == '0 ? 1024 : int'(length)) + int'(lane) + 7) / 8;
  endfunction
  assign shown = hdr_valid && hdr[tlpdma_pkg::TLP_HAS_DATA_BIT] ? words(hdr[105:96], hdr_lane) : 0;
  always @(posedge pcie_clk) begin
    if (begun && (hdr_valid || owed != 0)) begin
      if (owed + shown > 0 && !data_valid && !pcie_reset) $fatal(1, "%m: tx.hdr is shown before its words");
      owed <= owed + (hdr_ready ? shown : 0) - int'(data_valid && data_ready);
    end
    if (pcie_reset) begin
      begun <= 1'b1;
      owed  <= 0;
    end
  end
endmodule
`endif
