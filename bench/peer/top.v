// cocotb runs inside an HDL simulator; the peer's models need nothing of it but time.
`timescale 1ns / 1ps
module top;
endmodule
