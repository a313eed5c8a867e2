/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The proof by volume: random transfers of tlpdma in both directions at once, against a host that splits, reorders, delays,
 * holds back and makes mistakes. Every byte is checked on both sides, every TLP for its rules, every descriptor for its end.
 *
 * Many devices are made one after the other, each from a seed of its own, each with other clocks, for some thousands of transfers
 * in rounds of different manners. A failure says seed and time: `--seed` with `--devices 1` repeats it.
 */
#include "channel.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include <unistd.h>

namespace stress {
namespace {

struct Options {
    std::string library;
    uint64_t transfers = 10'000, seed = 1, devices = UINT64_MAX;
    uint64_t of_a_device = 20'000; // transfers
    bool faults = true;
    bool drops = false; // the hard IP drops requests without bus mastering, so that reads end by their time-out
    bool quick = false; // the host is as fast as it can be, without faults: to measure speed
    bool json = false;  // the report
    std::string waveform;
};

struct Totals {
    uint64_t transfers = 0, good = 0, failed = 0, dropped = 0, bytes = 0, resets = 0, tlps = 0, reads = 0, pio = 0, interrupts = 0,
             faults[FAULTS] = {};
    double cycles = 0;
    uint64_t slowest_answer = 0;
};

struct Clocks {
    uint64_t pcie, user;
    unsigned receive_stall, transmit_stall;
};

// One device from its first reset to its last byte.
class Campaign : Memory {
public:
    Campaign(Library const &library, Options const &options, uint64_t seed, Totals &totals)
        : options_(options), totals_(totals), random_(seed), clocks_(choose_clocks()), device_(library, parameters(seed)),
          host_(device_, *this, random_, static_cast<double>(clocks_.user)),
          card_base_(static_cast<uint32_t>(Card::SIZE * random_.below(8))), to_card_(true, host_, card_, random_, card_base_),
          from_card_(false, host_, card_, random_, card_base_) {
        if (!options.waveform.empty()) device_.trace(options.waveform);
    }

    void run(uint64_t transfers);
    uint64_t now() const { return host_.now(); }
    std::string state() const { return to_card_.state() + "\n  " + from_card_.state() + "\n  " + host_.state(); }

private:
    // Memory: who the device means.
    uint64_t reads(uint64_t address, uint32_t bytes) override;
    void fetch(uint64_t address, uint8_t *to, uint32_t bytes) override;
    void gave(uint64_t who, uint32_t bytes) override { channel(who).gave(who, bytes); }
    void spoils(uint64_t who, Fault fault) override { channel(who).spoils(who, fault); }
    void writes(uint64_t address, uint8_t const *data, uint32_t bytes) override;
    Channel &channel(uint64_t who) { return who & 1 ? from_card_ : to_card_; }

    Clocks choose_clocks();
    std::string parameters(uint64_t seed) const;
    void bring_up();
    void set_up_interrupts();
    void round(uint64_t transfers);
    void choose_manners(bool faults);
    void configure(bool reset = false);
    std::string registers();
    void go_on();
    void until_empty();
    void all_of_memory(Channel &channel);
    void small_access();
    void odd_access();
    void check_accesses();
    void without_bus_master();
    void hot_reset();
    void interrupt(unsigned vector);
    Channel::Setup random_setup();

    Options const &options_;
    Totals &totals_;
    Random random_;
    Clocks clocks_;
    Device device_;
    Host host_;
    Card card_;
    uint32_t card_base_;
    Channel to_card_, from_card_;
    tlplab_rtl_registers registers_{};
    bool msix_ = true;
    uint64_t vectors_[3] = {}; // their addresses
    uint32_t messages_[3] = {};
    uint32_t scratch_ = 0;
    unsigned odd_errors_ = 0; // bits of ERRORS that the host has provoked
    struct Access {
        std::shared_ptr<Host::Answer> answer;
        uint32_t at;
        uint32_t bytes; // 0: must end as an unsupported request
    };
    std::deque<Access> accesses_;
};

Clocks Campaign::choose_clocks() {
    static constexpr uint64_t PCIE[] = {62'500'000, 125'000'000, 250'000'000},
                              USER[] = {150'000'000, 166'666'667, 200'000'000, 250'000'000};
    if (options_.quick || random_.percent(60)) return {250'000'000, 200'000'000, 0, 0};
    Clocks clocks{PCIE[random_.below(3)], USER[random_.below(4)], 0, 0};
    if (random_.percent(50)) clocks.receive_stall = static_cast<unsigned>(random_.below(60));
    if (random_.percent(50)) clocks.transmit_stall = static_cast<unsigned>(random_.below(60));
    return clocks;
}

std::string Campaign::parameters(uint64_t seed) const {
    return "pcie_clock=" + std::to_string(clocks_.pcie) + "\nuser_clock=" + std::to_string(clocks_.user) +
           "\nreceive_stall=" + std::to_string(clocks_.receive_stall) +
           "\ntransmit_stall=" + std::to_string(clocks_.transmit_stall) + "\nseed=" + std::to_string(seed) + "\n";
}

// --- what the device does -----------------------------------------------------------------------------------------------

uint64_t Campaign::reads(uint64_t address, uint32_t bytes) {
    for (Channel *channel : {&to_card_, &from_card_})
        if (channel->in_ring(address)) return channel->reads_ring(address, bytes);
    if (!to_card_.expects(address, bytes))
        fail("a read of %#llx, which no transfer needs", static_cast<unsigned long long>(address));
    return to_card_.reads_data(address, bytes);
}

void Campaign::fetch(uint64_t address, uint8_t *to, uint32_t bytes) {
    for (Channel *channel : {&to_card_, &from_card_})
        if (channel->in_ring(address)) return channel->fetch(address, to, bytes);
    fill_pattern(address, to, bytes);
}

void Campaign::writes(uint64_t address, uint8_t const *data, uint32_t bytes) {
    for (Channel *channel : {&to_card_, &from_card_})
        if (channel->is_record(address)) return channel->writes_record(address, data, bytes);
    for (unsigned vector = 0; vector < 3; ++vector) {
        if (address != vectors_[vector]) continue;
        uint32_t message;
        std::memcpy(&message, data, 4);
        if (!msix_ || bytes != 4 || message != messages_[vector])
            fail("MSI-X vector %u: %u bytes, %#x instead of %#x", vector, bytes, message, messages_[vector]);
        return interrupt(vector);
    }
    if (!from_card_.expects(address, bytes))
        fail("a write to %#llx, which no transfer needs", static_cast<unsigned long long>(address));
    from_card_.writes_data(address, data, bytes);
}

void Campaign::interrupt(unsigned vector) {
    ++totals_.interrupts;
    if (vector == 0) to_card_.interrupted();
    if (vector == 1) from_card_.interrupted();
}

// --- what software does -------------------------------------------------------------------------------------------------

void Campaign::configure(bool reset) {
    registers_.id = CARD_ID;
    registers_.msix_enable = msix_;
    registers_.reset = reset;
    device_.configure(registers_);
}

void Campaign::choose_manners(bool faults) {
    Manners &manners = host_.manners;
    manners = Manners{};
    // 256 and 512 bytes where speed is measured: how many TLPs there are must not hang on the seed.
    registers_.mps = static_cast<uint8_t>(options_.quick ? 1 : random_.below(3));
    registers_.mrrs = static_cast<uint8_t>(options_.quick ? 2 : random_.below(3));
    host_.rules.max_payload = 128u << registers_.mps;
    host_.rules.max_read = 128u << registers_.mrrs;
    if (!options_.quick) {
        manners.rcb = random_.percent(50) ? 64 : 128;
        manners.split = static_cast<unsigned>(random_.below(101));
        manners.delay = random_.within(50, 1500) * NS;
        manners.jitter = random_.within(0, 3000) * NS;
        manners.byte_time = random_.within(100'000, 500'000);
        manners.credits = static_cast<unsigned>(random_.within(2, 32));
        manners.closed = random_.percent(50) ? static_cast<unsigned>(random_.below(60)) : 0;
    }
    if (faults) manners.faults = random_.percent(70) ? 1000 : 100;
    configure();
}

Channel::Setup Campaign::random_setup() {
    Channel::Setup setup;
    setup.log2 = static_cast<unsigned>(random_.within(4, 8));
    setup.record = random_.percent(80);
    setup.pio = random_.percent(10);
    setup.longest = random_.percent(70) ? 2048 : 16384;
    setup.batch = static_cast<uint32_t>(random_.within(1, 64));
    if (options_.quick) setup = Channel::Setup{8, true, false, 16384, 64};
    return setup;
}

void Campaign::bring_up() {
    configure();
    for (uint64_t const end = host_.now() + 2 * US; host_.now() < end;) host_.step(end);
    if (uint32_t const id = host_.read32(reg::ID); id != 0x544C5044) fail("ID is %#x", id);
    uint32_t const tags = 1u << (host_.read32(reg::CONFIG) & 0xFF);
    host_.rules.tags = registers_.extended_tag ? tags : std::min(tags, 32u);
    // Long enough for all that can be under way at the slowest of clocks, in ticks of 256 cycles.
    double const bytes_a_second = 8.0 * static_cast<double>(clocks_.pcie) * (1 - clocks_.receive_stall / 100.0);
    double const slowest = 20e-6 + 4 * 512.0 * host_.rules.tags / bytes_a_second;
    uint32_t const ticks = static_cast<uint32_t>(slowest * static_cast<double>(clocks_.user) / 256) + 2;
    host_.timeout = static_cast<uint64_t>((ticks - 1) * 256 * 1e15 / static_cast<double>(clocks_.user));
    host_.write32(reg::TIMEOUT, ticks);
    host_.write32(reg::WINDOW, card_base_ / Card::SIZE);
    host_.write32(reg::CONTROL, 1);
    scratch_ = 0;
    if (uint32_t const value = host_.read32(reg::SCRATCH); value != 0) fail("SCRATCH is %#x after a reset", value);
    set_up_interrupts();
}

void Campaign::set_up_interrupts() {
    msix_ = random_.percent(70);
    for (unsigned vector = 0; vector < 3; ++vector) {
        vectors_[vector] = (random_.percent(50) ? 0xFEE0'0000 : 0x1'FEE0'0000) + 0x1000 * vector + 4 * random_.below(64);
        messages_[vector] = static_cast<uint32_t>(random_.next());
        uint32_t const entry = reg::MSIX + 16 * vector;
        host_.write32(entry, static_cast<uint32_t>(vectors_[vector]));
        host_.write32(entry + 4, static_cast<uint32_t>(vectors_[vector] >> 32));
        host_.write32(entry + 8, messages_[vector]);
        host_.write32(entry + 12, 0);
    }
    configure();
    uint32_t const gap = static_cast<uint32_t>(random_.below(40)), at_once = static_cast<uint32_t>(random_.below(8));
    host_.write32(reg::IRQ_MODERATION, gap | at_once << 16);
    host_.write32(reg::IRQ_ENABLE, 7);
    to_card_.wants_interrupts = from_card_.wants_interrupts = true;
}

// The device's description of itself.
std::string Campaign::registers() {
    std::string text;
    for (uint32_t offset : {0x008u, 0x00Cu, 0x014u, 0x020u, 0x024u, 0x02Cu, 0x10Cu, 0x110u, 0x114u, 0x120u, 0x124u, 0x18Cu, 0x190u,
                            0x194u, 0x1A0u, 0x1A4u}) {
        char part[32];
        std::snprintf(part, sizeof part, " %03x:%x", offset, host_.read32(offset));
        text += part;
    }
    return "; registers" + text;
}

// A moment of the simulation, and what must hold after it.
void Campaign::go_on() {
    host_.step(host_.now() + 500 * NS);
    check_accesses();
    if (host_.intx()) {
        if (msix_) fail("INTx although MSI-X is enabled");
        uint32_t const status = host_.read32(reg::IRQ_STATUS);
        host_.write32(reg::IRQ_STATUS, status);
        // The level goes down some time after the write, but before a read that cannot pass it is answered. What ended until then may
        // have no interrupt of its own: software looks at HEAD only now.
        host_.read32(reg::IRQ_STATUS);
        for (unsigned vector = 0; vector < 3; ++vector)
            if (status >> vector & 1) interrupt(vector);
    }
    for (Channel *channel : {&to_card_, &from_card_}) {
        if (!channel->empty() && host_.now() - channel->progress > 10 * host_.timeout + 2000 * US)
            fail("no progress%s", registers().c_str());
        if (registers_.bus_master && channel->interrupt_due(host_.now())) fail("no interrupt although one is due");
    }
}

void Campaign::until_empty() {
    while (!to_card_.empty() || !from_card_.empty() || !accesses_.empty()) {
        go_on();
        for (Channel *channel : {&to_card_, &from_card_}) totals_.transfers += channel->poll(0);
    }
}

// Transfers all of the card's memory: to give it a content, or to see that it has what it should.
void Campaign::all_of_memory(Channel &channel) {
    channel.start(Channel::Setup{4, true, false, Card::SIZE, 16});
    uint32_t const bytes = 1 << 16;
    for (uint32_t at = 0; at < Card::SIZE; at += bytes)
        if (!channel.post(at, bytes, 0x12'3456'0000 + at)) fail("memory is locked without a transfer");
    channel.doorbell();
    until_empty();
}

void Campaign::run(uint64_t transfers) {
    registers_.mrrs = 2;
    registers_.bus_master = 1;
    registers_.extended_tag = random_.percent(70);
    bring_up();
    registers_.mps = 1;
    host_.rules.max_payload = 256;
    configure();
    all_of_memory(to_card_);
    for (uint64_t const end = totals_.transfers + transfers; totals_.transfers < end;) {
        round(std::min<uint64_t>(end - totals_.transfers, options_.quick ? transfers : 2000));
        if (options_.faults && random_.percent(10)) hot_reset();
    }
    host_.manners = Manners{};
    all_of_memory(from_card_);
    uint32_t allowed = odd_errors_;
    for (int fault = 0; fault < FAULTS; ++fault)
        if (host_.counts.faults[fault] != 0) allowed |= errors_of(static_cast<Fault>(fault)) >> 1 | 1u << 5;
    if (uint32_t const errors = host_.read32(reg::ERRORS); (errors & ~allowed) != 0)
        fail("ERRORS is %#x, can be %#x", errors, allowed);
    for (Channel const *channel : {&to_card_, &from_card_}) {
        totals_.good += channel->counts.good;
        totals_.failed += channel->counts.failed;
        totals_.dropped += channel->counts.dropped;
        totals_.bytes += channel->counts.bytes;
        totals_.resets += channel->counts.resets;
    }
    totals_.tlps += host_.counts.sent + host_.counts.received;
    totals_.reads += host_.counts.reads;
    totals_.cycles += host_.counts.cycles;
    totals_.slowest_answer = std::max(totals_.slowest_answer, host_.counts.slowest_answer);
    for (int fault = 0; fault < FAULTS; ++fault) totals_.faults[fault] += host_.counts.faults[fault];
}

// So many transfers with the same manners and rings.
void Campaign::round(uint64_t transfers) {
    choose_manners(options_.faults && !options_.quick);
    to_card_.start(random_setup());
    from_card_.start(random_setup());
    uint64_t const end = totals_.transfers + transfers;
    unsigned const small = options_.quick ? 0 : static_cast<unsigned>(random_.below(20));
    while (totals_.transfers < end) {
        go_on();
        for (Channel *channel : {&to_card_, &from_card_})
            totals_.transfers += channel->poll(end - std::min(end, totals_.transfers));
        if (random_.percent(small)) small_access();
        if (options_.faults && !options_.quick && random_.once_in(2000)) odd_access();
        if (options_.faults && !options_.quick && random_.once_in(20000)) without_bus_master();
    }
    host_.manners.faults = 0;
    until_empty();
    // Requests that a fault has left under way are over, too.
    for (uint64_t const limit = host_.now() + 20 * host_.timeout; !host_.quiet();) {
        if (host_.now() > limit) fail("the device does not take the TLPs that it was sent");
        go_on();
    }
    if (host_.read32(reg::SCRATCH) != scratch_) fail("SCRATCH is not %#x", scratch_);
    to_card_.may_refuse(false);
    from_card_.may_refuse(false);
}

// A read or write by the processor, of a register or in the window into the card's memory.
void Campaign::small_access() {
    uint32_t const bytes = static_cast<uint32_t>(random_.percent(70) ? random_.within(1, 8) : random_.within(1, 64));
    uint32_t const at = static_cast<uint32_t>(random_.below(Card::SIZE - bytes));
    ++totals_.pio;
    if (accesses_.size() >= 32) return;
    if (random_.percent(20)) {
        scratch_ = static_cast<uint32_t>(random_.next());
        host_.write32(reg::SCRATCH, scratch_);
    } else if (random_.percent(40)) {
        uint8_t data[64];
        if ((at & 4095) + bytes > 4096 || !card_.lock_to_write(at, bytes)) return;
        for (uint32_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(random_.next());
        host_.write(2, at, data, bytes);
        card_.write(at, data, bytes);
        card_.unlock(at, bytes);
    } else if ((at & 4095) + bytes <= 4096 && card_.lock_to_read(at, bytes)) {
        accesses_.push_back({host_.read(2, at, bytes), at, bytes});
    }
}

// Accesses that a device must refuse or drop, and go on.
void Campaign::odd_access() {
    uint8_t const junk[8] = {0xBA, 0xD0, 0xBA, 0xD0, 0xBA, 0xD0, 0xBA, 0xD0};
    switch (random_.below(4)) {
    case 0: // poisoned data are not written
        host_.write(0, reg::SCRATCH, junk, 4, true);
        odd_errors_ |= 1 << 7;
        break;
    case 1:
        accesses_.push_back({host_.read(0, reg::SCRATCH, 4, FETCH_ADD), 0, 0});
        odd_errors_ |= 1 << 6;
        break;
    case 2:
        accesses_.push_back({host_.read(0, reg::SCRATCH, 4, MEMORY_READ_LOCKED), 0, 0});
        odd_errors_ |= 1 << 6;
        break;
    default: host_.message(); odd_errors_ |= 1 << 6;
    }
}

void Campaign::check_accesses() {
    for (auto access = accesses_.begin(); access != accesses_.end();) {
        if (!access->answer->complete) {
            ++access;
            continue;
        }
        Host::Answer const &answer = *access->answer;
        if (answer.status != (access->bytes ? SUCCESS : UNSUPPORTED))
            fail("a read of %u bytes at %#x ends with status %u", access->bytes, access->at, answer.status);
        if (uint32_t const wrong = card_.mismatch(access->at, answer.data.data(), access->bytes); wrong != access->bytes)
            fail("reading %u bytes at %#x of the card: byte %u is %#x, it holds %#x", access->bytes, access->at, wrong,
                 answer.data[wrong], card_.value(access->at + wrong));
        card_.unlock(access->at, access->bytes);
        access = accesses_.erase(access);
    }
}

void Campaign::without_bus_master() {
    to_card_.may_refuse(true, options_.drops);
    from_card_.may_refuse(true, options_.drops);
    for (bool on : {false, true}) {
        registers_.bus_master = on;
        configure();
        // Some KiB may be queued.
        host_.no_requests_from = on ? UINT64_MAX : host_.now() + host_.timeout / 4;
        for (uint64_t const end = host_.now() + host_.timeout; host_.now() < end;) {
            go_on();
            for (Channel *channel : {&to_card_, &from_card_}) totals_.transfers += channel->poll(4);
        }
        // Records and interrupts may have been lost.
        to_card_.look();
        from_card_.look();
    }
}

// In the middle of everything.
void Campaign::hot_reset() {
    choose_manners(false);
    to_card_.start(random_setup());
    from_card_.start(random_setup());
    for (uint64_t const end = host_.now() + random_.below(20 * US); host_.now() < end;) {
        go_on();
        for (Channel *channel : {&to_card_, &from_card_}) totals_.transfers += channel->poll(64);
    }
    configure(true);
    host_.forget();
    to_card_.forget();
    from_card_.forget();
    bring_up();
}

unsigned long long n(uint64_t count) { return count; }

// One line of what was done, for people.
void report(Options const &options, Totals const &totals, uint64_t last_seed, double seconds) {
    std::printf("%s: seeds %llu-%llu: ", options.library.c_str(), n(options.seed), n(last_seed));
    std::printf("%llu transfers (%llu good, %llu failed as they had to, %llu dropped by resets), ", n(totals.transfers),
                n(totals.good), n(totals.failed), n(totals.dropped));
    std::printf("%.1f MB, %llu TLPs, %llu small accesses, %llu interrupts, slowest answer %.2f us",
                static_cast<double>(totals.bytes) / 1e6, n(totals.tlps), n(totals.pio), n(totals.interrupts),
                static_cast<double>(totals.slowest_answer) * 1e-9);
    char const *separator = "; faults: ";
    for (int fault = 0; fault < FAULTS; ++fault) {
        if (totals.faults[fault] == 0) continue;
        std::printf("%s%s %llu", separator, name(static_cast<Fault>(fault)), n(totals.faults[fault]));
        separator = ", ";
    }
    std::printf("; no mismatch, no hang; %.1f M cycles in %.1f CPU-s, %.2f M/s\n", totals.cycles * 1e-6, seconds,
                totals.cycles * 1e-6 / seconds);
}

// The same as a line of JSON.
void report_json(Options const &options, Totals const &totals, uint64_t last_seed, double seconds) {
    std::printf("{\"library\": \"%s\", \"first_seed\": %llu, \"last_seed\": %llu, \"transfers\": %llu, \"good\": %llu, ",
                options.library.c_str(), n(options.seed), n(last_seed), n(totals.transfers), n(totals.good));
    std::printf("\"failed\": %llu, \"dropped\": %llu, \"bytes\": %llu, \"tlps\": %llu, \"small_accesses\": %llu, ",
                n(totals.failed), n(totals.dropped), n(totals.bytes), n(totals.tlps), n(totals.pio));
    std::printf("\"interrupts\": %llu, \"faults\": {", n(totals.interrupts));
    for (int fault = 0; fault < FAULTS; ++fault)
        std::printf("%s\"%s\": %llu", fault ? ", " : "", name(static_cast<Fault>(fault)), n(totals.faults[fault]));
    std::printf("}, \"slowest_answer_us\": %.3f, \"user_cycles\": %.0f, \"cpu_seconds\": %.2f}\n",
                static_cast<double>(totals.slowest_answer) * 1e-9, totals.cycles, seconds);
}

// Transfers of one device. False if something was wrong; that has been told then.
bool run_device(Library const &library, Options const &options, uint64_t seed, Totals &totals) {
    std::unique_ptr<Campaign> campaign;
    try {
        campaign = std::make_unique<Campaign>(library, options, seed, totals);
        campaign->run(std::min(options.of_a_device, options.transfers - totals.transfers));
        return true;
    } catch (std::exception const &error) {
        std::fflush(stdout);
        std::fprintf(stderr, "stress: seed %llu, at %.6f us: %s\n", n(seed),
                     campaign ? static_cast<double>(campaign->now()) * 1e-9 : 0.0, error.what());
        if (campaign) std::fprintf(stderr, "  %s\n", campaign->state().c_str());
        return false;
    }
}

int run(Options const &options) {
    Library const library(options.library);
    Totals totals;
    std::clock_t const start = std::clock();
    uint64_t seed = options.seed;
    for (uint64_t i = 0; i < options.devices && totals.transfers < options.transfers; ++i, ++seed) {
        if (!run_device(library, options, seed, totals)) return 1;
        if (isatty(2)) std::fprintf(stderr, "\r%llu transfers", n(totals.transfers));
    }
    if (isatty(2)) std::fprintf(stderr, "\r");
    auto const how = options.json ? report_json : report;
    how(options, totals, seed - 1, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    return 0;
}

// False if there is no telling what is asked for.
bool read_options(int argc, char **argv, Options &options) {
    for (int i = 1; i < argc; ++i) {
        std::string const option = argv[i];
        char const *value = i + 1 < argc ? argv[i + 1] : "";
        if (option == "--quick") options.quick = true, options.faults = false, options.of_a_device = UINT64_MAX;
        else if (option == "--no-faults") options.faults = false;
        else if (option == "--drops") options.drops = true;
        else if (option == "--json") options.json = true;
        else if (option == "--transfers") options.transfers = std::strtoull(value, nullptr, 10), ++i;
        else if (option == "--seed") options.seed = std::strtoull(value, nullptr, 10), ++i;
        else if (option == "--devices") options.devices = std::strtoull(value, nullptr, 10), ++i;
        else if (option == "--trace") options.waveform = value, options.devices = 1, ++i;
        else if (option[0] != '-' && options.library.empty()) options.library = option;
        else return false;
    }
    return !options.library.empty();
}

} // namespace
} // namespace stress

int main(int argc, char **argv) {
    stress::Options options;
    if (!stress::read_options(argc, argv, options)) {
        std::fprintf(stderr, "usage: stress LIBRARY.so [--transfers N] [--seed S] [--devices N] [--no-faults] [--drops] "
                             "[--quick] [--json] [--trace FILE.fst]\n");
        return 2;
    }
    try {
        return stress::run(options);
    } catch (std::exception const &error) {
        std::fprintf(stderr, "stress: %s\n", error.what());
        return 2;
    }
}
