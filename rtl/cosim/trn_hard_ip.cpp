/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trn_hard_ip.h"

#include "tlp_header.h"

#include <algorithm>

namespace tlplab {
namespace {

// Beats on ports of 64 bits (an integer) and of 128 (least significant DW first). `dws` is the TLP's order, `bytes` that on the wire.
[[maybe_unused]] void put_beat(QData &port, uint32_t const *dws, size_t count) {
    port = QData{dws[0]} << 32 | (count > 1 ? dws[1] : 0);
}
[[maybe_unused]] void put_beat(VlWide<4> &port, uint32_t const *dws, size_t count) {
    for (size_t i = 0; i < 4; ++i) port[3 - i] = i < count ? dws[i] : 0;
}
[[maybe_unused]] void get_beat(QData const &port, uint8_t *bytes) {
    to_wire(static_cast<uint32_t>(port >> 32), bytes);
    to_wire(static_cast<uint32_t>(port), bytes + 4);
}
[[maybe_unused]] void get_beat(VlWide<4> const &port, uint8_t *bytes) {
    for (size_t i = 0; i < 4; ++i) to_wire(port[3 - i], bytes + 4 * i);
}

} // namespace

std::unique_ptr<HardIp> HardIp::make(std::string const &parameters, tlplab_rtl_identity const &) {
    // Of the buffers of that generation there are many sizes: all fits unless it is told otherwise.
    return std::make_unique<TrnHardIp>(Parameters::parse(parameters, UINT64_MAX, UINT64_MAX));
}

TrnHardIp::TrnHardIp(Parameters const &parameters) : HardIp(parameters) { tell(); }

void TrnHardIp::tell() {
    ports_->cfg_id = registers_.id;
    ports_->cfg_mps = registers_.mps;
    ports_->cfg_mrrs = registers_.mrrs;
    ports_->cfg_bus_master = registers_.bus_master;
    ports_->cfg_ext_tag = registers_.extended_tag;
    ports_->cfg_msix_enable = registers_.msix_enable;
    ports_->cfg_msix_mask = registers_.msix_mask;
    ports_->cfg_intx_disable = registers_.intx_disable;
}

void TrnHardIp::forget() {
    ordered_.clear();
    non_posted_.clear();
    current_.dws.clear();
    held_.clear();
    sent_dws_ = 0;
}

bool TrnHardIp::arrive(Received &&received) {
    auto &queue = received.kind == TLPLAB_RTL_NON_POSTED ? non_posted_ : ordered_;
    queue.emplace_back(arrivals_++, std::move(received));
    return !showing_;
}

bool TrnHardIp::take(tlplab_rtl_output &output) {
    non_posted_ok_ = ports_->trn_rnp_ok;
    bool const sent = ports_->trn_tsrc_rdy && ports_->trn_tdst_rdy && take_beat(output);
    if (!ports_->trn_rsrc_rdy || !ports_->trn_rdst_rdy) return sent;
    showing_ = false;
    given_ += std::min<size_t>(DWS, current_.dws.size() - given_);
    if (given_ < current_.dws.size()) return sent;
    if (current_.kind == TLPLAB_RTL_COMPLETION) completion_taken(data_dws(current_.dws[0]));
    current_.dws.clear();
    ++output.taken[current_.kind];
    return true;
}

void TrnHardIp::drive(bool reset, bool) {
    if (reset || !showing_) give_beat(!reset && !stalls(parameters_.receive_stall));
    ports_->trn_tdst_rdy = !reset && held_.size() < HELD_MAX && !stalls(parameters_.transmit_stall);
    uint8_t room = 0;
    for (auto kind : {TLPLAB_RTL_POSTED, TLPLAB_RTL_NON_POSTED, TLPLAB_RTL_COMPLETION})
        room |= static_cast<uint8_t>(has_room(kind) << kind);
    for (Held const &held : held_) room &= static_cast<uint8_t>(~(1u << held.kind));
    ports_->trn_tbuf_av = reset ? 0 : room;
}

void TrnHardIp::give_beat(bool allowed) {
    if (allowed && current_.dws.empty()) choose_received();
    showing_ = allowed && !current_.dws.empty();
    ports_->trn_rsrc_rdy = showing_;
    if (!showing_) return;
    size_t const left = current_.dws.size() - given_, count = std::min<size_t>(DWS, left);
    put_beat(ports_->trn_rd, &current_.dws[given_], count);
    ports_->trn_rsof = given_ == 0;
    ports_->trn_reof = left == count;
    ports_->trn_rrem = static_cast<uint8_t>(count - 1);
    ports_->trn_rbar = current_.bar == TLPLAB_RTL_NO_BAR ? 0 : current_.bar;
}

// The oldest TLP that may go: a non-posted one passes nothing that arrived before it.
void TrnHardIp::choose_received() {
    bool const non_posted =
        !non_posted_.empty() && non_posted_ok_ && (ordered_.empty() || non_posted_.front().first < ordered_.front().first);
    auto &queue = non_posted ? non_posted_ : ordered_;
    if (queue.empty()) return;
    current_ = std::move(queue.front().second);
    queue.pop_front();
    given_ = 0;
}

// True if a TLP is given out with it.
bool TrnHardIp::take_beat(tlplab_rtl_output &output) {
    if (ports_->trn_tsof != (sent_dws_ == 0)) fail(sent_dws_ ? "trn_tsof within a TLP" : "a beat outside of a TLP: no trn_tsof");
    unsigned const count = ports_->trn_teof ? ports_->trn_trem + 1u : DWS;
    if (sent_dws_ + count > TLP_DWS) fail("a TLP without end: no trn_teof after " + std::to_string(TLP_DWS) + " DWs");
    get_beat(ports_->trn_td, &sent_[4 * sent_dws_]);
    sent_dws_ += count;
    return ports_->trn_teof && end_tlp(output);
}

bool TrnHardIp::end_tlp(tlplab_rtl_output &output) {
    uint32_t const dw0 = from_wire(sent_.data());
    if (is_prefix(dw0)) fail("the core sends a TLP with a prefix, which this hard IP does not know");
    if (tlp_dws(dw0) != sent_dws_)
        fail("a TLP of " + std::to_string(sent_dws_) + " DWs, " + std::to_string(tlp_dws(dw0)) + " by its header");
    tlplab_rtl_class const kind = class_of(dw0);
    bool const goes = held_.empty() && has_room(kind);
    if (goes) emit(sent_.data(), 4 * sent_dws_, output);
    else held_.push_back(Held{std::vector<uint8_t>(sent_.begin(), sent_.begin() + 4 * sent_dws_), kind});
    sent_dws_ = 0;
    return goes || emit_held(output);
}

// Gives out the first TLP that has room and may pass those before it. True if there was one.
bool TrnHardIp::emit_held(tlplab_rtl_output &output) {
    // Of what waits: posted requests stop everything, completions all but posted requests, non-posted only each other.
    bool posted_waits = false, non_posted_waits = false, completion_waits = false;
    for (auto held = held_.begin(); held != held_.end(); ++held) {
        bool blocked = posted_waits || !has_room(held->kind);
        if (held->kind == TLPLAB_RTL_COMPLETION) blocked |= completion_waits;
        if (held->kind == TLPLAB_RTL_NON_POSTED) blocked |= completion_waits || non_posted_waits;
        if (blocked) {
            posted_waits |= held->kind == TLPLAB_RTL_POSTED;
            non_posted_waits |= held->kind == TLPLAB_RTL_NON_POSTED;
            completion_waits |= held->kind == TLPLAB_RTL_COMPLETION;
            continue;
        }
        emit(held->tlp.data(), held->tlp.size(), output);
        held_.erase(held);
        return true;
    }
    return false;
}

bool TrnHardIp::nothing_under_way() const {
    return sent_dws_ == 0 && held_.empty() && current_.dws.empty() && ordered_.empty() && non_posted_.empty();
}

bool TrnHardIp::intx() const { return ports_->intx; }

} // namespace tlplab
