/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The identity of a module: a function next to it, in C or C++. */
#ifndef TLPLAB_RTL_IDENTITY_H
#define TLPLAB_RTL_IDENTITY_H

#include "tlplab_rtl.h"

#ifdef __cplusplus
extern "C"
#endif
    /* Fills in all of `identity` but `abi`; it is all zero before. */
    void tlplab_rtl_identify(struct tlplab_rtl_identity *identity);

#endif
