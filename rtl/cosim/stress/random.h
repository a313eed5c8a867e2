/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers that depend on the seed alone, and the contents of host memory. */
#ifndef TLPLAB_STRESS_RANDOM_H
#define TLPLAB_STRESS_RANDOM_H

#include <cstddef>
#include <cstdint>

namespace stress {

inline uint64_t mix(uint64_t x) { // splitmix64
    x += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

class Random {
public:
    explicit Random(uint64_t seed) : state_(mix(seed)) {}
    uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
    uint64_t below(uint64_t n) { return static_cast<uint64_t>(static_cast<unsigned __int128>(next()) * n >> 64); }
    uint64_t within(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
    // True once in `n` times; never if n is 0.
    bool once_in(uint64_t n) { return n != 0 && below(n) == 0; }
    bool percent(unsigned p) { return below(100) < p; }

private:
    uint64_t state_;
};

// The content of host memory: a function of the address, so that any address can be read.
inline void fill_pattern(uint64_t address, uint8_t *to, size_t bytes) {
    constexpr uint64_t EACH = 0x9E3779B97F4A7C15;
    uint64_t product = (address >> 3) * EACH;
    auto const word = [&] { return product ^ product >> 32; };
    uint8_t *const end = to + bytes;
    if (size_t from = address % 8; from != 0) {
        for (; from < 8 && to != end; ++from) *to++ = static_cast<uint8_t>(word() >> 8 * from);
        product += EACH;
    }
    for (; end - to >= 8; to += 8, product += EACH)
        for (size_t i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(word() >> 8 * i); // one store
    for (size_t from = 0; to != end; ++from) *to++ = static_cast<uint8_t>(word() >> 8 * from);
}

} // namespace stress

#endif
