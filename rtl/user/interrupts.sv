// SPDX-License-Identifier: MIT OR Apache-2.0
// Interrupt status, moderation, MSI-X and the legacy level.
//
// A channel's notice waits until the gap since its last interrupt is over, or until enough of its
// descriptors are done, and then sets its status bit; bit 2 (error) is set at once. Legacy: the
// level stands while a set bit is enabled; software clears bits. MSI-X: a set and enabled bit sends
// its vector (of the same number) and clears itself; a masked one stays, shown in the pending bits.
//
// Interface rules: all inputs but message_taken are pulses or static.
module interrupts (
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,          // all but the mask bits of the vectors
    input  logic [ 1:0] notice,
    input  logic [ 1:0] completed,
    input  logic        failed,
    // registers
    input  logic        write,
    input  logic        at_status,
    input  logic        at_enable,
    input  logic        at_moderation,
    input  logic        at_mask,
    input  logic [ 1:0] mask_vector,
    input  logic [31:0] write_data,
    output logic [ 2:0] status,
    output logic [ 3:0] pending,
    // from configuration space
    input  logic        bus_master,     // without it a message waits: posts would drop it
    input  logic        msix_enable,
    input  logic        msix_mask,
    input  logic        intx_disable,

    output logic       message_valid,
    output logic [1:0] message_vector,
    input  logic       message_taken,
    output logic       level,
    output logic       idle
);
  logic [2:0] enabled, send, raise;
  logic [2:0] masked;
  logic [15:0] gap, burst;
  logic [5:0] prescale;
  logic tick, new_burst;

  assign tick = prescale == '1;
  always_ff @(posedge clk) begin
    prescale <= prescale + 6'd1;
    if (rst) prescale <= '0;
    new_burst <= 1'b0;
    if (write) begin
      if (at_enable) enabled <= write_data[2:0];
      if (at_moderation) begin
        {burst, gap} <= write_data;
        new_burst <= 1'b1;
      end
      for (int v = 0; v < 3; v = v + 1) begin
        if (at_mask && mask_vector == v[1:0]) masked[v] <= write_data[0];
      end
    end
    if (rst) masked <= '1;
    if (rst || clear) begin
      enabled <= '0;
      burst <= '0;
      gap <= '0;
    end
  end

  logic [1:0] waiting, quiet, enough;
  genvar c;
  generate
    for (c = 0; c < 2; c = c + 1) begin : moderation
      logic [15:0] wait_left, count_left;
      assign raise[c] = waiting[c] && (quiet[c] || enough[c]);
      always_ff @(posedge clk) begin
        if (waiting[c] || notice[c]) begin
          quiet[c]  <= wait_left == '0 && !raise[c];
          enough[c] <= burst != '0 && count_left == '0 && !raise[c];
        end else begin
          {quiet[c], enough[c]} <= 'x;
        end
        if (raise[c]) waiting[c] <= 1'b0;
        if (notice[c]) waiting[c] <= 1'b1;
        if (tick) if (wait_left != '0) wait_left <= wait_left - 16'd1;
        if (raise[c]) wait_left <= gap;
        if (completed[c]) if (count_left != '0) count_left <= count_left - 16'd1;
        if (raise[c] || new_burst) count_left <= burst;
        if (rst || clear) begin
          waiting[c] <= 1'b0;
          wait_left  <= '0;
          count_left <= '0;
        end
      end
    end
  endgenerate
  assign raise[2] = failed;

  // A bit set while its message is taken stays set: it is another interrupt.
  always_ff @(posedge clk) begin
    status <= status | raise;
    if (message_taken || write) begin : end_of_some
      logic [2:0] gone;
      gone = (message_taken ? 3'b001 << message_vector : 3'b000) | (write && at_status ? write_data[2:0] : 3'b000);
      status <= (status & ~gone) | raise;
    end
    if (rst || clear) status <= '0;
  end

  assign send = status & enabled & (msix_enable ? 3'b111 : 3'b000);
  assign pending = {1'b0, send & (masked | {3{msix_mask}})};
  assign message_valid = (send & ~pending[2:0]) != '0 && bus_master;
  assign message_vector = send[0] && !pending[0] ? 2'd0 : send[1] && !pending[1] ? 2'd1 : 2'd2;
  assign level = (status & enabled) != '0 && !msix_enable && !intx_disable;
  assign idle = waiting == '0 && !message_valid;
endmodule
