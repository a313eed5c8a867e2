/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clocks of any frequency against a time axis of femtoseconds, without drift. */
#ifndef TLPLAB_RTL_CLOCK_H
#define TLPLAB_RTL_CLOCK_H

#include <cstdint>

namespace tlplab {

constexpr uint64_t FEMTOSECONDS = 1'000'000'000'000'000; // of a second

// Rising edge k, k from 0, of a clock of f Hz is at ceil(k * 10^15 / f) fs. Of the next edge that time is kept, and how much it is
// after the exact one, in units of 1 / f fs.
class Clock {
public:
    explicit Clock(uint64_t hertz) : hertz_(hertz), step_(FEMTOSECONDS / hertz), step_rest_(FEMTOSECONDS % hertz) {}

    // When the next rising edge is, in fs.
    uint64_t next() const { return next_; }
    // When the falling edge before the next rising edge is, in fs.
    uint64_t fall() const { return next_ - step_ / 2; }

    // The edge at `next()` is done.
    void advance() {
        next_ += step_;
        if (late_ < step_rest_) {
            ++next_;
            late_ += hertz_;
        }
        late_ -= step_rest_;
    }

    // Leaves out the edges before `time`.
    void skip_to(uint64_t time) {
        if (next_ >= time) return;
        // ceil(k / f) >= time exactly where k / f > time - 1.
        auto const product = static_cast<unsigned __int128>(time - 1) * hertz_;
        auto const exact = (product / FEMTOSECONDS + 1) * FEMTOSECONDS; // in units of 1 / f fs
        next_ = static_cast<uint64_t>((exact + hertz_ - 1) / hertz_);
        late_ = static_cast<uint64_t>(static_cast<unsigned __int128>(next_) * hertz_ - exact);
    }

private:
    uint64_t hertz_, step_, step_rest_;
    uint64_t next_ = 0, late_ = 0;
};

} // namespace tlplab

#endif
