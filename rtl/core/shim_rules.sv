// SPDX-License-Identifier: MIT OR Apache-2.0
// The promises of tlpdma_core to its shim, for simulation: all words of a header are there when it shows, so that no TLP stops in
// the middle for lack of data. A shim then looks only at its own ready. Synthesis does not see this.
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
  // Words of the headers that were taken, less the words that were: below 0 where a shim takes words before their header.
  int owed, shown;
  logic begun;  // before the first reset anything may stand at the ports
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
