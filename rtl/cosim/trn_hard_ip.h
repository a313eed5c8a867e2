/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transaction side of a PCI Express hard IP of the Virtex-5/6 generation ("TRN"), as C++ around a verilated module.
 *
 * TLPs go in and come out as they are on the wire; inside they become beats of 64 or 128 bits, the first DW of a TLP in the most
 * significant DW of a beat, a TLP always starting a beat. The width is that of the module's trn_rd.
 *
 *   receive   A queue in the order of arrival. While the core holds trn_rnp_ok low, posted requests and completions pass the
 *             non-posted ones. The next TLP is chosen when the last beat of the one before is taken, so that one more non-posted
 *             request may come after trn_rnp_ok went low.
 *   transmit  trn_tbuf_av says for which classes there is room. The core may have begun one more TLP of a class when its room
 *             goes; that one waits here, and posted requests and completions pass non-posted ones that wait.
 */
#ifndef TLPLAB_RTL_TRN_HARD_IP_H
#define TLPLAB_RTL_TRN_HARD_IP_H

#include "hard_ip.h"

#include <array>
#include <cstddef>
#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

namespace tlplab {

class TrnHardIp : public HardIp {
public:
    explicit TrnHardIp(Parameters const &parameters);

private:
    using Beat = std::remove_reference_t<decltype(Ports::trn_rd)>;
    static constexpr unsigned DWS = sizeof(Beat) / 4; // of a beat
    static constexpr size_t HELD_MAX = 4;             // TLPs that wait for room before the core is stalled
    static constexpr size_t TLP_DWS = TLPLAB_RTL_TLP_MAX / 4;

    struct Held {
        std::vector<uint8_t> tlp;
        tlplab_rtl_class kind;
    };

    void tell() override;
    bool arrive(Received &&received) override;
    bool take(tlplab_rtl_output &output) override;
    void drive(bool reset, bool after_edge) override;
    bool emit_held(tlplab_rtl_output &output) override;
    bool nothing_under_way() const override;
    void forget() override;
    bool intx() const override;

    void give_beat(bool allowed);
    void choose_received();
    bool take_beat(tlplab_rtl_output &output);
    bool end_tlp(tlplab_rtl_output &output);

    // Receiving: requests and completions that arrived, per class in order, with a count that tells the order between classes.
    std::deque<std::pair<uint64_t, Received>> ordered_, non_posted_;
    uint64_t arrivals_ = 0;
    Received current_{};         // is being given to the core, unless it has no DWs
    size_t given_ = 0;           // DWs of it that were taken
    bool showing_ = false;       // a beat of it is on the port
    bool non_posted_ok_ = false; // trn_rnp_ok before the last edge

    // Transmitting.
    std::array<uint8_t, TLPLAB_RTL_TLP_MAX + sizeof(Beat)> sent_{}; // whole beats, as on the wire
    size_t sent_dws_ = 0;
    std::vector<Held> held_;
};

} // namespace tlplab

#endif
