/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TLPLAB_PRINT_H
#define TLPLAB_PRINT_H

// What Verilator's runtime prints with (VL_PRINTF), so that what $fatal says is the run's error; abi.cpp.
extern "C" int tlplab_print(char const *format, ...) __attribute__((format(printf, 1, 2)));

#endif
