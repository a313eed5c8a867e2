/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The right content of the card's memory, byte by byte, and the parts that transfers are using. */
#ifndef TLPLAB_STRESS_CARD_H
#define TLPLAB_STRESS_CARD_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace stress {

// One MiB of the card's memory. A byte is known; or, after a transfer to it that failed, either the old or the new value; or
// anything. Bytes under transfer are locked, so that what is checked does not depend on who comes first: any number of readers, or
// one writer. Everything not written by a transfer has to stay: that is where guard bytes are.
class Card {
public:
    static constexpr uint32_t SIZE = 1 << 20;

    Card() : value_(SIZE), other_(SIZE), known_(SIZE, ANYTHING), users_(SIZE, 0) {}

    bool lock_to_read(uint32_t at, uint32_t bytes) {
        int8_t *const users = &users_[at];
        if (any(users, bytes, [](int8_t users) { return users < 0 || users == 100; })) return false;
        for (uint32_t i = 0; i < bytes; ++i) ++users[i];
        return true;
    }
    bool lock_to_write(uint32_t at, uint32_t bytes) {
        int8_t *const users = &users_[at];
        if (any(users, bytes, [](int8_t users) { return users != 0; })) return false;
        std::fill(users, users + bytes, -1);
        return true;
    }
    void unlock(uint32_t at, uint32_t bytes) {
        int8_t *const users = &users_[at];
        for (uint32_t i = 0; i < bytes; ++i) users[i] = static_cast<int8_t>(users[i] < 0 ? 0 : users[i] - 1);
    }

    // These were written.
    void write(uint32_t at, uint8_t const *data, uint32_t bytes) {
        std::copy(data, data + bytes, value_.begin() + at);
        std::fill(known_.begin() + at, known_.begin() + at + bytes, KNOWN);
    }
    // Each of these may have been written, or not.
    void maybe_write(uint32_t at, uint8_t const *data, uint32_t bytes) {
        for (uint32_t i = 0; i < bytes; ++i) {
            if (known_[at + i] == KNOWN) {
                if (value_[at + i] == data[i]) continue;
                other_[at + i] = data[i];
                known_[at + i] = EITHER;
            } else if (known_[at + i] != EITHER || (value_[at + i] != data[i] && other_[at + i] != data[i])) {
                known_[at + i] = ANYTHING;
            }
        }
    }
    // The first of `bytes` bytes that cannot be what the card holds; `bytes` if there is none.
    uint32_t mismatch(uint32_t at, uint8_t const *data, uint32_t bytes) const {
        if (std::memcmp(&value_[at], data, bytes) == 0) return bytes;
        for (uint32_t i = 0; i < bytes; ++i) {
            if (known_[at + i] == ANYTHING || value_[at + i] == data[i]) continue;
            if (known_[at + i] == EITHER && other_[at + i] == data[i]) continue;
            return i;
        }
        return bytes;
    }
    uint8_t value(uint32_t at) const { return value_[at]; }

private:
    // A block at a time, of which the compiler makes vectors.
    template <class Test> static bool any(int8_t const *users, uint32_t bytes, Test test) {
        constexpr uint32_t BLOCK = 128;
        for (; bytes >= BLOCK; users += BLOCK, bytes -= BLOCK) {
            uint8_t found = 0;
            for (uint32_t i = 0; i < BLOCK; ++i) found |= test(users[i]);
            if (found) return true;
        }
        uint8_t found = 0;
        for (uint32_t i = 0; i < bytes; ++i) found |= test(users[i]);
        return found;
    }

    enum : uint8_t { KNOWN, EITHER, ANYTHING };
    std::vector<uint8_t> value_, other_, known_;
    std::vector<int8_t> users_; // -1: a writer
};

} // namespace stress

#endif
