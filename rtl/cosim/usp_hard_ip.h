/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The user's side of a PCI Express hard IP of the UltraScale+ and Versal generation, as C++ around a verilated module: requests of the
 * core (RQ) and their completions (RC), requests for the core (CQ) and its completions (CC), with descriptors (usp_tlp.cpp) on
 * streams of 64 to 512 bits (usp_stream.h). Tags are the client's.
 *
 *   receive   Non-posted requests wait for pcie_cq_np_req; posted ones pass them. A completion waits until the posted requests that arrived
 *             before it have been taken, unless it is relaxed-ordered. CQ knows no poison: a poisoned request is discontinued.
 *   transmit  RQ is in order: a read without room on the link holds what is behind it. CC is not in order with RQ: a sequence number
 *             tells when a request has left. Without bus mastering requests are dropped, and give no sequence number.
 *   MSI       and MSI-X (the table is the core's) become memory writes behind the requests that RQ has taken.
 */
#ifndef TLPLAB_RTL_USP_HARD_IP_H
#define TLPLAB_RTL_USP_HARD_IP_H

#include "hard_ip.h"
#include "usp_stream.h"

#include <array>
#include <deque>
#include <utility>
#include <vector>

namespace tlplab {

class UspHardIp : public HardIp {
public:
    UspHardIp(Parameters const &parameters, tlplab_rtl_identity const &identity);

private:
    static constexpr size_t HELD_MAX = 8;          // TLPs of a stream that wait for room before the core is stalled
    static constexpr unsigned NP_CREDITS_MAX = 32; // of pcie_cq_np_req

    enum class Cause : uint8_t { STREAM, MSI, MSIX };
    struct Held {
        std::vector<uint8_t> tlp;
        tlplab_rtl_class kind;
        Cause cause;
        uint8_t seq_num;
    };
    // A read that the core sent: what the next of its completions must be.
    struct Read {
        bool live;
        uint32_t address, bytes; // of what is still to come
    };

    void tell() override;
    bool arrive(Received &&received) override;
    bool take(tlplab_rtl_output &output) override;
    void drive(bool reset, bool after_edge) override;
    bool emit_held(tlplab_rtl_output &output) override;
    bool nothing_under_way() const override;
    void forget() override;
    bool intx() const override;

    Packet completion_packet(Received const &received);
    bool choose_request(Packet &packet);
    bool choose_completion(Packet &packet);
    bool taken(Source &source, tlplab_rtl_output &output);
    void take_streams();
    void take_interrupts();
    void interrupt(Cause cause, uint64_t address, uint32_t data);
    void end_request();
    void end_completion();
    void drive_pulses();
    void drive_credits();

    std::array<uint8_t, 6> apertures_{}; // of the BARs, as powers of two

    // To the core, with a count that tells the order of requests of different classes.
    std::deque<std::pair<uint64_t, Packet>> posted_, non_posted_;
    std::deque<Packet> completions_;
    uint64_t arrivals_ = 0, posted_arrived_ = 0, posted_taken_ = 0;
    Source cq_, rc_;
    unsigned np_credits_ = 0;
    std::array<Read, 256> reads_{};

    // From the core.
    Sink rq_sink_, cc_sink_;
    std::deque<Held> rq_, cc_;
    bool cc_turn_ = false;
    std::deque<uint8_t> sequence_;           // numbers to be given back
    unsigned msi_sent_ = 0, msi_failed_ = 0; // pulses to come
    unsigned msix_sent_ = 0, msix_failed_ = 0;
    uint32_t msi_int_ = 0; // the core's requests at the last edge
    bool msix_int_ = false, mask_changed_ = false;
    uint8_t intx_int_ = 0;
    bool intx_told_ = false;
};

} // namespace tlplab

#endif
