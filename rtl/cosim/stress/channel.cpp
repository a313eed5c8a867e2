/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "channel.h"

#include <cstring>
#include <utility>

namespace stress {
namespace {

// `who` of a read: bit 0 the channel, bit 1 a descriptor fetch, then an index of 32 bits, then the channel's life.
constexpr uint64_t FETCH = 2;
constexpr int INDEX = 2, LIFE = 34;
constexpr uint32_t HALTED = 8;
constexpr unsigned TIMED_OUT = 5, REFUSED = 6;
enum : uint8_t { INTERRUPT = 1, WRITE_BACK = 2 };

void put(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to[i] = static_cast<uint8_t>(value >> 8 * i);
}

} // namespace

Channel::Channel(bool to_card, Host &host, Card &card, Random &random, uint32_t card_base)
    : to_card_(to_card), host_(host), card_(card), random_(random), card_base_(card_base) {}

// --- software -----------------------------------------------------------------------------------------------------------

void Channel::start(Setup const &setup) {
    host_.write32(block() + reg::CH_CONTROL, 2);
    for (uint64_t const limit = host_.now() + 1000 * US; host_.read32(block() + reg::CH_CONTROL) & 2;)
        if (host_.now() > limit) fail("%s: the reset does not end", name());
    program(setup);
}

// Of a channel that was reset.
void Channel::program(Setup const &setup) {
    setup_ = setup;
    // Rings are aligned to their size, at most to 4 KiB; below and above 4 GiB.
    uint64_t const size = uint64_t{16} << setup.log2, align = std::min<uint64_t>(size, 4096);
    base_ = (random_.percent(50) ? 0x2000'0000u : 0x7'0000'0000u) + (to_card_ ? 0 : 0x800'0000) + align * random_.below(1024);
    record_ = setup.record
                  ? (random_.percent(50) ? 0x3000'0000u : 0x8'0000'0000u) + (to_card_ ? 0 : 0x100'0000) + 8 * random_.below(4096)
                  : 0;
    ring_.assign(size, 0xA5);
    host_.write32(block() + reg::BASE_LO, static_cast<uint32_t>(base_));
    host_.write32(block() + reg::BASE_HI, static_cast<uint32_t>(base_ >> 32));
    host_.write32(block() + reg::LOG2, setup.log2);
    host_.write32(block() + reg::WB_LO, static_cast<uint32_t>(record_));
    host_.write32(block() + reg::WB_HI, static_cast<uint32_t>(record_ >> 32));
    host_.write32(block() + reg::CH_CONTROL, 1 | setup.pio << 2);
    flight_.clear();
    ++life_;
    head_ = fetched_ = tail_ = told_ = working_ = record_head_ = record_status_ = 0;
    record_seen_ = resetting_ = looked_ = false;
    fetch_errors_ = 0;
    head_answer_ = status_answer_ = nullptr;
    interrupt_due_ = UINT64_MAX;
    progress = host_.now();
}

uint64_t Channel::poll(uint64_t budget) {
    if (resetting_) {
        if (!head_answer_) head_answer_ = host_.read(0, block() + reg::CH_CONTROL, 4);
        if (head_answer_->complete) {
            bool const over = (head_answer_->data.at(0) & 2) == 0;
            head_answer_ = nullptr;
            if (over) after_reset();
        }
        return std::exchange(ended_, 0);
    }
    if (record_seen_) {
        record_seen_ = false;
        at_head(record_head_, record_status_);
    } else if (!setup_.record && !flight_.empty() && host_.now() >= next_look_) {
        if (!status_answer_) { // the status first, as in look()
            status_answer_ = host_.read(0, block() + reg::CH_STATUS, 4);
            head_answer_ = host_.read(0, block() + reg::HEAD, 4);
        } else if (status_answer_->complete && head_answer_->complete) {
            uint32_t head = 0;
            std::memcpy(&head, head_answer_->data.data(), 4);
            uint32_t const status = status_answer_->data.at(0);
            head_answer_ = status_answer_ = nullptr;
            next_look_ = host_.now() + random_.below(3 * US);
            at_head(head, status);
        }
    }
    if (!resetting_ && budget != 0 && random_.percent(20)) {
        for (uint64_t i = random_.within(1, std::min<uint64_t>(budget, setup_.batch)); i > 0 && has_room(); --i) random_transfer();
        doorbell();
    }
    return std::exchange(ended_, 0);
}

void Channel::look() {
    interrupted();
    if (resetting_) return;
    looked_ = true;
    // The status is read first: it may not be newer than HEAD.
    uint32_t const status = host_.read32(block() + reg::CH_STATUS), head = host_.read32(block() + reg::HEAD);
    head_answer_ = status_answer_ = nullptr;
    if (record_seen_ && record_head_ - head >= 0x8000'0000u) record_seen_ = false; // an older one
    at_head(head, status);
}

void Channel::random_transfer() {
    static constexpr uint32_t LONGEST[] = {64, 64, 64, 64, 300, 300, 300, 2048, 2048, UINT32_MAX};
    uint32_t const length = static_cast<uint32_t>(random_.within(1, std::min(LONGEST[random_.below(10)], setup_.longest)));
    static constexpr uint64_t WINDOWS[] = {0x8000'0000, 0xFF80'0000, 0x3F'C000'0000}; // the second one lies across 4 GiB
    uint64_t host_address =
        WINDOWS[random_.below(3)] + (to_card_ ? 0 : 0x1000'0000) * (random_.percent(50) ? 1 : 2) + random_.below(16 << 20);
    if (random_.percent(20)) host_address &= ~uint64_t{4095};
    // Across a multiple of 4 GiB, sometimes the first: only rarely the same one, so that requests tell which descriptor is meant.
    if (random_.percent(10))
        host_address = (random_.percent(10) ? 1 : random_.within(0x1000, 0x1FFF)) * 0x1'0000'0000 - random_.below(length + 1);
    // Often next to what was written last: the bytes around a transfer have to stay.
    uint32_t local = static_cast<uint32_t>(random_.percent(40) ? last_local_ : random_.below(Card::SIZE));
    if (random_.percent(20)) local &= ~uint32_t{31};
    if (local + length > Card::SIZE) return;
    if (post(local, length, host_address)) last_local_ = local + length;
}

bool Channel::post(uint32_t local, uint32_t length, uint64_t host_address) {
    if (!has_room()) return false;
    if (!(to_card_ ? card_.lock_to_write(local, length) : card_.lock_to_read(local, length))) return false;
    uint8_t flags = static_cast<uint8_t>(random_.percent(15) * INTERRUPT | random_.percent(15) * WRITE_BACK);
    if (flight_.empty()) progress = host_.now();
    flight_.push_back(Descriptor{host_address, local, length, flags});
    uint32_t card_address = card_base_ + local;
    if (random_.once_in(4 * host_.manners.faults)) { // nothing that the device may start
        flight_.back().errors = 1 << REFUSED;
        if (random_.percent(50)) flags |= static_cast<uint8_t>(4 << random_.below(6));
        else card_address = 0xFFFF'FFF0 - static_cast<uint32_t>(random_.below(1 << 20));
    }
    uint8_t bytes[16];
    put(bytes, host_address, 8);
    put(bytes + 8, card_address, 4);
    put(bytes + 12, length, 3);
    bytes[15] = flags;
    if (setup_.pio) {
        // The order of the DWs is free but for the last; a write may bring several.
        if (random_.percent(50)) host_.write(0, block() + reg::PIO, bytes, 16);
        else
            for (uint32_t i = 0; i < 16; i += 4) host_.write(0, block() + reg::PIO + i, bytes + i, 4);
        ++fetched_;
        ++told_;
    } else {
        std::memcpy(&ring_[16 * (tail_ & (slots() - 1))], bytes, 16);
    }
    ++tail_;
    return true;
}

void Channel::doorbell() {
    if (told_ == tail_) return;
    told_ = tail_;
    host_.write32(block() + reg::TAIL, tail_);
}

// --- what the device says -----------------------------------------------------------------------------------------------

// HEAD and status, by a record or read from the registers.
void Channel::at_head(uint32_t head, uint32_t status) {
    if (head - head_ > flight_.size()) fail("%s: HEAD goes from %u to %u, posted are %zu", name(), head_, head, flight_.size());
    for (; head_ != head; ++head_) {
        retire(flight_.front());
        flight_.pop_front();
        progress = host_.now();
    }
    if (working_ - head_ >= 0x8000'0000u) working_ = head_;
    if (status & HALTED) halted(status & 7);
}

void Channel::retire(Descriptor const &descriptor) {
    if (descriptor.errors != 0) fail("%s: descriptor %u is done, but had errors %#x", name(), head_, descriptor.errors);
    if (descriptor.asked != descriptor.length || descriptor.moved != descriptor.length)
        fail("%s: descriptor %u is done after %u requested and %u moved of %u bytes", name(), head_, descriptor.asked,
             descriptor.moved, descriptor.length);
    if (to_card_) {
        std::vector<uint8_t> data(descriptor.length);
        fill_pattern(descriptor.host, data.data(), descriptor.length);
        card_.write(descriptor.local, data.data(), descriptor.length);
    }
    card_.unlock(descriptor.local, descriptor.length);
    // Its interrupt may have come before HEAD was looked at.
    if ((descriptor.flags & INTERRUPT) && wants_interrupts && interrupted_at_ < descriptor.moved_at && interrupt_due_ == UINT64_MAX)
        interrupt_due_ = host_.now() + 100 * US;
    ++counts.good;
    ++ended_;
    counts.bytes += descriptor.length;
}

void Channel::halted(uint32_t error) {
    unsigned expected = flight_.empty() ? 0 : flight_.front().errors;
    if (fetch_error_until_ - head_ - 1 < 0x8000'0000u) expected |= fetch_errors_;
    if (refusals_) expected |= 1 << REFUSED;
    if (drops_) expected |= 1 << TIMED_OUT;
    if (!(expected >> error & 1))
        fail("%s: halted with error %u at descriptor %u, where errors %#x can be", name(), error, head_, expected);
    ++counts.failed;
    ++ended_;
    // The next one starts with the reset done; what it asks for until then is not answered for.
    host_.write32(block() + reg::CH_CONTROL, 2);
    head_answer_ = status_answer_ = nullptr;
    resetting_ = true;
    ++counts.resets;
    progress = host_.now();
}

void Channel::after_reset() {
    for (Descriptor const &descriptor : flight_) drop(descriptor);
    counts.dropped += flight_.size() - (flight_.empty() ? 0 : 1);
    Setup const setup = setup_;
    program(setup);
}

// A descriptor whose end nobody will hear of: its bytes may have been written.
void Channel::drop(Descriptor const &descriptor) {
    // After refusals, the descriptor of the other requests is not certain.
    uint32_t const bytes = refusals_ ? descriptor.length : descriptor.asked;
    if (to_card_) {
        std::vector<uint8_t> data(bytes);
        fill_pattern(descriptor.host, data.data(), bytes);
        card_.maybe_write(descriptor.local, data.data(), bytes);
    }
    card_.unlock(descriptor.local, descriptor.length);
}

void Channel::forget() {
    for (Descriptor const &descriptor : flight_) drop(descriptor);
    counts.dropped += flight_.size();
    flight_.clear();
    resetting_ = false;
    interrupt_due_ = UINT64_MAX;
}

// --- what the device does -----------------------------------------------------------------------------------------------

void Channel::fetch(uint64_t address, uint8_t *to, uint32_t bytes) const { std::memcpy(to, &ring_[address - base_], bytes); }

uint64_t Channel::reads_ring(uint64_t address, uint32_t bytes) {
    uint32_t const size = 1u << setup_.log2;
    uint64_t const slot = (address - base_) / 16;
    if (setup_.pio) fail("%s: fetches descriptors although they come by PIO", name());
    if (address % 16 != 0 || bytes % 16 != 0 || slot + bytes / 16 > size)
        fail("%s: fetch of %u bytes at slot %.1f", name(), bytes, static_cast<double>(address - base_) / 16);
    if (refusals_) fetched_ += (static_cast<uint32_t>(slot) - fetched_) & (size - 1); // one before it was refused
    if (slot != (fetched_ & (size - 1)))
        fail("%s: fetch at slot %llu, expected %u", name(), static_cast<unsigned long long>(slot), fetched_ & (size - 1));
    fetched_ += bytes / 16;
    if (told_ - fetched_ > size) fail("%s: fetches up to %u, TAIL is %u", name(), fetched_, told_);
    return uint64_t{life_} << LIFE | uint64_t{fetched_} << INDEX | FETCH | !to_card_;
}

// The descriptor whose data come next.
Channel::Descriptor *Channel::current() {
    while (working_ - head_ < flight_.size() && flight_[working_ - head_].asked == flight_[working_ - head_].length) ++working_;
    return working_ - head_ < flight_.size() && fetched_ - working_ - 1 < 0x8000'0000u ? &flight_[working_ - head_] : nullptr;
}

bool Channel::expects(uint64_t address, uint32_t bytes) {
    if (!refusals_) {
        Descriptor const *const descriptor = current();
        return descriptor && descriptor->host + descriptor->asked == address;
    }
    // Refused requests are left out, for good; later ones may still go out before the channel halts.
    for (Descriptor *descriptor = current(); descriptor; ++working_, descriptor = current()) {
        uint64_t const at = address - descriptor->host;
        if (at < descriptor->asked || at + bytes > descriptor->length) continue;
        if (at != descriptor->asked) descriptor->errors |= 1 << REFUSED;
        descriptor->asked = static_cast<uint32_t>(at);
        return true;
    }
    return false;
}

uint64_t Channel::reads_data(uint64_t, uint32_t bytes) {
    Descriptor *descriptor = current();
    if (bytes > descriptor->length - descriptor->asked)
        fail("%s: reads %u bytes beyond the end of descriptor %u", name(), bytes - (descriptor->length - descriptor->asked),
             working_);
    descriptor->asked += bytes;
    return uint64_t{life_} << LIFE | uint64_t{working_} << INDEX | !to_card_;
}

void Channel::writes_data(uint64_t, uint8_t const *data, uint32_t bytes) {
    Descriptor *descriptor = current();
    if (bytes > descriptor->length - descriptor->asked)
        fail("%s: writes %u bytes beyond the end of descriptor %u", name(), bytes - (descriptor->length - descriptor->asked),
             working_);
    uint32_t const at = descriptor->local + descriptor->asked, wrong = card_.mismatch(at, data, bytes);
    if (wrong != bytes)
        fail("%s: descriptor %u (host %#llx, card %#x, %u bytes): byte %u is %#x, the card holds %#x", name(), working_,
             static_cast<unsigned long long>(descriptor->host), descriptor->local, descriptor->length, descriptor->asked + wrong,
             data[wrong], card_.value(at + wrong));
    descriptor->asked += bytes;
    descriptor->moved += bytes;
    descriptor->moved_at = host_.now();
}

void Channel::writes_record(uint64_t address, uint8_t const *data, uint32_t bytes) {
    if (address != record_ || bytes != 8) fail("%s: a write-back record of %u bytes", name(), bytes);
    uint32_t head, status;
    std::memcpy(&head, data, 4);
    std::memcpy(&status, data + 4, 4);
    if (resetting_) return;
    uint32_t const before = record_seen_ ? record_head_ : head_;
    if (looked_ && head - before >= 0x8000'0000u) return; // it was on its way while the registers were read
    if (head - before > flight_.size()) fail("%s: HEAD in a record goes from %u to %u", name(), before, head);
    // All descriptors that it reports as done must be done now.
    for (uint32_t i = before; i != head; ++i)
        if (flight_[i - head_].moved != flight_[i - head_].length)
            fail("%s: a record says %u, but descriptor %u has moved %u of %u bytes", name(), head, i, flight_[i - head_].moved,
                 flight_[i - head_].length);
    record_head_ = head;
    record_status_ = status;
    record_seen_ = true;
}

void Channel::gave(uint64_t who, uint32_t bytes) {
    if (Descriptor *descriptor = of(who)) {
        descriptor->moved += bytes;
        descriptor->moved_at = host_.now();
    }
}

void Channel::spoils(uint64_t who, Fault fault) {
    if ((who & FETCH) != 0 && who >> LIFE == life_) {
        fetch_errors_ |= errors_of(fault);
        fetch_error_until_ = static_cast<uint32_t>(who >> INDEX);
    } else if (Descriptor *descriptor = of(who)) {
        descriptor->errors |= errors_of(fault);
    }
}

// The descriptor whose data are read by `who`, if it is still under way.
Channel::Descriptor *Channel::of(uint64_t who) {
    uint32_t const behind = static_cast<uint32_t>(who >> INDEX) - head_;
    return (who & FETCH) == 0 && who >> LIFE == life_ && behind < flight_.size() ? &flight_[behind] : nullptr;
}

std::string Channel::state() const {
    char text[200];
    std::snprintf(text, sizeof text, "%s: HEAD %u, fetched %u, told %u, tail %u, working on %u%s, record %u/%#x%s", name(), head_,
                  fetched_, told_, tail_, working_, setup_.pio ? " (PIO)" : "", record_head_, record_status_,
                  resetting_ ? ", in reset" : "");
    std::string all = text;
    if (fetch_errors_ != 0) all += ", errors of fetches up to " + std::to_string(fetch_error_until_);
    for (size_t i = 0; i < flight_.size(); ++i) {
        // The oldest, and those whose turn it is.
        if (i >= 4 && (head_ + i + 3 < working_ || head_ + i > working_ + 1)) continue;
        Descriptor const &d = flight_[i];
        std::snprintf(text, sizeof text, "\n    %zu: host %#llx, card %#x, %u bytes, asked %u, moved %u, errors %#x", head_ + i,
                      static_cast<unsigned long long>(d.host), d.local, d.length, d.asked, d.moved, d.errors);
        all += text;
    }
    return all;
}

} // namespace stress
