/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "usp_tlp.h"

#include "tlp_header.h"

#include <cstring>

namespace tlplab {
namespace {

// Request types of descriptors, and the format and type of their TLPs with three DWs of header.
enum : unsigned { MEMORY_READ = 0, MEMORY_WRITE, IO_READ, IO_WRITE, FETCH_ADD, SWAP, COMPARE_SWAP, LOCKED_READ, REQUESTS };
constexpr uint8_t FMT_TYPE[REQUESTS] = {0x00, 0x40, 0x02, 0x42, 0x4C, 0x4D, 0x4E, 0x01};
enum : unsigned { MESSAGE = 12, VENDOR_MESSAGE = 13 };

unsigned traffic_class(uint32_t dw0) { return dw0 >> 20 & 7; }
unsigned attributes(uint32_t dw0) { return (dw0 >> 16 & 4) | (dw0 >> 12 & 3); }
uint32_t with_attributes(unsigned of) { return (of & 4) << 16 | (of & 3) << 12; }

// Payload stands in the lanes with its first byte lowest.
void add_payload(Packet &packet, Received const &received, size_t header) {
    for (size_t i = header; i < received.dws.size(); ++i) packet.dws.push_back(__builtin_bswap32(received.dws[i]));
}

// `data` as it stands in the lanes.
std::vector<uint8_t> on_wire(std::initializer_list<uint32_t> header, uint32_t const *data, size_t data_dws) {
    std::vector<uint8_t> tlp(4 * (header.size() + data_dws));
    uint8_t *at = tlp.data();
    for (uint32_t dw : header) to_wire(dw, at), at += 4;
    if (data_dws) std::memcpy(at, data, 4 * data_dws);
    return tlp;
}

std::vector<uint8_t> request_tlp(uint32_t dw0, uint32_t dw1, uint64_t address, uint32_t const *data, size_t data_dws) {
    auto const low = static_cast<uint32_t>(address), high = static_cast<uint32_t>(address >> 32);
    if (high == 0) return on_wire({dw0, dw1, low}, data, data_dws);
    return on_wire({dw0 | 1u << 29, dw1, high, low}, data, data_dws);
}

Made wrong(std::string what) { return {{}, TLPLAB_RTL_POSTED, std::move(what)}; }

} // namespace

Packet cq_packet(Received const &received, uint8_t function, uint8_t aperture) {
    std::vector<uint32_t> const &dws = received.dws;
    uint32_t const dw0 = dws[0], type = dw0 >> 24 & 0x1F;
    unsigned const header = header_dws(dw0), length = ((dw0 - 1) & 0x3FF) + 1;
    bool const message = (type & 0x18) == 0x10;
    Packet packet{{}, 4, 0, 0, (dw0 & EP) != 0, received.kind, 0};
    packet.dws.reserve(4 + data_dws(dw0));
    unsigned kind = 0;
    uint32_t target = function << 8 | static_cast<uint32_t>(received.bar) << 16 | static_cast<uint32_t>(aperture) << 19;
    if (message) {
        unsigned const code = dws[1] & 0xFF;
        kind = code >= 0x7E ? VENDOR_MESSAGE : MESSAGE;
        target = code << 8 | (type & 7) << 16;
        packet.dws = {__builtin_bswap32(dws[2]), __builtin_bswap32(header == 4 ? dws[3] : 0)};
    } else {
        uint8_t const fmt_type = static_cast<uint8_t>(dw0 >> 24) & 0x5F; // as with three DWs
        while (kind < REQUESTS && FMT_TYPE[kind] != fmt_type) ++kind;
        packet.first_be = dws[1] & 0xF;
        packet.last_be = dws[1] >> 4 & 0xF;
        packet.dws = {(dws[header - 1] & ~3u) | (dw0 >> 10 & 3), header == 4 ? dws[2] : 0};
    }
    packet.dws.push_back((has_data(dw0) || !message ? length : 0) | kind << 11 | (dws[1] & 0xFFFF0000));
    packet.dws.push_back((dws[1] >> 8 & 0xFF) | target | traffic_class(dw0) << 25 | attributes(dw0) << 28);
    add_payload(packet, received, header);
    return packet;
}

Packet rc_packet(Received const &received, Judged const &judged) {
    std::vector<uint32_t> const &dws = received.dws;
    uint32_t const dw0 = dws[0], byte_count = ((dws[1] - 1) & 0xFFF) + 1, length = data_dws(dw0);
    bool const locked = (dw0 >> 24 & 0x1F) == 0x0B;
    Packet packet{{}, 3, 0, 0, false, received.kind, 0};
    packet.dws.reserve(3 + length);
    packet.dws = {judged.address | judged.error_code << 12 | byte_count << 16 | static_cast<uint32_t>(locked) << 29 |
                      static_cast<uint32_t>(judged.ends) << 30,
                  length | (dws[1] >> 13 & 7) << 11 | static_cast<uint32_t>((dw0 & EP) != 0) << 14 | (dws[2] & 0xFFFF0000),
                  (dws[2] >> 8 & 0xFF) | (dws[1] >> 16) << 8 | traffic_class(dw0) << 25 | attributes(dw0) << 28};
    // Bytes before the first and behind the last one that were asked for are not enabled.
    unsigned const offset = judged.address & 3, end = offset + byte_count;
    packet.first_be = 0xF << offset & 0xF;
    packet.last_be = static_cast<uint8_t>(end >= 4 * length ? 0xF : 0xF >> (3 - (end - 1) % 4));
    if (length == 1) packet.first_be &= packet.last_be;
    add_payload(packet, received, 3);
    return packet;
}

Made rq_tlp(Sink const &sink, uint16_t id) {
    std::vector<uint32_t> const &dws = sink.dws;
    if (dws.size() < 4) return wrong("a request of " + std::to_string(dws.size()) + " DWs, less than a descriptor has");
    unsigned const kind = dws[2] >> 11 & 0xF, length = dws[2] & 0x7FF;
    if (kind >= REQUESTS) return wrong("a request of type " + std::to_string(kind) + ", which no end point sends through RQ here");
    if (length == 0 || length > 1024)
        return wrong("a request of " + std::to_string(length) + " DWs by its descriptor; expected 1 to 1024");
    uint32_t const fmt_type = FMT_TYPE[kind];
    size_t const data = fmt_type & 0x40 ? length : 0;
    if (dws.size() != 4 + data)
        return wrong("a request of " + std::to_string(dws.size()) + " DWs, " + std::to_string(4 + data) + " by its descriptor");
    if (length == 1 ? sink.last_be != 0 : sink.first_be == 0 || sink.last_be == 0)
        return wrong("byte enables " + std::to_string(sink.first_be) + " (first) and " + std::to_string(sink.last_be) +
                     " (last) of a request of " + std::to_string(length) + " DWs");
    if (sink.address_offset != 0) return wrong("addr_offset is not 0: this hard IP's streams are DWORD-aligned");
    uint32_t const dw0 = fmt_type << 24 | (dws[3] >> 25 & 7) << 20 | with_attributes(dws[3] >> 28 & 7) | (dws[2] >> 15 & 1) << 14 |
                         (dws[0] & 3) << 10 | (length & 0x3FF);
    uint32_t const requester = dws[3] >> 24 & 1 ? dws[2] >> 16 : id;
    uint32_t const dw1 = requester << 16 | (dws[3] & 0xFF) << 8 | sink.last_be << 4 | sink.first_be;
    uint64_t const address = uint64_t{dws[1]} << 32 | (dws[0] & ~3u);
    return {request_tlp(dw0, dw1, address, &dws[0] + 4, data), class_of(dw0), {}};
}

Made cc_tlp(Sink const &sink, uint16_t id) {
    std::vector<uint32_t> const &dws = sink.dws;
    if (dws.size() < 3) return wrong("a completion of " + std::to_string(dws.size()) + " DWs, less than a descriptor has");
    unsigned const status = dws[1] >> 11 & 7, length = status ? 0 : dws[1] & 0x7FF, byte_count = dws[0] >> 16 & 0x1FFF;
    if (length > 1024) return wrong("a completion of " + std::to_string(length) + " DWs by its descriptor; expected 0 to 1024");
    // Behind one that refuses there may be the request's own descriptor, which is for the hard IP's log.
    if (dws.size() != 3 + length && !(status && dws.size() == 8))
        return wrong("a completion of " + std::to_string(dws.size()) + " DWs, " + std::to_string(3 + length) +
                     " by its descriptor");
    if (byte_count > 4096) return wrong("a completion with Byte Count " + std::to_string(byte_count) + "; expected 0 to 4096");
    bool const locked = dws[0] >> 29 & 1;
    uint32_t const fmt_type = (length ? 0x4A : 0x0A) | static_cast<uint32_t>(locked);
    uint32_t const dw0 = fmt_type << 24 | (dws[2] >> 25 & 7) << 20 | with_attributes(dws[2] >> 28 & 7) | (dws[1] >> 14 & 1) << 14 |
                         (dws[0] >> 8 & 3) << 10 | (length & 0x3FF);
    uint32_t const completer = dws[2] >> 24 & 1 ? dws[2] >> 8 & 0xFFFF : id;
    uint32_t const dw1 = completer << 16 | status << 13 | (byte_count & 0xFFF);
    uint32_t const dw2 = (dws[1] & 0xFFFF0000) | (dws[2] & 0xFF) << 8 | (dws[0] & 0x7F);
    return {on_wire({dw0, dw1, dw2}, &dws[0] + 3, length), TLPLAB_RTL_COMPLETION, {}};
}

Made message_tlp(uint64_t address, uint32_t data, uint16_t id) {
    return {
        request_tlp(0x40000001, static_cast<uint32_t>(id) << 16 | 0xF, address & ~uint64_t{3}, &data, 1), TLPLAB_RTL_POSTED, {}};
}

} // namespace tlplab
