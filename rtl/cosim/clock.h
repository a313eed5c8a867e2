/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clocks of any frequency against a time axis of femtoseconds, without drift. */
#ifndef TLPLAB_RTL_CLOCK_H
#define TLPLAB_RTL_CLOCK_H

#include <cstdint>

namespace tlplab {

constexpr uint64_t FEMTOSECONDS = 1'000'000'000'000'000; // of a second

// Rising edge k, k from 0, of a clock of f Hz is at ceil(k * 10^15 / f) fs. The time of the next edge is kept as a whole number and
// a remainder in units of 1 / f fs.
class Clock {
public:
    explicit Clock(uint64_t hertz) : hertz_(hertz), step_(FEMTOSECONDS / hertz), step_rest_(FEMTOSECONDS % hertz) {}

    // When the next rising edge is, in fs.
    uint64_t next() const { return whole_ + (rest_ != 0); }
    // When the falling edge before the next rising edge is, in fs.
    uint64_t fall() const { return next() - step_ / 2; }

    // The edge at `next()` is done.
    void advance() {
        whole_ += step_;
        rest_ += step_rest_;
        if (rest_ >= hertz_) {
            rest_ -= hertz_;
            ++whole_;
        }
    }

    // Leaves out the edges before `time`.
    void skip_to(uint64_t time) {
        if (next() >= time) return;
        // ceil(k / f) >= time exactly where k / f > time - 1.
        auto const product = static_cast<unsigned __int128>(time - 1) * hertz_;
        auto const edge = static_cast<uint64_t>(product / FEMTOSECONDS) + 1;
        auto const start = static_cast<unsigned __int128>(edge) * FEMTOSECONDS;
        whole_ = static_cast<uint64_t>(start / hertz_);
        rest_ = static_cast<uint64_t>(start % hertz_);
    }

private:
    uint64_t hertz_, step_, step_rest_;
    uint64_t whole_ = 0, rest_ = 0;
};

} // namespace tlplab

#endif
