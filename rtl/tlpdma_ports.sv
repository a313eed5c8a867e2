// SPDX-License-Identifier: MIT OR Apache-2.0
// The ports between hard IP, shim, core and user design: a packed struct for each channel. The wire `<channel>_ready`
// answers it; fields are held while `valid` is set and it is not.
//
// The types stand outside of a package: Icarus 11 accepts no type of a package in a list of ports, Yosys no import there.
// So all files are one compilation unit, in the order of files.f.

// ---- hard IP to core: the configuration (pcie_clk), quasi static ----
typedef struct packed {
  logic [15:0] id;
  logic [2:0]  mps;           // 128 << mps bytes
  logic [2:0]  mrrs;
  logic        bus_master;
  logic        ext_tag;
  logic        msix_enable;
  logic        msix_mask;
  logic        intx_disable;
} pcie_cfg_t;

// ---- core to shim (pcie_clk): posted requests and completions in order, with their data; reads ----
typedef struct packed {
  logic         hdr_valid;
  logic         np_valid;
  logic         data_valid;
  logic [2:0]   hdr_lane;    // of the first DW in its first word
  logic [2:0]   np_lane;     // bits [4:2] of (local - PCIe address) of a read
  logic [127:0] np_hdr;
  logic [127:0] hdr;
  logic [255:0] data;
} tx_t;
typedef struct packed {
  logic hdr;
  logic np;
  logic data;
  logic gone;  // pulse, with DROPS: a posted request has left the hard IP, or was dropped
} tx_ready_t;

// ---- shim to core (pcie_clk): requests and completions, with their data ----
typedef struct packed {
  logic         req_valid;
  logic         req_data_valid;
  logic         cpl_valid;
  logic         cpl_data_valid;
  logic [2:0]   req_bar;
  logic [127:0] req_hdr;
  logic [127:0] cpl_hdr;
  logic [255:0] req_data;
  logic [255:0] cpl_data;
} rx_t;
typedef struct packed {
  logic req;
  logic req_data;
  logic cpl;
  logic cpl_data;
  logic np;        // non-posted requests may come
} rx_ready_t;

// ---- core to user (user_clk): the configuration; mps and mrrs after MPS_MAX, MRRS_MAX ----
typedef struct packed {
  logic       bus_master;
  logic       msix_enable;
  logic       msix_mask;
  logic       intx_disable;
  logic [2:0] mps;
  logic [2:0] mrrs;
} user_cfg_t;

// ---- master reads: a request of any length, one of a single TLP, their data, and the end of either ----
typedef struct packed {
  logic        valid;
  logic [1:0]  id;
  logic [23:0] len;
  logic [31:0] place;  // its local address
  logic [63:0] addr;
} mrd_t;
typedef struct packed {
  logic        valid;
  logic [1:0]  id;
  logic [9:0]  len;
  logic [31:0] place;
  logic [63:0] addr;
} drd_t;
typedef struct packed {
  logic         valid;
  logic [1:0]   id;
  logic [31:0]  addr;    // local, 32-byte aligned
  logic [31:0]  strobe;
  logic [255:0] data;
} mrd_data_t;
typedef struct packed {
  logic       valid;
  logic [1:0] id;
  logic [2:0] error;  // tlpdma_pkg::ERR_*
} done_t;

// ---- master writes: a request, its words as they lie in local memory; and small posted ones ----
typedef struct packed {
  logic        valid;
  logic [1:0]  id;
  logic [4:0]  lane;   // of the first byte in the first word
  logic [23:0] len;
  logic [63:0] addr;
} mwr_t;
typedef struct packed {
  logic         valid;
  logic [255:0] data;
} word_t;
typedef struct packed {
  logic        valid;
  logic        two;    // DWs
  logic        four;   // the address needs 64 bits
  logic [63:0] addr;
  logic [63:0] data;
} post_t;

// ---- the host's accesses ----
typedef struct packed {
  logic         valid;
  logic [2:0]   bar;     // stands a cycle before `valid`
  logic [31:0]  addr;    // 32-byte aligned
  logic [31:0]  strobe;
  logic [255:0] data;
} swr_t;
typedef struct packed {
  logic        valid;
  logic [2:0]  bar;
  logic [31:0] addr;   // 32-byte aligned
} srd_t;
