/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tlp.h"

#include <cstdio>
#include <stdexcept>

namespace stress {
namespace {

uint32_t dw(uint8_t const *bytes, int n) {
    bytes += 4 * n;
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void put(std::vector<uint8_t> &to, uint32_t dw) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(dw >> shift));
}

void require(bool holds, char const *what) {
    if (!holds) throw std::runtime_error(std::string("a TLP breaks a rule: ") + what);
}

bool contiguous(uint8_t be) { return be == 0 || ((be / (be & -be)) & (be / (be & -be) + 1)) == 0; }

void check_request(Tlp const &tlp, Rules const &rules) {
    bool const write = tlp.kind & 0x40;
    require(tlp.id == rules.id, "requester is not the function's id");
    require(tlp.address % 4096 + 4 * tlp.length <= 4096, "crosses 4 KiB");
    require(4 * tlp.length <= (write ? rules.max_payload : rules.max_read),
            write ? "longer than Max_Payload_Size" : "longer than Max_Read_Request_Size");
    require((tlp.kind & 0x20) == 0 || tlp.address >> 32 != 0, "four DWs of header for an address below 4 GiB");
    require(tlp.length == 1 ? tlp.last_be == 0 : tlp.first_be != 0 && tlp.last_be != 0, "byte enables do not fit the length");
    require(tlp.length == 1 || ((tlp.first_be & 8) && (tlp.last_be & 1)), "byte enables have a hole");
    require(contiguous(tlp.first_be) && contiguous(tlp.last_be), "byte enables have a hole");
    require(tlp.first_be != 0, "no byte is enabled");
    require(write || tlp.tag < rules.tags, "a tag that the function may not use");
}

void check_completion(Tlp const &tlp, Rules const &rules) {
    require(tlp.id == rules.id, "completer is not the function's id");
    bool const data = tlp.kind & 0x40;
    require(data == (tlp.status == SUCCESS), "status and data of a completion do not agree");
    if (!data) return;
    require(4 * tlp.length <= rules.max_payload, "longer than Max_Payload_Size");
    uint32_t const offset = tlp.address % 4, span = offset + tlp.byte_count;
    bool const last = span <= 4 * tlp.length;
    require(!last || (span + 3) / 4 == tlp.length, "longer than its byte count");
    require(last || (tlp.address - offset + 4 * tlp.length) % 128 == 0, "ends neither at 128 bytes nor with its request");
}

} // namespace

uint64_t Tlp::start() const { return address + (first_be ? __builtin_ctz(first_be) : 0); }

uint32_t Tlp::bytes() const {
    if (first_be == 0) return 1;
    uint32_t const end = length == 1 ? 32 - __builtin_clz(first_be) : 4 * (length - 1) + 32 - __builtin_clz(last_be);
    return end - __builtin_ctz(first_be);
}

Tlp read_tlp(uint8_t const *bytes, size_t count, Rules const &rules) {
    uint32_t const d0 = dw(bytes, 0), d1 = dw(bytes, 1), d2 = dw(bytes, 2);
    Tlp tlp{};
    tlp.kind = bytes[0];
    tlp.poisoned = d0 >> 14 & 1;
    tlp.length = d0 & 0x3FF ? d0 & 0x3FF : 1024;
    tlp.id = static_cast<uint16_t>(d1 >> 16);
    tlp.data = bytes + (tlp.kind & 0x20 ? 16 : 12);
    require((d0 & 0x00FFBC00) == 0, "traffic class, digest, or reserved bits are set");
    require(count == (tlp.kind & 0x20 ? 16u : 12u) + (tlp.kind & 0x40 ? 4 * tlp.length : 0), "length differs from its bytes");
    require(!tlp.poisoned, "poisoned");
    switch (tlp.kind) {
    case MEMORY_READ:
    case MEMORY_READ_64:
    case MEMORY_WRITE:
    case MEMORY_WRITE_64:
        tlp.tag = static_cast<uint8_t>(d1 >> 8);
        tlp.last_be = d1 >> 4 & 15;
        tlp.first_be = d1 & 15;
        tlp.address = tlp.kind & 0x20 ? uint64_t{d2} << 32 | dw(bytes, 3) : d2;
        require(tlp.address % 4 == 0, "reserved bits of the address are set");
        check_request(tlp, rules);
        break;
    case COMPLETION:
    case COMPLETION_DATA:
    case COMPLETION_LOCKED:
        tlp.status = static_cast<Status>(d1 >> 13 & 7);
        tlp.byte_count = d1 & 0xFFF ? d1 & 0xFFF : 4096;
        tlp.requester = static_cast<uint16_t>(d2 >> 16);
        tlp.tag = static_cast<uint8_t>(d2 >> 8);
        tlp.address = d2 & 0x7F;
        require((d2 & 0x80) == 0 && (d1 & 0x1000) == 0, "reserved bits are set");
        check_completion(tlp, rules);
        break;
    default: require(false, "a kind that the function must not send");
    }
    return tlp;
}

std::vector<uint8_t> request(uint8_t kind, uint16_t requester, uint8_t tag, uint64_t address, uint32_t bytes, uint8_t const *data,
                             bool poisoned) {
    uint32_t const offset = address % 4, length = (offset + bytes + 3) / 4;
    unsigned first = 0xF << offset & 0xF, last = 0xF >> (length * 4 - offset - bytes);
    if (length == 1) first &= last, last = 0;
    std::vector<uint8_t> tlp;
    tlp.reserve(16 + 4 * length);
    put(tlp, uint32_t{kind} << 24 | uint32_t{poisoned} << 14 | (length & 0x3FF));
    put(tlp, uint32_t{requester} << 16 | uint32_t{tag} << 8 | last << 4 | first);
    if (kind & 0x20) put(tlp, static_cast<uint32_t>(address >> 32));
    put(tlp, static_cast<uint32_t>(address) & ~3u);
    if (kind & 0x40) {
        tlp.resize(tlp.size() + offset, 0xEE); // bytes that are not enabled
        tlp.insert(tlp.end(), data, data + bytes);
        tlp.resize((tlp.size() + 3) / 4 * 4, 0xEE);
    }
    return tlp;
}

std::vector<uint8_t> completion(CompletionHeader const &header, uint8_t const *payload) {
    std::vector<uint8_t> tlp;
    tlp.reserve(12 + 4 * header.length);
    put(tlp, uint32_t{header.kind} << 24 | uint32_t{header.poisoned} << 14 | (header.length & 0x3FF));
    put(tlp, uint32_t{header.completer} << 16 | uint32_t{header.status} << 13 | (header.byte_count & 0xFFF));
    put(tlp, uint32_t{header.requester} << 16 | uint32_t{header.tag} << 8 | header.lower_address);
    if (header.kind & 0x40) tlp.insert(tlp.end(), payload, payload + 4 * header.length);
    return tlp;
}

std::string describe(uint8_t const *bytes, size_t count) {
    std::string text;
    char part[16];
    for (size_t i = 0; i < count && i < 32; ++i) {
        std::snprintf(part, sizeof part, i % 4 ? "%02x" : " %02x", bytes[i]);
        text += part;
    }
    return text + (count > 32 ? " ..." : "") + " (" + std::to_string(count) + " bytes)";
}

} // namespace stress
