/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One channel of tlpdma: the software that fills its ring, and the scoreboard of what the device may do for it.
 *
 * Requests of the device have to come exactly in the order of the descriptors, each byte once. HEAD may only say what is true. A
 * channel stops only for what went wrong, and then it is reset.
 */
#ifndef TLPLAB_STRESS_CHANNEL_H
#define TLPLAB_STRESS_CHANNEL_H

#include "card.h"
#include "host.h"

namespace stress {

// Offsets in BAR0, from the start of a channel's block where not of the whole device.
namespace reg {
enum : uint32_t {
    ID = 0x000,
    CONTROL = 0x008,
    STATUS = 0x00C,
    CONFIG = 0x010,
    IRQ_STATUS = 0x014,
    IRQ_ENABLE = 0x018,
    IRQ_MODERATION = 0x01C,
    ERRORS = 0x020,
    UNEXPECTED = 0x024,
    TIMEOUT = 0x028,
    SCRATCH = 0x040,
    WINDOW = 0x044,
    MEM_MIB = 0x048,
    BASE_LO = 0x00,
    BASE_HI = 0x04,
    LOG2 = 0x08,
    TAIL = 0x0C,
    HEAD = 0x10,
    FETCHED = 0x14,
    WB_LO = 0x18,
    WB_HI = 0x1C,
    CH_CONTROL = 0x20,
    CH_STATUS = 0x24,
    PIO = 0x30,
    PIO_ROOM = 0x40,
    MSIX = 0x8000,
};
}

class Channel {
public:
    // Of the ring and the transfers in it, from one reset to the next.
    struct Setup {
        unsigned log2 = 6;
        bool record = true;       // the device writes HEAD back; else software polls it
        bool pio = false;         // descriptors come by PIO
        uint32_t longest = 16384; // bytes of a transfer
        uint32_t batch = 16;      // most descriptors a doorbell
    };

    // `card_base`: where in the card's memory `card` is.
    Channel(bool to_card, Host &host, Card &card, Random &random, uint32_t card_base);

    // --- software
    void start(Setup const &setup);
    // Looks what is done, and posts up to `budget` more descriptors. Returns how many ended since the last call.
    uint64_t poll(uint64_t budget);
    // One transfer, of these bytes; false if there is no room or they are locked.
    bool post(uint32_t local, uint32_t length, uint64_t host_address);
    void doorbell();
    // Looks at HEAD and status in the registers, whatever records said.
    void look();
    bool empty() const { return flight_.empty() && !resetting_; }
    // The device was reset: nothing of what was under way will end.
    void forget();
    // Bus mastering is off, or will be: whatever is under way may be refused.
    // `drops`: by the hard IP, so that reads end by their time-out.
    void may_refuse(bool may, bool drops = false) {
        refusals_ = may;
        drops_ = may && drops;
    }

    // --- what the device does
    bool in_ring(uint64_t address) const { return address >= base_ && address < base_ + (uint64_t{16} << setup_.log2); }
    bool is_record(uint64_t address) const { return address >= record_ && address < record_ + 8; }
    void fetch(uint64_t address, uint8_t *to, uint32_t bytes) const;
    uint64_t reads_ring(uint64_t address, uint32_t bytes);
    // True if this channel's next read (write) is at this address.
    bool expects(uint64_t address, uint32_t bytes);
    uint64_t reads_data(uint64_t address, uint32_t bytes);
    void writes_data(uint64_t address, uint8_t const *data, uint32_t bytes);
    void writes_record(uint64_t address, uint8_t const *data, uint32_t bytes);
    void gave(uint64_t who, uint32_t bytes);
    void spoils(uint64_t who, Fault fault);
    void interrupted() {
        interrupted_at_ = host_.now();
        interrupt_due_ = UINT64_MAX;
    }
    bool interrupt_due(uint64_t now) const { return now > interrupt_due_; }

    std::string state() const;
    struct Counts {
        uint64_t good = 0, failed = 0, dropped = 0, bytes = 0, resets = 0;
    } counts;
    uint64_t progress = 0; // when something was last done, in fs
    bool wants_interrupts = false;

private:
    struct Descriptor {
        uint64_t host;
        uint32_t local, length;
        uint8_t flags;
        uint32_t asked = 0, moved = 0; // bytes that the device has requested, and that it has been given or has written
        unsigned errors = 0;           // that may be its end, as bits
        uint64_t moved_at = 0;
    };
    uint32_t slots() const { return setup_.pio ? 64 : 1u << setup_.log2; } // for descriptors that are not done
    bool has_room() const { return !resetting_ && flight_.size() < slots(); }

    void program(Setup const &setup);
    void at_head(uint32_t head, uint32_t status);
    void retire(Descriptor const &descriptor);
    void halted(uint32_t status);
    void after_reset();
    void drop(Descriptor const &descriptor);
    void random_transfer();
    uint32_t block() const { return to_card_ ? 0x100 : 0x180; }
    char const *name() const { return to_card_ ? "H2C" : "C2H"; }
    Descriptor *current();
    Descriptor *of(uint64_t who);

    bool const to_card_;
    Host &host_;
    Card &card_;
    Random &random_;
    uint32_t const card_base_;
    Setup setup_;
    uint64_t base_ = 0, record_ = 0;
    std::vector<uint8_t> ring_;
    std::deque<Descriptor> flight_;                         // from HEAD to what software has written
    uint32_t head_ = 0, fetched_ = 0, tail_ = 0, told_ = 0; // told: TAIL as the device knows it
    uint32_t working_ = 0;                                  // index of the first descriptor that has not asked for everything
    uint32_t record_head_ = 0, record_status_ = 0;
    bool record_seen_ = false;
    uint64_t next_look_ = 0, interrupt_due_ = UINT64_MAX, interrupted_at_ = 0, ended_ = 0;
    uint32_t life_ = 0;
    unsigned fetch_errors_ = 0;
    uint32_t fetch_error_until_ = 0; // descriptors before this one may be the first not to be done
    bool resetting_ = false, refusals_ = false, drops_ = false, looked_ = false;
    uint32_t last_local_ = 0;
    std::shared_ptr<Host::Answer> head_answer_, status_answer_;
};

} // namespace stress

#endif
