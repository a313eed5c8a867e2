/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Descriptors of an UltraScale+ hard IP: made of TLPs for the core, and TLPs made of the core's. */
#ifndef TLPLAB_RTL_USP_TLP_H
#define TLPLAB_RTL_USP_TLP_H

#include "hard_ip.h"
#include "usp_stream.h"

#include <string>
#include <vector>

namespace tlplab {

// RC's information about a completion besides the TLP.
struct Judged {
    unsigned error_code;
    uint32_t address; // of its first byte: 12 bits
    bool ends;        // it is the last of its request
};
enum ErrorCode : unsigned {
    NONE = 0,
    POISONED = 1,
    REFUSED = 2,
    BAD_LENGTH = 3,
    OTHER_REQUEST = 4,
    BAD_ADDRESS = 5,
    UNKNOWN_TAG = 6
};

Packet cq_packet(Received const &received, uint8_t function, uint8_t aperture);
Packet rc_packet(Received const &received, Judged const &judged);

// A TLP of the core, as on the wire.
struct Made {
    std::vector<uint8_t> tlp;
    tlplab_rtl_class kind;
    std::string wrong; // the fault of a TLP that no hard IP can send; empty: none
};
Made rq_tlp(Sink const &sink, uint16_t id);
Made cc_tlp(Sink const &sink, uint16_t id);
Made message_tlp(uint64_t address, uint32_t data, uint16_t id);

// Of a request: its first enabled byte, and how many there are up to the last one; of none, 1.
struct Extent {
    uint32_t offset, bytes;
};
inline Extent extent(unsigned length, unsigned first_be, unsigned last_be) {
    if (first_be == 0) return {0, 1};
    uint32_t const offset = static_cast<uint32_t>(__builtin_ctz(first_be));
    uint32_t const end = length == 1 ? 32u - static_cast<uint32_t>(__builtin_clz(first_be))
                                     : 4 * (length - 1) + 32u - static_cast<uint32_t>(__builtin_clz(last_be | 1));
    return {offset, end - offset};
}

} // namespace tlplab

#endif
