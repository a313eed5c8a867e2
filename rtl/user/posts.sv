// SPDX-License-Identifier: MIT OR Apache-2.0
// Small posted writes: write-back records of both channels and MSI-X messages, one at a time.
//
// Addresses (and the messages' data) lie in a small memory: entries 0 to 3 are the MSI-X vectors,
// 4 and 5 the channels' records. The content of a record is taken in the cycle of `record_taken`,
// address and message in the next cycle: later writes to the table apply to later posts. `record_sent`
// pulses a cycle after the write of a record has its place in line: all TLPs sent from then on come
// behind it.
//
// Interface rules: record_valid and message_valid may change until taken; post is held while
// valid && !ready.
module posts (
    input  logic        clk,
    input  logic        rst,
    // table
    input  logic        write,
    input  logic        at_entry,
    input  logic [ 2:0] write_entry,
    input  logic [ 1:0] write_part,      // 0 low address, 1 high address, 2 message data
    input  logic [31:0] write_data,
    // requests; channel 0 in the low part
    input  logic [ 1:0] record_valid,
    input  logic [73:0] record,
    output logic [ 1:0] record_taken,
    output logic [ 1:0] record_sent,
    input  logic        message_valid,
    input  logic [ 1:0] message_vector,
    output logic        message_taken,

    output logic  idle,
    output post_t post,
    input  logic  post_ready
);
  logic [31:0] low_mem[0:7];
  logic [31:0] high_mem[0:7];
  logic [31:0] data_mem[0:3];
  logic four_mem[0:7];  // the high address is not 0, known a cycle after it
  logic high_written, four_written;
  logic [ 2:0] high_entry;
  logic [ 2:0] entry;
  logic [36:0] held;

  always_ff @(posedge clk) begin
    high_written <= 1'b0;
    if (write) begin
      if (at_entry) begin
        case (write_part)
          2'd0: low_mem[write_entry] <= write_data;
          2'd1: begin
            high_mem[write_entry] <= write_data;
            high_written <= 1'b1;
          end
          2'd2: data_mem[write_entry[1:0]] <= write_data;
          default: ;
        endcase
      end
      high_entry   <= write_entry;
      four_written <= write_data != '0;
    end
    if (high_written) four_mem[high_entry] <= four_written;
  end

  logic post_valid, post_two, post_four;
  logic [63:0] post_addr;
  assign post_two = entry[2];
  assign post = {post_valid, post_two, post_four, post_addr, {27'b0, held}};

  // each of the three in turn
  logic [1:0] turn;
  assign record_taken[0] = idle && turn == 2'd0 && record_valid[0];
  assign record_taken[1] = idle && turn == 2'd1 && record_valid[1];
  assign message_taken   = idle && turn == 2'd2 && message_valid;
  always_ff @(posedge clk) begin
    // a post is chosen, its part in memory is read, then it is shown
    if (!idle && !post_valid) begin
      // a record is aligned to its 8 bytes
      post_addr <= {high_mem[entry], low_mem[entry][31:3], low_mem[entry][2] && !post_two, 2'b00};
      post_four <= four_mem[entry];
      if (!post_two) held[31:0] <= data_mem[entry[1:0]];
    end
    post_valid  <= !idle && !(post_valid && post_ready);
    record_sent <= {entry[0], !entry[0]} & {2{post_two && post_valid && post_ready}};
    if (idle) begin
      entry <= turn == 2'd2 ? {1'b0, message_vector} : {2'b10, turn[0]};
      held  <= turn[0] ? record[73:37] : record[36:0];
    end
    idle <= idle ? record_taken == '0 && !message_taken : post_valid && post_ready;
    turn <= turn == 2'd2 ? 2'd0 : turn + 2'd1;
    if (rst) begin
      idle <= 1'b1;
      post_valid <= 1'b0;
      record_sent <= '0;
      turn <= '0;
    end
  end
endmodule
