/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The configuration space of tlpdma: rtl/README.md has the map of its registers. */
#include "identity.h"

void tlplab_rtl_identify(tlplab_rtl_identity *identity) {
    identity->vendor = 0x71AB;
    identity->device = 0x7D0A;
    identity->class_code = 0x120000; // processing accelerator
    identity->intx_pin = 1;
    identity->mps_supported = 2; // 512 bytes
    identity->extended_tags = 1;
    identity->flr = 1;
    identity->msix_vectors = 4;
    identity->msix_table_offset = 0x8000; // of BAR0
    identity->msix_pba_offset = 0x9000;
    identity->bars[0].size = 64 << 10; // registers
    identity->bars[2].size = 1 << 20;  // window into the card's memory
    identity->bars[2].flags = TLPLAB_RTL_BAR_64BIT | TLPLAB_RTL_BAR_PREFETCHABLE;
}
