/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The configuration space of stream.sv. */
#include "identity.h"

void tlplab_rtl_identify(tlplab_rtl_identity *identity) {
    identity->vendor = 0x71AB;
    identity->device = 0x57E4;
    identity->class_code = 0x058000; // memory controller
    identity->msi_vectors = 1;
    identity->flr = 1;
    identity->bars[0].size = 4096;
}
