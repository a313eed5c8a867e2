/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TLPLAB_PRINT_H
#define TLPLAB_PRINT_H

// The function with which Verilator's runtime prints (VL_PRINTF), so that the message of $fatal is the run's error; abi.cpp.
extern "C" int tlplab_print(char const *format, ...) __attribute__((format(printf, 1, 2)));

#endif
