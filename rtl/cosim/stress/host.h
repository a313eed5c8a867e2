/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A root complex at TLP granularity around a device: time, credits, requests to the device's BARs, and the completions of the
 * device's reads: split, reordered, delayed and, by chance, wrong.
 */
#ifndef TLPLAB_STRESS_HOST_H
#define TLPLAB_STRESS_HOST_H

#include "library.h"
#include "random.h"
#include "tlp.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>

namespace stress {

constexpr uint64_t NS = 1'000'000, US = 1'000 * NS; // in fs
constexpr uint16_t HOST_ID = 0x0000, CARD_ID = 0x0300;
constexpr uint64_t BAR0 = 0xF000'0000, BAR2 = 0x70'0000'0000;

// Faults of the completions of a read.
enum Fault { UR, CA, CRS, POISON, WRONG_LOWER, WRONG_COUNT, WRONG_LENGTH, LOST, LATE, WRONG_REQUESTER, UNKNOWN_TAG, FAULTS };
char const *name(Fault fault);
// The error codes that the device may report for it, as bits; 0 if it must not notice.
unsigned errors_of(Fault fault);

// The behaviour of the host.
struct Manners {
    unsigned rcb = 64;            // read completion boundary, a power of two
    unsigned split = 30;          // percent of the boundaries at which a completion ends
    uint64_t delay = 300 * NS;    // of the first completion, at least
    uint64_t jitter = 1000 * NS;  // more of it, at random; also what reorders completions
    uint64_t byte_time = 250'000; // fs a byte on the link to the device
    unsigned credits = 32;        // TLPs of a class that may be under way to the device
    unsigned closed = 0;          // percent of the time in which there is no room for some class
    uint64_t faults = 0;          // one read in so many gets a fault; 0: none
};

// The judge of the device's requests: the channels and the interrupts behind them.
class Memory {
public:
    virtual ~Memory() = default;
    // The device reads: may it? Returns who has to hear of errors, as a number of its own.
    virtual uint64_t reads(uint64_t address, uint32_t bytes) = 0;
    virtual void fetch(uint64_t address, uint8_t *to, uint32_t bytes) = 0;
    // So many bytes of the read by `who` have been given to the device.
    virtual void gave(uint64_t who, uint32_t bytes) = 0;
    // The read by `who` must end with an error.
    virtual void spoils(uint64_t who, Fault fault) = 0;
    virtual void writes(uint64_t address, uint8_t const *data, uint32_t bytes) = 0;
};

class Host {
public:
    Host(Device &device, Memory &memory, Random &random, double user_clock);

    Manners manners;
    Rules rules{CARD_ID, 128, 512, 32};
    uint64_t timeout = 100 * US; // of the device's reads
    // When the last request that was queued before bus mastering was turned off has left.
    uint64_t no_requests_from = UINT64_MAX;

    uint64_t now() const { return now_; }
    bool intx() const { return intx_; }
    // Time goes on, until something happens or at most until `limit`.
    void step(uint64_t limit);
    // The device was reset: whatever was under way is gone.
    void forget();

    // A write to a BAR; poisoned ones have no effect.
    void write(unsigned bar, uint32_t offset, uint8_t const *data, uint32_t bytes, bool poisoned = false);
    void write32(uint32_t offset, uint32_t value);
    void message();
    // A read of a BAR: a ticket, with which its outcome can be asked for.
    struct Answer {
        bool complete = false;
        Status status = SUCCESS;
        std::vector<uint8_t> data;
        uint64_t took = 0; // fs, from its delivery to its last completion
    };
    std::shared_ptr<Answer> read(unsigned bar, uint32_t offset, uint32_t bytes, uint8_t kind = 0xFF);
    // Goes on until the register is here.
    uint32_t read32(uint32_t offset);
    // Requests of the host and completions of it that the device has not taken, and reads that it has not answered.
    bool quiet() const;
    std::string state() const;

    // Counters of the events so far.
    struct Counts {
        uint64_t sent = 0, received = 0, reads = 0, faults[FAULTS] = {}, reordered = 0;
        double cycles = 0; // of user_clk, evaluated
        uint64_t slowest_answer = 0;
    } counts;

private:
    struct Item { // on its way to the device
        uint64_t time, order;
        std::vector<uint8_t> tlp;
        tlplab_rtl_class kind;
        uint8_t bar;
        uint64_t read = 0;  // the read that this completes, and its tag
        uint8_t tag = 0;
        uint32_t bytes = 0; // of its data that are right
        bool last = false;  // the tag is over with it
        bool operator<(Item const &other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
    };
    struct Read { // of the device
        uint64_t number = 0, who = 0, start = 0;
        uint32_t bytes = 0;
        uint64_t free_at = UINT64_MAX; // from then on its tag may be used again
    };
    struct Request { // to the device
        std::shared_ptr<Answer> answer;
        uint64_t start;
        uint32_t left;
        uint64_t delivered = UINT64_MAX;
    };

    void schedule(Item item);
    void deliver();
    void change_room();
    void on_tlp(uint8_t const *bytes, size_t count);
    void on_read(Tlp const &tlp);
    void on_completion(Tlp const &tlp);
    void complete(uint8_t tag, std::optional<Fault> fault);
    std::vector<uint64_t> const &ends_of_completions(uint64_t base, uint64_t end);
    void spoil(Fault fault, CompletionHeader &header, Item &item, uint64_t after);
    void stray(uint8_t tag, uint16_t requester, uint64_t time);

    Device &device_;
    Memory &memory_;
    Random &random_;
    double user_clock_;
    uint64_t now_ = 0, order_ = 0, link_free_ = 0, last_posted_ = 0, last_read_ = 0, numbers_ = 1;
    bool intx_ = false, idle_ = false;
    uint8_t room_ = 7;
    uint64_t room_until_ = 0;
    std::vector<Item> coming_; // a heap, the earliest first
    std::array<std::deque<Item>, 3> waiting_; // for credits
    std::array<unsigned, 3> under_way_{};
    std::array<Read, 256> reads_{};
    std::map<uint8_t, Request> requests_;
    std::deque<uint8_t> delivered_reads_; // tags of `requests_` under way to the device, in order
    uint8_t next_tag_ = 0;
    std::vector<uint8_t> data_;  // of the completions that are being made
    std::vector<uint64_t> cuts_; // and where they end
    std::unique_ptr<tlplab_rtl_output> output_ = std::make_unique<tlplab_rtl_output>();
};

[[noreturn]] void fail(char const *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace stress

#endif
