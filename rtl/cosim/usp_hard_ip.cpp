/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "usp_hard_ip.h"

#include "tlp_header.h"
#include "usp_tlp.h"

#include <algorithm>

namespace tlplab {
namespace {

// All bits of a port, or none.
template <class Port> void set_all(Port &port, unsigned width, bool on) { port = static_cast<Port>(on ? (1u << width) - 1 : 0); }

// Bits of a pulse to come.
template <class Port> void pulse(Port &port, unsigned &count) {
    port = count > 0;
    if (count > 0) --count;
}

constexpr uint32_t RELAXED = 1u << 13; // of the first DW of a header

} // namespace

std::unique_ptr<HardIp> HardIp::make(std::string const &parameters, tlplab_rtl_identity const &identity) {
    return std::make_unique<UspHardIp>(Parameters::parse(parameters, 256, 32768), identity);
}

UspHardIp::UspHardIp(Parameters const &parameters, tlplab_rtl_identity const &identity) : HardIp(parameters) {
    for (unsigned i = 0; i < 6; ++i)
        if (identity.bars[i].size) apertures_[i] = static_cast<uint8_t>(__builtin_ctzll(identity.bars[i].size));
    tell();
}

void UspHardIp::tell() {
    bool const shown = registers_.msi_mask == ports_->cfg_interrupt_msi_data;
    mask_changed_ = mask_changed_ || !shown;
    ports_->cfg_id = registers_.id;
    ports_->cfg_bus_number = static_cast<uint8_t>(registers_.id >> 8);
    ports_->cfg_mps = registers_.mps;
    ports_->cfg_mrrs = registers_.mrrs;
    ports_->cfg_bus_master = registers_.bus_master;
    ports_->cfg_ext_tag = registers_.extended_tag;
    ports_->cfg_msix_enable = ports_->cfg_interrupt_msix_enable = registers_.msix_enable;
    ports_->cfg_msix_mask = ports_->cfg_interrupt_msix_mask = registers_.msix_mask;
    ports_->cfg_intx_disable = registers_.intx_disable;
    ports_->cfg_rcb_status = registers_.read_boundary_128;
    // I/O and memory are enabled for whoever has a request.
    ports_->cfg_function_status = static_cast<uint8_t>(3 | registers_.bus_master << 2 | registers_.intx_disable << 3);
    ports_->user_lnk_up = 1;
    ports_->cfg_interrupt_msi_enable = registers_.msi_enable;
    ports_->cfg_interrupt_msi_mmenable = static_cast<uint8_t>(__builtin_ctz(registers_.msi_vectors));
    ports_->cfg_interrupt_msi_data = registers_.msi_mask;
}

void UspHardIp::forget() {
    posted_.clear();
    non_posted_.clear();
    completions_.clear();
    posted_taken_ = posted_arrived_;
    cq_ = rc_ = Source{};
    np_credits_ = 0;
    reads_ = {};
    rq_sink_ = cc_sink_ = Sink{};
    rq_.clear();
    cc_.clear();
    sequence_.clear();
    msi_sent_ = msi_failed_ = msix_sent_ = msix_failed_ = 0;
    msi_int_ = 0;
    msix_int_ = false;
    intx_int_ = 0;
    intx_told_ = false;
}

// ---- to the core -----------------------------------------------------------------------------------------------------------------

bool UspHardIp::arrive(Received &&received) {
    if (received.kind == TLPLAB_RTL_COMPLETION) {
        completions_.push_back(completion_packet(received));
        return !rc_.showing;
    }
    bool const bar = received.bar != TLPLAB_RTL_NO_BAR;
    if (!bar) received.bar = 0;
    Packet packet = cq_packet(received, registers_.id & 0xFF, bar ? apertures_[received.bar] : 0);
    bool const posted = received.kind == TLPLAB_RTL_POSTED;
    posted_arrived_ += posted;
    (posted ? posted_ : non_posted_).emplace_back(arrivals_++, std::move(packet));
    return !cq_.showing;
}

// RC's descriptor of a completion; its request ends with an error.
Packet UspHardIp::completion_packet(Received const &received) {
    std::vector<uint32_t> const &dws = received.dws;
    Read &read = reads_[dws[2] >> 8 & 0xFF];
    uint32_t const lower = dws[2] & 0x7F, bytes = 4 * data_dws(dws[0]) - (lower & 3);
    uint32_t const byte_count = ((dws[1] - 1) & 0xFFF) + 1;
    Judged judged{NONE, lower, true};
    if (!read.live) judged.error_code = UNKNOWN_TAG;
    else if (dws[2] >> 16 != registers_.id) judged.error_code = OTHER_REQUEST;
    else if ((dws[1] >> 13 & 7) != 0) judged.error_code = REFUSED;
    else if (lower != (read.address & 0x7F)) judged.error_code = BAD_ADDRESS;
    else if (byte_count != read.bytes || !has_data(dws[0])) judged.error_code = BAD_LENGTH;
    else {
        judged.address = read.address & 0xFFF;
        judged.ends = bytes >= read.bytes;
        if (dws[0] & EP) judged.error_code = POISONED;
        read.address += bytes;
        read.bytes -= std::min(bytes, read.bytes);
    }
    read.live = read.live && !judged.ends;
    Packet packet = rc_packet(received, judged);
    packet.after = dws[0] & RELAXED ? 0 : posted_arrived_;
    return packet;
}

// The oldest request that may go: a non-posted one passes nothing that arrived before it.
bool UspHardIp::choose_request(Packet &packet) {
    bool const non_posted =
        !non_posted_.empty() && np_credits_ > 0 && (posted_.empty() || non_posted_.front().first < posted_.front().first);
    auto &queue = non_posted ? non_posted_ : posted_;
    if (queue.empty()) return false;
    np_credits_ -= non_posted;
    packet = std::move(queue.front().second);
    queue.pop_front();
    return true;
}

bool UspHardIp::choose_completion(Packet &packet) {
    if (completions_.empty() || completions_.front().after > posted_taken_) return false;
    packet = std::move(completions_.front());
    completions_.pop_front();
    return true;
}

// The beat of a source was taken. True if a TLP was with it.
bool UspHardIp::taken(Source &source, tlplab_rtl_output &output) {
    source.showing = false;
    for (unsigned i = 0; i < source.endings; ++i) {
        tlplab_rtl_class const kind = source.ending[i].kind;
        ++output.taken[kind];
        posted_taken_ += kind == TLPLAB_RTL_POSTED;
        if (kind == TLPLAB_RTL_COMPLETION) completion_taken(source.ending[i].data_dws);
    }
    return source.endings > 0;
}

// ---- from the core ---------------------------------------------------------------------------------------------------------------

void UspHardIp::end_request() {
    if (rq_sink_.discontinue) return; // the hard IP sends nothing of it
    Made made = rq_tlp(rq_sink_, registers_.id);
    if (!made.wrong.empty()) fail("RQ: " + made.wrong);
    if (made.kind == TLPLAB_RTL_NON_POSTED) {
        std::vector<uint32_t> const &dws = rq_sink_.dws;
        Extent const asked = extent(dws[2] & 0x7FF, rq_sink_.first_be, rq_sink_.last_be);
        reads_[dws[3] & 0xFF] = Read{true, (dws[0] & ~3u) + asked.offset, asked.bytes};
    }
    rq_.push_back(Held{std::move(made.tlp), made.kind, Cause::STREAM, static_cast<uint8_t>(rq_sink_.seq_num)});
}

void UspHardIp::end_completion() {
    if (cc_sink_.discontinue) return;
    Made made = cc_tlp(cc_sink_, registers_.id);
    if (!made.wrong.empty()) fail("CC: " + made.wrong);
    cc_.push_back(Held{std::move(made.tlp), made.kind, Cause::STREAM, 0});
}

void UspHardIp::take_streams() {
    if (ports_->m_axis_rq_tvalid && ports_->m_axis_rq_tready) {
        auto const wrong = read_beat<RqStream>(rq_sink_, ports_->m_axis_rq_tdata, ports_->m_axis_rq_tkeep, ports_->m_axis_rq_tuser,
                                               ports_->m_axis_rq_tlast, [&] { end_request(); });
        if (!wrong.empty()) fail("RQ: " + wrong);
    } else if (!ports_->m_axis_rq_tvalid && rq_sink_.begun) {
        fail("RQ: tvalid falls within a TLP");
    }
    if (ports_->m_axis_cc_tvalid && ports_->m_axis_cc_tready) {
        auto const wrong = read_beat<CcStream>(cc_sink_, ports_->m_axis_cc_tdata, ports_->m_axis_cc_tkeep, ports_->m_axis_cc_tuser,
                                               ports_->m_axis_cc_tlast, [&] { end_completion(); });
        if (!wrong.empty()) fail("CC: " + wrong);
    } else if (!ports_->m_axis_cc_tvalid && cc_sink_.begun) {
        fail("CC: tvalid falls within a TLP");
    }
}

// A message goes behind the requests that RQ has taken.
void UspHardIp::interrupt(Cause cause, uint64_t address, uint32_t data) {
    rq_.push_back(Held{message_tlp(address, data, registers_.id).tlp, TLPLAB_RTL_POSTED, cause, 0});
}

void UspHardIp::take_interrupts() {
    uint32_t const asked = ports_->cfg_interrupt_msi_int;
    if (asked != 0 && msi_int_ == 0) {
        if (asked & (asked - 1)) fail("cfg_interrupt_msi_int: more than one vector at once");
        auto const vector = static_cast<unsigned>(__builtin_ctz(asked)), granted = unsigned{registers_.msi_vectors};
        if (!registers_.msi_enable || registers_.msi_mask >> vector & 1) ++msi_failed_;
        else interrupt(Cause::MSI, registers_.msi_address, (registers_.msi_data & ~(granted - 1)) | (vector & (granted - 1)));
    }
    msi_int_ = asked;
    if (ports_->cfg_interrupt_msix_int && !msix_int_) {
        if (ports_->cfg_interrupt_msix_vec_pending) fail("cfg_interrupt_msix_vec_pending: there is no MSI-X table in this hard IP");
        if (!registers_.msix_enable || registers_.msix_mask) ++msix_failed_;
        else interrupt(Cause::MSIX, ports_->cfg_interrupt_msix_address, ports_->cfg_interrupt_msix_data);
    }
    msix_int_ = ports_->cfg_interrupt_msix_int;
    intx_told_ = intx_int_ != ports_->cfg_interrupt_int;
    intx_int_ = ports_->cfg_interrupt_int;
}

bool UspHardIp::take(tlplab_rtl_output &output) {
    unsigned const request = ports_->pcie_cq_np_req;
    np_credits_ = std::min(NP_CREDITS_MAX, np_credits_ + (request & 2 ? 2 : request & 1));
    take_streams();
    take_interrupts();
    bool ended = false;
    if (cq_.showing && ports_->s_axis_cq_tready) ended |= taken(cq_, output);
    if (rc_.showing && ports_->s_axis_rc_tready) ended |= taken(rc_, output);
    return emit_held(output) || ended;
}

bool UspHardIp::emit_held(tlplab_rtl_output &output) {
    for (; !rq_.empty() && !registers_.bus_master; rq_.pop_front()) {
        msi_failed_ += rq_.front().cause == Cause::MSI;
        msix_failed_ += rq_.front().cause == Cause::MSIX;
    }
    bool const request = !rq_.empty() && has_room(rq_.front().kind), completion = !cc_.empty() && has_room(TLPLAB_RTL_COMPLETION);
    if (!request && !completion) return false;
    bool const from_cc = completion && (!request || cc_turn_);
    cc_turn_ = !from_cc;
    auto &queue = from_cc ? cc_ : rq_;
    Held const &held = queue.front();
    emit(held.tlp.data(), held.tlp.size(), output);
    if (!from_cc && held.cause == Cause::STREAM) sequence_.push_back(held.seq_num);
    msi_sent_ += held.cause == Cause::MSI;
    msix_sent_ += held.cause == Cause::MSIX;
    queue.pop_front();
    return true;
}

// ---- the ports --------------------------------------------------------------------------------------------------------------------

void UspHardIp::drive(bool reset, bool after_edge) {
    if (reset) {
        ports_->s_axis_cq_tvalid = ports_->s_axis_rc_tvalid = 0;
        ports_->m_axis_rq_tready = ports_->m_axis_cc_tready = 0;
    } else {
        // Within a TLP tvalid does not fall.
        if (!cq_.showing && (cq_.begun || !stalls(parameters_.receive_stall)))
            make_beat<CqStream>(cq_, ports_->s_axis_cq_tdata, ports_->s_axis_cq_tkeep, ports_->s_axis_cq_tuser,
                                ports_->s_axis_cq_tlast, [&](Packet &packet) { return choose_request(packet); });
        if (!rc_.showing && (rc_.begun || !stalls(parameters_.receive_stall)))
            make_beat<RcStream>(rc_, ports_->s_axis_rc_tdata, ports_->s_axis_rc_tkeep, ports_->s_axis_rc_tuser,
                                ports_->s_axis_rc_tlast, [&](Packet &packet) { return choose_completion(packet); });
        ports_->s_axis_cq_tvalid = cq_.showing;
        ports_->s_axis_rc_tvalid = rc_.showing;
        set_all(ports_->m_axis_rq_tready, bits::m_axis_rq_tready, rq_.size() < HELD_MAX && !stalls(parameters_.transmit_stall));
        set_all(ports_->m_axis_cc_tready, bits::m_axis_cc_tready, cc_.size() < HELD_MAX && !stalls(parameters_.transmit_stall));
    }
    ports_->pcie_cq_np_req_count = static_cast<uint8_t>(np_credits_);
    if (after_edge) drive_pulses();
    drive_credits();
}

void UspHardIp::drive_pulses() {
    auto const number = [this](auto &port, auto &valid) {
        valid = !sequence_.empty();
        if (!valid) return;
        port = sequence_.front();
        sequence_.pop_front();
    };
    number(ports_->pcie_rq_seq_num0, ports_->pcie_rq_seq_num_vld0);
    if (starts::rq > 1) number(ports_->pcie_rq_seq_num1, ports_->pcie_rq_seq_num_vld1);
    pulse(ports_->cfg_interrupt_msi_sent, msi_sent_);
    pulse(ports_->cfg_interrupt_msi_fail, msi_failed_);
    // A core without ports for MSI-X is answered on those of MSI.
    if (has::cfg_interrupt_msix_sent) pulse(ports_->cfg_interrupt_msix_sent, msix_sent_);
    else if (!ports_->cfg_interrupt_msi_sent) pulse(ports_->cfg_interrupt_msi_sent, msix_sent_);
    if (has::cfg_interrupt_msix_fail) pulse(ports_->cfg_interrupt_msix_fail, msix_failed_);
    else if (!ports_->cfg_interrupt_msi_fail) pulse(ports_->cfg_interrupt_msi_fail, msix_failed_);
    ports_->cfg_interrupt_msi_mask_update = std::exchange(mask_changed_, false);
    ports_->cfg_interrupt_sent = std::exchange(intx_told_, false);
}

// Only the presence of room for one more TLP of a class is known, and not the number of TLPs.
void UspHardIp::drive_credits() {
    bool const posted = has_room(TLPLAB_RTL_POSTED), non_posted = has_room(TLPLAB_RTL_NON_POSTED),
               completion = has_room(TLPLAB_RTL_COMPLETION);
    set_all(ports_->pcie_tfc_nph_av, bits::pcie_tfc_nph_av, non_posted);
    set_all(ports_->pcie_tfc_npd_av, bits::pcie_tfc_npd_av, non_posted);
    bool const available = !has::cfg_fc_sel || ports_->cfg_fc_sel == 4; // the other choices tell of what is not known here
    set_all(ports_->cfg_fc_ph, 7, available && posted);
    set_all(ports_->cfg_fc_pd, 11, available && posted);
    set_all(ports_->cfg_fc_nph, 7, available && non_posted);
    set_all(ports_->cfg_fc_npd, 11, available && non_posted);
    set_all(ports_->cfg_fc_cplh, 7, available && completion);
    set_all(ports_->cfg_fc_cpld, 11, available && completion);
}

bool UspHardIp::nothing_under_way() const {
    return !cq_.begun && !cq_.showing && !rc_.begun && !rc_.showing && !rq_sink_.begun && !cc_sink_.begun && posted_.empty() &&
           non_posted_.empty() && completions_.empty() && rq_.empty() && cc_.empty() && sequence_.empty() && !mask_changed_ &&
           msi_sent_ + msi_failed_ + msix_sent_ + msix_failed_ == 0;
}

bool UspHardIp::intx() const { return ports_->intx || ((ports_->cfg_interrupt_int & 1) && !registers_.intx_disable); }

} // namespace tlplab
