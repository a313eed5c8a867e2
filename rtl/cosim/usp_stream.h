/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The four AXI4-Streams of an UltraScale+ hard IP: which bits of `tuser` mean what at which width, beats made and beats read.
 *
 * DWORD-aligned mode: payload begins right after the descriptor. Parity is neither given nor looked at. Where a stream straddles, a
 * TLP may begin at each part of a beat, `tkeep` is all ones and `tlast` means nothing; otherwise one begins each TLP's first beat.
 */
#ifndef TLPLAB_RTL_USP_STREAM_H
#define TLPLAB_RTL_USP_STREAM_H

#include "ports.h"
#include "tlplab_rtl.h"

#include "verilated.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tlplab {

// Bits of a port, which is an integer or, above 64 bits, an array with the least significant word first.
template <class Port> uint32_t get_dw(Port const &port, unsigned i) { return static_cast<uint32_t>(uint64_t{port} >> 32 * i); }
template <std::size_t N> uint32_t get_dw(VlWide<N> const &port, unsigned i) { return port[i]; }
template <class Port> void clear(Port &port) { port = 0; }
template <std::size_t N> void clear(VlWide<N> &port) {
    for (std::size_t i = 0; i < N; ++i) port[i] = 0;
}
template <class Port> uint32_t get_bits(Port const &port, unsigned lsb, unsigned width) {
    return static_cast<uint32_t>(uint64_t{port} >> lsb) & ((1u << width) - 1);
}
template <std::size_t N> uint32_t get_bits(VlWide<N> const &port, unsigned lsb, unsigned width) {
    uint64_t const low = port[lsb / 32], high = lsb / 32 + 1 < N ? port[lsb / 32 + 1] : 0;
    return static_cast<uint32_t>((high << 32 | low) >> lsb % 32) & ((1u << width) - 1);
}
// Of bits that are 0.
template <class Port> void put_bits(Port &port, unsigned lsb, uint64_t value) { port |= static_cast<Port>(value << lsb); }
template <std::size_t N> void put_bits(VlWide<N> &port, unsigned lsb, uint64_t value) {
    for (unsigned i = lsb / 32, shift = lsb % 32; value != 0; ++i, shift = 0) {
        port[i] |= static_cast<uint32_t>(value << shift);
        value >>= 32 - shift;
    }
}

constexpr unsigned DWS = bits::s_axis_cq_tdata / 32; // of a beat
constexpr bool LARGE = DWS == 16;

// A TLP for the core: descriptor and payload as they lie in the lanes.
struct Packet {
    std::vector<uint32_t> dws;
    unsigned descriptor; // DWs of it
    uint8_t first_be, last_be;
    bool discontinue;
    tlplab_rtl_class kind;
    uint64_t after; // a completion: how many posted requests arrived before it, if it must not pass them
};

struct RcStream {
    static constexpr unsigned STARTS = starts::rc, BYTE_ENABLES = 0, DISCONTINUE = LARGE ? 96 : 42;
    template <class User> static void start(User &user, unsigned n, unsigned dw, Packet const &) {
        put_bits(user, (LARGE ? 64 : 32) + n, 1);
        if (LARGE) put_bits(user, 68 + 2 * n, dw / 4);
    }
    template <class User> static void end(User &user, unsigned n, unsigned dw) {
        put_bits(user, LARGE ? 76 + n : 34 + 4 * n, 1);
        put_bits(user, (LARGE ? 80 : 35) + 4 * n, dw);
    }
};

struct CqStream {
    static constexpr unsigned STARTS = starts::cq, BYTE_ENABLES = LARGE ? 16 : 8, DISCONTINUE = LARGE ? 96 : 41;
    template <class User> static void start(User &user, unsigned n, unsigned dw, Packet const &packet) {
        put_bits(user, 4 * n, packet.first_be);
        put_bits(user, (LARGE ? 8 : 4) + 4 * n, packet.last_be);
        put_bits(user, (LARGE ? 80 : 40) + n, 1);
        if (LARGE) put_bits(user, 82 + 2 * n, dw / 4);
    }
    template <class User> static void end([[maybe_unused]] User &user, [[maybe_unused]] unsigned n, [[maybe_unused]] unsigned dw) {
        if constexpr (LARGE) {
            put_bits(user, 86 + n, 1);
            put_bits(user, 88 + 4 * n, dw);
        }
    }
};

// The beat that a stream to the core shows, and the packet that it has begun.
struct Source {
    Packet current{};
    bool begun = false; // `current` is there
    size_t given = 0;   // DWs of it that have been shown
    bool showing = false;
    struct Ending {
        tlplab_rtl_class kind;
        size_t data_dws;
    };
    std::array<Ending, 4> ending{}; // TLPs that end with the beat that is shown
    unsigned endings = 0;
};

// Byte enables of so many DWs from DW `first` on: none of the descriptor, what it says of the first and last DW of data.
inline uint64_t byte_enables(Packet const &packet, size_t first, unsigned count) {
    uint64_t enables = count < 16 ? (uint64_t{1} << 4 * count) - 1 : ~uint64_t{0};
    size_t const data = packet.descriptor, last = packet.dws.size() - 1;
    if (first < data) enables &= data - first < 16 ? ~uint64_t{0} << 4 * (data - first) : 0;
    if (first <= data && data < first + count) enables &= ~(uint64_t{0xFu & ~unsigned{packet.first_be}} << 4 * (data - first));
    if (first <= last && last < first + count && last > data)
        enables &= ~(uint64_t{0xFu & ~unsigned{packet.last_be}} << 4 * (last - first));
    return enables;
}

// Makes the next beat. `choose(packet)` gives the TLP to begin with, or false.
template <class Stream, class Data, class Keep, class User, class Choose>
void make_beat(Source &source, Data &data, Keep &keep, User &user, CData &last, Choose choose) {
    constexpr unsigned PART = DWS / Stream::STARTS;
    unsigned dw = 0, started = 0;
    source.endings = 0;
    clear(user);
    clear(data);
    while (dw < DWS) {
        if (!source.begun) {
            if (started == Stream::STARTS || !choose(source.current)) break;
            source.begun = true;
            source.given = 0;
        }
        Packet const &packet = source.current;
        if (source.given == 0) {
            if (packet.discontinue && dw > 0) break; // that is said of a whole beat
            Stream::start(user, started++, dw, packet);
        }
        size_t const size = packet.dws.size();
        unsigned const begin = dw;
        for (; dw < DWS && source.given < size; ++dw) put_bits(data, 32 * dw, packet.dws[source.given++]);
        put_bits(user, Stream::BYTE_ENABLES + 4 * begin, byte_enables(packet, source.given - (dw - begin), dw - begin));
        if (source.given < size) break;
        if (packet.discontinue) put_bits(user, Stream::DISCONTINUE, 1);
        Stream::end(user, source.endings, dw - 1);
        source.ending[source.endings++] = {packet.kind, size - packet.descriptor};
        source.begun = false;
        if (Stream::STARTS == 1 || packet.discontinue) break;
        dw = (dw + PART - 1) / PART * PART;
    }
    source.showing = started > 0 || dw > 0;
    last = Stream::STARTS == 1 && source.endings > 0;
    keep = static_cast<Keep>(Stream::STARTS > 1 ? (1u << DWS) - 1 : (1u << dw) - 1);
}

struct RqStream {
    static constexpr unsigned STARTS = starts::rq, DISCONTINUE = LARGE ? 36 : 11, SOP = 20, SOP_PTR = 22, EOP = 26, EOP_PTR = 28;
    template <class User> static unsigned first_be(User const &user, unsigned n) { return get_bits(user, 4 * n, 4); }
    template <class User> static unsigned last_be(User const &user, unsigned n) {
        return get_bits(user, (LARGE ? 8 : 4) + 4 * n, 4);
    }
    template <class User> static unsigned address_offset(User const &user, unsigned n) {
        return LARGE ? get_bits(user, 16 + 2 * n, 2) : get_bits(user, 8, 3);
    }
    template <class User> static unsigned seq_num(User const &user, unsigned n) {
        if (LARGE) return get_bits(user, 61 + 6 * n, 6);
        return get_bits(user, 24, 4) | (bits::m_axis_rq_tuser == 62 ? get_bits(user, 60, 2) << 4 : 0);
    }
};

struct CcStream {
    static constexpr unsigned STARTS = starts::cc, DISCONTINUE = LARGE ? 16 : 0, SOP = 0, SOP_PTR = 2, EOP = 6, EOP_PTR = 8;
    template <class User> static unsigned first_be(User const &, unsigned) { return 0; }
    template <class User> static unsigned last_be(User const &, unsigned) { return 0; }
    template <class User> static unsigned address_offset(User const &, unsigned) { return 0; }
    template <class User> static unsigned seq_num(User const &, unsigned) { return 0; }
};

// A TLP of the core, as far as it has come.
struct Sink {
    std::vector<uint32_t> dws;
    bool begun = false, discontinue = false;
    unsigned first_be = 0, last_be = 0, address_offset = 0, seq_num = 0;
};

// Reads a beat. `finish()` is called for each TLP that ends in it; the text says what is wrong with the beat, empty if nothing is.
template <class Stream, class Data, class Keep, class User, class Finish>
std::string read_beat(Sink &sink, Data const &data, Keep const &keep, User const &user, bool last, Finish finish) {
    constexpr bool STRADDLES = Stream::STARTS > 1;
    constexpr unsigned PART = DWS / Stream::STARTS;
    unsigned count = DWS;
    if (!STRADDLES) {
        count = static_cast<unsigned>(__builtin_popcount(keep));
        if (keep != (1u << count) - 1 || count == 0) return "tkeep has holes";
        if (!last && count < DWS) return "tkeep of a beat before the last one of its TLP is not all ones";
        if (LARGE && (get_bits(user, Stream::SOP + 1, 1) || (get_bits(user, Stream::SOP, 1) && get_bits(user, Stream::SOP_PTR, 2))))
            return "TLPs straddle beats, for which it was not built (STRADDLE)";
    }
    auto const starts_at = [&](unsigned n) -> unsigned {
        if (!STRADDLES) return n == 0 && !sink.begun ? 0 : DWS;
        if (n >= Stream::STARTS || !get_bits(user, Stream::SOP + n, 1)) return DWS;
        return 4 * get_bits(user, Stream::SOP_PTR + 2 * n, 2);
    };
    auto const ends_at = [&](unsigned n) -> unsigned { // one more than its last DW
        if (!STRADDLES) return last ? count : DWS + 1;
        if (n >= Stream::STARTS || !get_bits(user, Stream::EOP + n, 1)) return DWS + 1;
        return get_bits(user, Stream::EOP_PTR + 4 * n, 4) + 1;
    };
    unsigned dw = 0, started = 0, ended = 0;
    while (dw < DWS) {
        if (!sink.begun) {
            unsigned const start = starts_at(started);
            if (start == DWS) {
                if (dw == 0) return "a beat outside of a TLP: no is_sop";
                break;
            }
            if (start < dw || start % PART != 0) return "is_sop's pointer is where no TLP can begin";
            sink.dws.clear(); // keeps its memory
            sink.begun = true;
            sink.discontinue = false;
            sink.first_be = Stream::first_be(user, started);
            sink.last_be = Stream::last_be(user, started);
            sink.address_offset = Stream::address_offset(user, started);
            sink.seq_num = Stream::seq_num(user, started);
            ++started;
            dw = start;
        }
        unsigned const end = ends_at(ended);
        if (end <= dw) return "is_eop's pointer is before its TLP";
        for (; dw < DWS && dw < end; ++dw) sink.dws.push_back(get_dw(data, dw));
        sink.discontinue |= get_bits(user, Stream::DISCONTINUE, 1);
        if (sink.dws.size() > 4 + 1024) return "a TLP without end: none in " + std::to_string(sink.dws.size()) + " DWs";
        if (end > DWS) break;
        ++ended;
        finish();
        sink.begun = false;
        if (!STRADDLES) break;
        dw = (dw + PART - 1) / PART * PART;
    }
    if (STRADDLES && starts_at(started) != DWS) return "is_sop within a TLP";
    if (STRADDLES && ends_at(ended) <= DWS) return "is_eop without a TLP";
    return {};
}

} // namespace tlplab

#endif
