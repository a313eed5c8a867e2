// SPDX-License-Identifier: MIT OR Apache-2.0
#include "identity.h"

void tlplab_rtl_identify(tlplab_rtl_identity *identity) {
    identity->vendor = 0x71AB;
    identity->device = 0x5CA7;
    identity->class_code = 0x058000; // memory controller
    identity->bars[0].size = 4096;
}
