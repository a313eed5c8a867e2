//! The tests of tlplab-analytic, in one program.
//!
//! * [`budgets`]: The closed forms against arithmetic by hand, the specification's tables, and a small simulation of the Ack rule alone.
//! * [`nics`]: The NICs of pcie-bench's Figure 1: where they meet 40 Gb/s Ethernet, and what a NIC's file may hold; Little's law and Figure 2.
//! * [`pcie_model`]: With all its mistakes the model gives the public pcie-model's numbers.
//! * [`transfers`]: Transfers of any size from any place, against the transaction layer's own cutting and arithmetic by hand.

mod budgets;
mod nics;
mod pcie_model;
mod transfers;
