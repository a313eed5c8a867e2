/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace stress {

void fail(char const *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw std::runtime_error(text);
}

char const *name(Fault fault) {
    static char const *const names[FAULTS] = {"UR",     "CA",   "CRS",  "poisoned",  "lower address", "byte count",
                                              "length", "lost", "late", "requester", "unknown tag"};
    return names[fault];
}

unsigned errors_of(Fault fault) {
    // A completion that is lost or too short may show only when no more come, or by the next one.
    static unsigned const errors[FAULTS] = {1 << 1,          1 << 2,          1 << 2,          1 << 3, 1 << 4, 1 << 4,
                                            1 << 4 | 1 << 5, 1 << 4 | 1 << 5, 1 << 4 | 1 << 5, 0,      0};
    return errors[fault];
}

Host::Host(Device &device, Memory &memory, Random &random, double user_clock)
    : device_(device), memory_(memory), random_(random), user_clock_(user_clock) {}

// --- time ---------------------------------------------------------------------------------------------------------------

void Host::step(uint64_t limit) {
    if (now_ >= room_until_) change_room();
    uint64_t until = std::min(limit, room_until_);
    if (!coming_.empty()) until = std::min(until, std::max(coming_.front().time, link_free_));
    bool const was_idle = idle_;
    uint64_t const before = now_;
    if (until > now_ || room_ != 0) {
        device_.run(std::max(until, now_), room_, *output_);
        now_ = output_->time;
        intx_ = output_->intx;
        idle_ = output_->idle;
        if (!was_idle) counts.cycles += static_cast<double>(now_ - before) * 1e-15 * user_clock_;
        for (size_t kind = 0; kind < 3; ++kind) {
            if (output_->taken[kind] > under_way_[kind]) fail("the device took more TLPs than it was given");
            under_way_[kind] -= output_->taken[kind];
            for (uint32_t i = 0; kind == TLPLAB_RTL_NON_POSTED && i < output_->taken[kind]; ++i) {
                auto const request = requests_.find(delivered_reads_.front());
                delivered_reads_.pop_front();
                if (request != requests_.end()) request->second.delivered = now_;
            }
        }
        if (output_->tlp_bytes != 0) on_tlp(output_->tlp, output_->tlp_bytes);
    }
    deliver();
}

void Host::deliver() {
    while (!coming_.empty() && std::max(coming_.front().time, link_free_) <= now_) {
        std::pop_heap(coming_.begin(), coming_.end());
        Item &item = coming_.back();
        link_free_ = std::max(now_, link_free_) + item.tlp.size() * manners.byte_time;
        waiting_[item.kind].push_back(std::move(item));
        coming_.pop_back();
    }
    for (size_t kind = 0; kind < 3; ++kind) {
        while (!waiting_[kind].empty() && under_way_[kind] < manners.credits) {
            // Non-posted requests pass no posted ones.
            if (kind == TLPLAB_RTL_NON_POSTED && !waiting_[0].empty() && waiting_[0].front().order < waiting_[kind].front().order)
                break;
            Item const item = std::move(waiting_[kind].front());
            waiting_[kind].pop_front();
            ++under_way_[kind];
            ++counts.sent;
            device_.receive(item.tlp.data(), item.tlp.size(), item.bar);
            if (kind == TLPLAB_RTL_NON_POSTED) delivered_reads_.push_back(item.tlp[6]);
            if (item.read == 0) continue;
            Read &read = reads_[item.tag];
            if (read.number != item.read) continue;
            memory_.gave(read.who, item.bytes);
            if (item.last) read.number = 0;
        }
    }
}

void Host::change_room() {
    room_ = 7;
    if (random_.percent(manners.closed)) room_ = static_cast<uint8_t>(random_.below(8));
    room_until_ = now_ + random_.within(10 * NS, room_ == 7 && manners.closed == 0 ? 100 * US : 1 * US);
}

void Host::forget() {
    coming_.clear();
    for (auto &queue : waiting_) queue.clear();
    under_way_ = {};
    reads_ = {};
    requests_.clear();
    delivered_reads_.clear();
}

void Host::schedule(Item item) {
    item.order = order_++;
    coming_.push_back(std::move(item));
    std::push_heap(coming_.begin(), coming_.end());
}

// --- what the device sends ----------------------------------------------------------------------------------------------

void Host::on_tlp(uint8_t const *bytes, size_t count) {
    ++counts.received;
    try {
        Tlp const tlp = read_tlp(bytes, count, rules);
        if (tlp.is_completion()) return on_completion(tlp);
        if (now_ > no_requests_from) fail("a request although bus mastering is off");
        if (tlp.kind & 0x40) memory_.writes(tlp.start(), tlp.data + (tlp.start() - tlp.address), tlp.bytes());
        else on_read(tlp);
    } catch (std::exception const &error) {
        fail("%s:%s", error.what(), describe(bytes, count).c_str());
    }
}

void Host::on_read(Tlp const &tlp) {
    Read &read = reads_[tlp.tag];
    if (read.number != 0 && now_ < read.free_at) fail("tag %u is used although its read is not over", tlp.tag);
    ++counts.reads;
    read = Read{};
    read.number = numbers_++;
    read.start = tlp.start();
    read.bytes = tlp.bytes();
    read.who = memory_.reads(read.start, read.bytes);
    std::optional<Fault> fault;
    if (random_.once_in(manners.faults)) {
        fault = static_cast<Fault>(random_.below(FAULTS));
        ++counts.faults[*fault];
        if (errors_of(*fault) != 0) memory_.spoils(read.who, *fault);
    }
    complete(tlp.tag, fault);
}

// Makes the completions of the read with this tag.
void Host::complete(uint8_t tag, std::optional<Fault> fault) {
    Read &read = reads_[tag];
    std::vector<uint8_t> &data = data_;
    data.assign(read.start % 4 + read.bytes + 12, 0xDD); // around what was asked for, and what may be too much
    memory_.fetch(read.start, data.data() + read.start % 4, read.bytes);
    uint64_t const base = read.start & ~uint64_t{3}, end = read.start + read.bytes;
    std::vector<uint64_t> const &cuts = ends_of_completions(base, end);
    size_t const wrong = fault ? random_.below(cuts.size()) : SIZE_MAX;
    uint64_t time = now_ + manners.delay + random_.below(manners.jitter + 1), at = read.start;
    for (size_t i = 0; i < cuts.size(); ++i) {
        uint64_t const from = at & ~uint64_t{3}, to = cuts[i];
        uint32_t const dws = static_cast<uint32_t>((to - from + 3) / 4);
        CompletionHeader header{COMPLETION_DATA, dws, HOST_ID, SUCCESS, static_cast<uint32_t>(end - at),
                                CARD_ID, tag, static_cast<uint8_t>(at & 0x7F), false};
        Item item{time, 0, {}, TLPLAB_RTL_COMPLETION, TLPLAB_RTL_NO_BAR, read.number, tag, static_cast<uint32_t>(to - at), to == end};
        at = to;
        time += random_.below(manners.jitter / 4 + 1);
        if (i == wrong) {
            spoil(*fault, header, item, end - to);
            if (*fault == LOST || *fault == LATE) {
                // The tag is over when the device's patience is; it may be used again some time later.
                read.free_at = now_ + timeout;
                if (*fault == LOST) continue;
            }
        }
        if (i >= wrong && (*fault >= WRONG_LOWER && *fault <= WRONG_LENGTH)) {
            // Later completions are not expected any more; the tag rests.
            item.last = false;
            read.free_at = now_ + timeout;
            item.bytes = 0;
        }
        bool const over = item.last && header.kind == COMPLETION;
        item.tlp = completion(header, &data[from - base]);
        schedule(std::move(item));
        if (over) return;
    }
}

// The ends of the completions of a read of [base, end): at some of the boundaries, at random and as Max_Payload_Size demands.
std::vector<uint64_t> const &Host::ends_of_completions(uint64_t base, uint64_t end) {
    std::vector<uint64_t> &cuts = cuts_;
    cuts.clear();
    uint64_t const within = manners.rcb - 1;
    for (uint64_t at = base, last = base; at < end;) {
        at = std::min((at | within) + 1, end);
        uint64_t const next = std::min((at | within) + 1, (end + 3) / 4 * 4);
        if (at == end || random_.percent(manners.split) || next - last > rules.max_payload) cuts.push_back(last = at);
    }
    return cuts;
}

// Makes a completion wrong; `after` bytes of its read come after it.
void Host::spoil(Fault fault, CompletionHeader &header, Item &item, uint64_t after) {
    switch (fault) {
    case UR:
    case CA:
    case CRS:
        header.kind = COMPLETION;
        header.length = 0;
        header.status = fault == UR ? UNSUPPORTED : fault == CA ? ABORT : RETRY;
        item.last = true;
        break;
    case POISON: header.poisoned = true; break;
    case WRONG_LOWER: header.lower_address ^= static_cast<uint8_t>(1 + random_.below(127)); break;
    case WRONG_COUNT: header.byte_count = (header.byte_count + 1 + static_cast<uint32_t>(random_.below(4094))) % 4096; break;
    case WRONG_LENGTH: {
        // Not just so much more that it is the rest of what was asked for: nobody could tell.
        uint32_t const longer = after != 0 && after <= 4 ? 2 : 1;
        header.length += random_.percent(50) || header.length == 1 ? longer : -1;
        break;
    }
    case LOST: break;
    case LATE:
        item.time = now_ + timeout + timeout / 2;
        item.read = 0;
        break;
    case UNKNOWN_TAG:
        if (rules.tags < 256) {
            stray(static_cast<uint8_t>(random_.within(rules.tags, 255)), CARD_ID, item.time);
            break;
        }
        [[fallthrough]]; // there is none
    default: stray(header.tag, static_cast<uint16_t>(CARD_ID ^ (1 + random_.below(0xFFFF))), item.time);
    }
}

// A completion that nobody waits for.
void Host::stray(uint8_t tag, uint16_t requester, uint64_t time) {
    uint8_t const junk[64] = {0xBA, 0xDB, 0xAD};
    uint32_t const dws = static_cast<uint32_t>(random_.within(1, 16));
    CompletionHeader const header{COMPLETION_DATA, dws, HOST_ID, SUCCESS, 4 * dws, requester, tag, 0, false};
    schedule(Item{time, 0, completion(header, junk), TLPLAB_RTL_COMPLETION, TLPLAB_RTL_NO_BAR});
}

// --- requests to the device ---------------------------------------------------------------------------------------------

void Host::write(unsigned bar, uint32_t offset, uint8_t const *data, uint32_t bytes, bool poisoned) {
    uint64_t const address = (bar == 0 ? BAR0 : BAR2) + offset;
    last_posted_ = std::max(last_posted_, now_) + random_.below(manners.jitter / 8 + 1);
    schedule(Item{last_posted_, 0, request(bar == 0 ? MEMORY_WRITE : MEMORY_WRITE_64, HOST_ID, 0, address, bytes, data, poisoned),
                  TLPLAB_RTL_POSTED, static_cast<uint8_t>(bar)});
}

void Host::write32(uint32_t offset, uint32_t value) {
    uint8_t const data[4] = {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value >> 16),
                             static_cast<uint8_t>(value >> 24)};
    write(0, offset, data, 4);
}

void Host::message() {
    std::vector<uint8_t> tlp(16);
    tlp[0] = MESSAGE;
    tlp[7] = 0x00; // unlock
    last_posted_ = std::max(last_posted_, now_);
    schedule(Item{last_posted_, 0, tlp, TLPLAB_RTL_POSTED, TLPLAB_RTL_NO_BAR});
}

std::shared_ptr<Host::Answer> Host::read(unsigned bar, uint32_t offset, uint32_t bytes, uint8_t kind) {
    while (requests_.count(next_tag_) != 0) ++next_tag_;
    auto const answer = std::make_shared<Answer>();
    uint64_t const address = (bar == 0 ? BAR0 : BAR2) + offset;
    if (kind == 0xFF) kind = bar == 0 ? MEMORY_READ : MEMORY_READ_64;
    uint8_t const operand[8] = {};
    requests_[next_tag_] = Request{answer, address, bytes, UINT64_MAX};
    last_posted_ = std::max(last_posted_, now_);
    schedule(Item{last_posted_, 0, request(kind, HOST_ID, next_tag_, address, bytes, operand, false), TLPLAB_RTL_NON_POSTED,
                  static_cast<uint8_t>(bar)});
    ++next_tag_;
    return answer;
}

uint32_t Host::read32(uint32_t offset) {
    auto const answer = read(0, offset, 4);
    uint64_t const limit = now_ + 1000 * US;
    while (!answer->complete) {
        if (now_ >= limit) fail("register %#x is not answered for 1 ms", offset);
        step(now_ + US);
    }
    if (answer->status != SUCCESS) fail("reading register %#x ends with status %u", offset, answer->status);
    auto const &data = answer->data;
    return data[0] | uint32_t{data[1]} << 8 | uint32_t{data[2]} << 16 | uint32_t{data[3]} << 24;
}

void Host::on_completion(Tlp const &tlp) {
    auto const found = requests_.find(tlp.tag);
    if (found == requests_.end() || tlp.requester != HOST_ID) fail("a completion without a request");
    Request &request = found->second;
    Answer &answer = *request.answer;
    if (request.delivered == UINT64_MAX) fail("a completion before its request was taken");
    answer.status = tlp.status;
    if (tlp.status == SUCCESS) {
        if (tlp.byte_count != request.left) fail("byte count %u, expected %u", tlp.byte_count, request.left);
        if (tlp.address != (request.start & 0x7F))
            fail("lower address %#x, expected %#x", static_cast<unsigned>(tlp.address),
                 static_cast<unsigned>(request.start & 0x7F));
        uint32_t const offset = request.start % 4, bytes = std::min(4 * tlp.length - offset, request.left);
        answer.data.insert(answer.data.end(), tlp.data + offset, tlp.data + offset + bytes);
        request.start += bytes;
        request.left -= bytes;
        if (request.left != 0) return;
    }
    answer.complete = true;
    answer.took = now_ - request.delivered;
    counts.slowest_answer = std::max(counts.slowest_answer, answer.took);
    requests_.erase(found);
}

std::string Host::state() const {
    char text[200];
    std::snprintf(text, sizeof text,
                  "host: %zu TLPs coming, waiting %zu/%zu/%zu, under way %u/%u/%u (P/NP/Cpl), %zu requests, room %u, reads by tag:",
                  coming_.size(), waiting_[0].size(), waiting_[1].size(), waiting_[2].size(), under_way_[0], under_way_[1],
                  under_way_[2], requests_.size(), room_);
    std::string all = text;
    for (size_t tag = 0; tag < reads_.size(); ++tag)
        if (reads_[tag].number != 0)
            all += " " + std::to_string(tag) +
                   (reads_[tag].free_at == UINT64_MAX ? ""
                    : now_ < reads_[tag].free_at      ? " (rests)"
                                                      : " (rested)");
    return all;
}

bool Host::quiet() const {
    if (!coming_.empty() || !requests_.empty()) return false;
    for (size_t kind = 0; kind < 3; ++kind)
        if (!waiting_[kind].empty() || under_way_[kind] != 0) return false;
    return std::all_of(reads_.begin(), reads_.end(), [&](Read const &read) { return read.number == 0 || now_ >= read.free_at; });
}

} // namespace stress
