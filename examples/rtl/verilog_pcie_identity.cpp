/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The configuration space of verilog-pcie's example, which docs/attach-rtl.md builds. */
#include "identity.h"

void tlplab_rtl_identify(tlplab_rtl_identity *identity) {
    identity->vendor = 0x1234;
    identity->device = 0x0001;
    identity->class_code = 0x058000; // memory controller
    identity->mps_supported = 1; // 256 bytes
    identity->msix_vectors = 32;
    identity->msix_table_bar = identity->msix_pba_bar = 4;
    identity->msix_pba_offset = 0x8000;
    identity->bars[0].size = 16 << 20; // registers
    identity->bars[2].size = 16 << 20; // memory
    identity->bars[4].size = 64 << 10; // table and pending bits of MSI-X
}
