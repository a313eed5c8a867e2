/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fields of a TLP's header that a hard IP reads. Bits as in the specification's figures: byte 0 is the most significant of a DW. */
#ifndef TLPLAB_RTL_TLP_HEADER_H
#define TLPLAB_RTL_TLP_HEADER_H

#include "tlplab_rtl.h"

#include <cstddef>
#include <cstdint>

namespace tlplab {

inline bool has_data(uint32_t dw0) { return dw0 >> 30 & 1; }
inline unsigned header_dws(uint32_t dw0) { return dw0 >> 29 & 1 ? 4 : 3; }
inline bool is_prefix(uint32_t dw0) { return dw0 >> 31; }
inline bool has_digest(uint32_t dw0) { return dw0 >> 15 & 1; }
inline unsigned data_dws(uint32_t dw0) { return has_data(dw0) ? ((dw0 - 1) & 0x3FF) + 1 : 0; }
constexpr uint32_t TD = 1u << 15, EP = 1u << 14;

inline size_t tlp_dws(uint32_t dw0) { return header_dws(dw0) + data_dws(dw0) + has_digest(dw0); }

inline tlplab_rtl_class class_of(uint32_t dw0) {
    unsigned const type = dw0 >> 24 & 0x1F;
    if ((type & 0x1E) == 0x0A) return TLPLAB_RTL_COMPLETION;
    if ((type & 0x18) == 0x10 || (type == 0 && has_data(dw0))) return TLPLAB_RTL_POSTED;
    return TLPLAB_RTL_NON_POSTED;
}

inline uint32_t from_wire(uint8_t const *bytes) {
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

inline void to_wire(uint32_t dw, uint8_t *bytes) {
    bytes[0] = static_cast<uint8_t>(dw >> 24); // one store
    bytes[1] = static_cast<uint8_t>(dw >> 16);
    bytes[2] = static_cast<uint8_t>(dw >> 8);
    bytes[3] = static_cast<uint8_t>(dw);
}

} // namespace tlplab

#endif
