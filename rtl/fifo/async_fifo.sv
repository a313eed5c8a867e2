// SPDX-License-Identifier: MIT OR Apache-2.0
// A FIFO between two clocks, show-ahead on the read side, with an output register.
//
// Pointers cross as Gray code through the two flip-flops of `synchronise`, and SYNC - 2 more towards the reader. A
// word is shown SYNC + 1 of the reader's cycles after it was written (SYNC + 2 with BLOCK), so a FIFO of headers
// whose data lie in another FIFO needs a larger SYNC than the data FIFO.
//
// DIRECT shows words straight from the memory (no block RAM): a cycle sooner, but later in the cycle.
//
// Rules: valid/ready at both ends; data are held while valid && !ready; DEPTH a power of two.
// Both resets must be active at once for a few cycles of the slower clock, so that the pointers' zeros have
// crossed; no word is taken while the writer's reset is active.
// BLOCK = 1 reads through the memory's own register, too (block RAM). The address of the memory is
// a register, and the reader's ready decides only whether the registers advance, so that it may
// come late in the cycle.
// LIMIT < DEPTH takes that many words only (a shorter queue in a memory that is there anyway).
module async_fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 16,
    parameter int LIMIT = DEPTH,
    parameter int BLOCK = 0,
    parameter int DIRECT = 0,
    parameter int SYNC = 2,
    localparam int AW = $clog2(DEPTH)
) (
    input  logic             wr_clk,
    input  logic             wr_rst,
    input  logic             wr_valid,
    output logic             wr_ready,
    input  logic [WIDTH-1:0] wr_data,
    output logic             wr_some,   // there are words as the writer sees it (too long, never too short)

    input  logic             rd_clk,
    input  logic             rd_rst,
    output logic             rd_valid,
    input  logic             rd_ready,
    output logic [WIDTH-1:0] rd_data
);
  // In a small memory one bit is kept inverted, so that synthesis does not merge the memory and the
  // output register into a block RAM, whose outputs come late in the cycle.
  localparam logic [WIDTH-1:0] INVERTED = WIDTH'(BLOCK == 0 && DIRECT == 0);
  logic [WIDTH-1:0] mem[0:DEPTH-1];
  logic [AW:0] wr_ptr, wr_gray;
  logic [AW:0] rd_ptr, rd_gray;
  logic [WIDTH-1:0] front;
  logic push, closed, front_valid;
  logic [AW:0] rd_gray_seen, wr_gray_crossed, wr_gray_seen;

  // ---- writer ----
  logic [AW:0] wr_next, wr_next_gray;  // wr_next: wr_ptr + 1, a register of its own
  assign wr_next_gray = wr_next ^ (wr_next >> 1);
  assign push = wr_valid && !closed;
  assign wr_some = wr_gray != rd_gray_seen;

  synchronise #(
      .WIDTH(AW + 1)
  ) to_writer (
      .clk(wr_clk),
      .in (rd_gray),
      .out(rd_gray_seen)
  );
  generate
    if (LIMIT < DEPTH) begin : limited
      function automatic logic [AW:0] binary(input logic [AW:0] gray);
        binary = gray;
        for (int s = 1; s <= AW; s = 2 * s) binary = binary ^ (binary >> s);
      endfunction
      // a cycle late, so that the count is not in the path of the data: one word less is accepted at once
      localparam logic [AW:0] MOST = (AW + 1)'(LIMIT - 1);
      logic [AW:0] rd_ptr_seen, count;
      assign count = wr_ptr - rd_ptr_seen;
      // two flip-flops: one near the memory, which is large, and one near the writer
      always_ff @(posedge wr_clk) begin
        wr_ready <= count < MOST;
        closed <= count >= MOST;
        rd_ptr_seen <= binary(rd_gray_seen);
        if (wr_rst) begin
          wr_ready <= 1'b0;
          closed <= 1'b1;
          rd_ptr_seen <= '0;
        end
      end
    end else begin : whole
      // full: the same place, one turn ahead; known a cycle before, so that it delays no other logic
      logic [AW:0] full;
      assign closed = !wr_ready;
      assign full   = rd_gray_seen ^ {2'b11, {(AW - 1) {1'b0}}};
      always_ff @(posedge wr_clk) begin
        wr_ready <= push ? wr_next_gray != full : wr_gray != full;
        if (wr_rst) wr_ready <= 1'b0;
      end
    end
  endgenerate
  always_ff @(posedge wr_clk) begin
    // into a block RAM whenever there is a free place: only the pointer makes it a word
    if (BLOCK != 0 ? !closed : push) mem[wr_ptr[AW-1:0]] <= wr_data ^ INVERTED;
    if (push) begin
      wr_ptr  <= wr_next;
      wr_gray <= wr_next_gray;
      wr_next <= wr_next + 1'b1;
    end
    if (wr_rst) begin
      wr_ptr  <= '0;
      wr_next <= (AW + 1)'(1);
      wr_gray <= '0;
    end
  end

  // ---- reader ----
  logic [AW:0] rd_next, rd_next_gray;  // rd_next: rd_ptr + 1, a register of its own
  logic more;  // words not fetched yet
  logic fetch;  // a word leaves the memory
  logic take;  // the word at the memory's end may leave: to the output register or, with DIRECT, to the reader
  assign rd_next_gray = rd_next ^ (rd_next >> 1);

  assign more = rd_gray != wr_gray_seen;

  synchronise #(
      .WIDTH(AW + 1)
  ) to_reader (
      .clk(rd_clk),
      .in (wr_gray),
      .out(wr_gray_crossed)
  );
  generate
    if (SYNC == 2) begin : soon
      assign wr_gray_seen = wr_gray_crossed;
    end else begin : later
      localparam int HELD = (SYNC - 2) * (AW + 1);
      logic [HELD-1:0] held;
      assign wr_gray_seen = held[HELD-1-:AW+1];
      always_ff @(posedge rd_clk) begin
        held <= HELD'({held, wr_gray_crossed});
        if (rd_rst) held <= '0;
      end
    end
  endgenerate
  always_ff @(posedge rd_clk) begin
    if (fetch) begin
      rd_ptr  <= rd_next;
      rd_gray <= rd_next_gray;
      rd_next <= rd_next + 1'b1;
    end
    if (rd_rst) begin
      rd_ptr  <= '0;
      rd_next <= (AW + 1)'(1);
      rd_gray <= '0;
    end
  end

  generate
    if (DIRECT != 0) begin : direct
      assign rd_valid = front_valid;
      assign rd_data  = front;
      assign take     = rd_ready;
    end else begin : registered
      assign take = rd_ready || !rd_valid;
      always_ff @(posedge rd_clk) begin
        if (take) begin
          rd_valid <= front_valid;
          // invalid data may have any value: a simulator need not evaluate them
          if (front_valid) rd_data <= front ^ INVERTED;
          else rd_data <= 'x;
        end
        if (rd_rst) rd_valid <= 1'b0;
      end
    end

    if (BLOCK != 0) begin : block_ram
      logic some;
      always_ff @(posedge rd_clk) begin
        if (take || !some) begin
          front <= mem[rd_ptr[AW-1:0]];
          some  <= fetch;
        end
        if (rd_rst) some <= 1'b0;
      end
      assign front_valid = some;
      assign fetch = more && (take || !some);
    end else begin : lut_ram
      assign front = mem[rd_ptr[AW-1:0]];
      assign front_valid = more;
      assign fetch = front_valid && take;
    end
  endgenerate


  // only the address bits of the pointers are used
  logic unused;
  assign unused = &{1'b0, rd_ptr[AW], wr_ptr[AW]};

`ifdef FORMAL
  `include "async_fifo.svh"
`endif
endmodule
