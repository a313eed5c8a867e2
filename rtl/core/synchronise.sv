// Two flip-flops in front of another clock: for quasi-static bits, each for itself.
module synchronise #(
    parameter int WIDTH = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  logic [WIDTH-1:0] first;
  always_ff @(posedge clk) begin
    out   <= first;
    first <= in;
  end
endmodule
