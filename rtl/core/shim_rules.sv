// SPDX-License-Identifier: MIT OR Apache-2.0
// The promises of tlpdma_core to its shim, for simulation: all words of a header are there when it shows, so that no TLP stops in
// the middle for lack of data. A shim then looks only at its own ready. Synthesis does not see this.
`ifndef SYNTHESIS
module shim_rules (
    input logic         pcie_clk,
    input logic         pcie_reset,
    input logic         tx_hdr_valid,
    input logic [127:0] tx_hdr,
    input logic [  2:0] tx_hdr_lane,
    input logic         tx_hdr_ready,
    input logic         tx_data_valid,
    input logic         tx_data_ready
);
  // Words of the headers that were taken, less the words that were: below 0 where a shim takes words before their header.
  int owed, shown;
  logic begun;  // before the first reset anything may stand at the ports
  initial begun = 1'b0;
  function automatic int words(input logic [9:0] length, input logic [2:0] lane);
    words = ((length == '0 ? 1024 : int'(length)) + int'(lane) + 7) / 8;
  endfunction
  assign shown = tx_hdr_valid && tx_hdr[tlpdma_pkg::TLP_HAS_DATA_BIT] ? words(tx_hdr[105:96], tx_hdr_lane) : 0;
  always @(posedge pcie_clk) begin
    if (begun && (tx_hdr_valid || owed != 0)) begin
      if (owed + shown > 0 && !tx_data_valid && !pcie_reset) $fatal(1, "%m: tx_hdr is shown before its words");
      owed <= owed + (tx_hdr_ready ? shown : 0) - int'(tx_data_valid && tx_data_ready);
    end
    if (pcie_reset) begin
      begun <= 1'b1;
      owed  <= 0;
    end
  end
endmodule
`endif
