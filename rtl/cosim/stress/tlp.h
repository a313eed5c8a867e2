/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* TLPs: headers made and read, and the rules that every TLP of a device has to keep. */
#ifndef TLPLAB_STRESS_TLP_H
#define TLPLAB_STRESS_TLP_H

#include "tlplab_rtl.h"

#include <cstdint>
#include <string>
#include <vector>

namespace stress {

// The first byte of a header: format and type.
enum : uint8_t {
    MEMORY_READ = 0x00,
    MEMORY_READ_64 = 0x20,
    MEMORY_READ_LOCKED = 0x01,
    MEMORY_WRITE = 0x40,
    MEMORY_WRITE_64 = 0x60,
    IO_READ = 0x02,
    FETCH_ADD = 0x4C,
    MESSAGE = 0x34, // routed to the receiver, no data
    COMPLETION = 0x0A,
    COMPLETION_DATA = 0x4A,
    COMPLETION_LOCKED = 0x0B,
};

enum Status : uint8_t { SUCCESS = 0, UNSUPPORTED = 1, RETRY = 2, ABORT = 4 };

struct Tlp {
    uint8_t kind;
    bool poisoned;
    uint32_t length; // in DWs
    uint16_t id;     // requester of requests, completer of completions
    uint8_t tag;
    uint8_t first_be, last_be; // requests
    uint64_t address;          // of the first DW; completions: lower address
    uint16_t requester;        // completions
    Status status;
    uint32_t byte_count;
    uint8_t const *data;

    bool is_completion() const { return (kind & 0x1E) == 0x0A; }
    // The bytes that a request with the given enables is about: of the first byte, and how many there are.
    uint64_t start() const;
    uint32_t bytes() const;
};

// Settings that a device's TLPs must keep to.
struct Rules {
    uint16_t id;
    uint32_t max_payload, max_read; // bytes
    uint32_t tags;
};

// Reads a TLP of the device. Throws std::runtime_error where it breaks a rule of the specification.
Tlp read_tlp(uint8_t const *bytes, size_t count, Rules const &rules);

// A memory request: `first_be` and `last_be` are worked out from address and bytes. `data` may be nullptr (reads).
std::vector<uint8_t> request(uint8_t kind, uint16_t requester, uint8_t tag, uint64_t address, uint32_t bytes, uint8_t const *data,
                             bool poisoned);

struct CompletionHeader {
    uint8_t kind;
    uint32_t length; // DWs
    uint16_t completer;
    Status status;
    uint32_t byte_count;
    uint16_t requester;
    uint8_t tag, lower_address;
    bool poisoned;
};
std::vector<uint8_t> completion(CompletionHeader const &header, uint8_t const *payload);

// A TLP in the words of a message.
std::string describe(uint8_t const *bytes, size_t count);

} // namespace stress

#endif
