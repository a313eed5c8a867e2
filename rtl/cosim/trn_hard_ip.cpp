/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trn_hard_ip.h"

#include "Vtop___024root.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

// Of the verilated module: all; which events there are; what follows from events.
void Vtop___024root___eval(Vtop___024root *);
void Vtop___024root___eval_triggers_vec__act(Vtop___024root *);
void Vtop___024root___eval_nba(Vtop___024root *);

namespace tlplab {
namespace {

// What of the first DW of a header is needed here; bits as in the specification's figures.
bool has_data(uint32_t dw0) { return dw0 >> 30 & 1; }
unsigned header_dws(uint32_t dw0) { return dw0 >> 29 & 1 ? 4 : 3; }
bool is_prefix(uint32_t dw0) { return dw0 >> 31; }
bool has_digest(uint32_t dw0) { return dw0 >> 15 & 1; }
constexpr uint32_t TD = 1u << 15;

size_t tlp_dws(uint32_t dw0) {
    size_t const length = dw0 & 0x3FF ? dw0 & 0x3FF : 1024;
    return header_dws(dw0) + (has_data(dw0) ? length : 0) + has_digest(dw0);
}

tlplab_rtl_class class_of(uint32_t dw0) {
    unsigned const type = dw0 >> 24 & 0x1F;
    if ((type & 0x1E) == 0x0A) return TLPLAB_RTL_COMPLETION;
    if ((type & 0x18) == 0x10 || (type == 0 && has_data(dw0))) return TLPLAB_RTL_POSTED;
    return TLPLAB_RTL_NON_POSTED;
}

uint32_t from_wire(uint8_t const *bytes) {
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void to_wire(uint32_t dw, uint8_t *bytes) {
    bytes[0] = static_cast<uint8_t>(dw >> 24); // one store
    bytes[1] = static_cast<uint8_t>(dw >> 16);
    bytes[2] = static_cast<uint8_t>(dw >> 8);
    bytes[3] = static_cast<uint8_t>(dw);
}

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

uint64_t parse_number(std::string const &key, std::string const &value, uint64_t low, uint64_t high) {
    size_t used = 0;
    uint64_t number = 0;
    try {
        number = std::stoull(value, &used, 10);
    } catch (std::exception const &) {
    }
    if (value.empty() || used != value.size() || value[0] == '-' || number < low || number > high)
        throw ModelError(key + " = " + value + ": must be a whole number from " + std::to_string(low) + " to " +
                         std::to_string(high));
    return number;
}

} // namespace

Parameters Parameters::parse(std::string const &lines) {
    Parameters parameters;
    for (size_t at = 0; at < lines.size();) {
        size_t const end = std::min(lines.find('\n', at), lines.size());
        std::string const line = lines.substr(at, end - at);
        at = end + 1;
        size_t const equals = line.find('=');
        std::string const key = line.substr(0, equals);
        std::string const value = equals == std::string::npos ? "" : line.substr(equals + 1);
        // Periods of 1 ns to 1 us.
        if (key == "pcie_clock") parameters.pcie_clock = parse_number(key, value, 1'000'000, 1'000'000'000);
        else if (key == "user_clock") parameters.user_clock = parse_number(key, value, 1'000'000, 1'000'000'000);
        else if (key == "receive_stall") parameters.receive_stall = static_cast<unsigned>(parse_number(key, value, 0, 99));
        else if (key == "transmit_stall") parameters.transmit_stall = static_cast<unsigned>(parse_number(key, value, 0, 99));
        else if (key == "seed") parameters.seed = parse_number(key, value, 0, UINT64_MAX);
        else
            throw ModelError("unknown parameter " + key +
                             "; there are pcie_clock, user_clock (Hz), receive_stall, transmit_stall (%), seed");
    }
    return parameters;
}

TrnHardIp::TrnHardIp(Parameters const &parameters)
    : context_(std::make_unique<VerilatedContext>()), top_(std::make_unique<Vtop>(context_.get())), ports_(*top_),
      parameters_(parameters), pcie_(parameters.pcie_clock), user_(parameters.user_clock),
      quiet_time_(IDLE_EDGES * FEMTOSECONDS / std::min(parameters.pcie_clock, parameters.user_clock)),
      random_(parameters.seed * 2 + 1) {
    top_->eval(); // what is before the first event
    on_drive_ = trigger_of(top_->drive);
    on_pcie_clk_ = trigger_of(top_->pcie_clk);
    on_user_clk_ = trigger_of(top_->user_clk);
    tlplab_rtl_registers registers{};
    registers.mrrs = 2;
    registers.reset = 1;
    configure(registers);
}

template <class Module>
TrnHardIp::Ports::Ports(Module &module)
    : pcie_clk(module.pcie_clk), pcie_rst(module.pcie_rst), user_clk(module.user_clk), trn_rsrc_rdy(module.trn_rsrc_rdy),
      trn_rsof(module.trn_rsof), trn_reof(module.trn_reof), trn_rbar(module.trn_rbar), trn_rdst_rdy(module.trn_rdst_rdy),
      trn_rnp_ok(module.trn_rnp_ok), trn_tsrc_rdy(module.trn_tsrc_rdy), trn_tsof(module.trn_tsof), trn_teof(module.trn_teof),
      trn_tdst_rdy(module.trn_tdst_rdy), trn_tbuf_av(module.trn_tbuf_av), trn_rd(module.trn_rd), trn_td(module.trn_td),
      trn_rrem(module.trn_rrem), trn_trem(module.trn_trem), cfg_id(module.cfg_id), cfg_mps(module.cfg_mps),
      cfg_mrrs(module.cfg_mrrs), cfg_bus_master(module.cfg_bus_master), cfg_ext_tag(module.cfg_ext_tag),
      cfg_msix_enable(module.cfg_msix_enable), cfg_msix_mask(module.cfg_msix_mask), cfg_intx_disable(module.cfg_intx_disable),
      intx(module.intx), idle(module.idle) {}

TrnHardIp::~TrnHardIp() {
#if VM_TRACE_FST
    if (waveform_) waveform_->close();
    if (traced_) traced_->final();
#endif
    if (top_) top_->final();
}

void TrnHardIp::fail(std::string const &what) const {
    char when[40];
    std::snprintf(when, sizeof when, "at %" PRIu64 ".%06" PRIu64 " ns: ", now_ / 1'000'000, now_ % 1'000'000);
    throw ModelError(when + what);
}

void TrnHardIp::configure(tlplab_rtl_registers const &registers) {
    ports_->cfg_id = registers.id;
    ports_->cfg_mps = registers.mps;
    ports_->cfg_mrrs = registers.mrrs;
    ports_->cfg_bus_master = registers.bus_master;
    ports_->cfg_ext_tag = registers.extended_tag;
    ports_->cfg_msix_enable = registers.msix_enable;
    ports_->cfg_msix_mask = registers.msix_mask;
    ports_->cfg_intx_disable = registers.intx_disable;
    registers_ = registers;
    registers_.reset = 0;
    if (registers.reset) start_reset();
    configured_ = changed_ = true;
    wake();
}

// Something came in: not idle until the core has seen it.
void TrnHardIp::wake() {
    idle_ = false;
    busy_until_ = now_ + quiet_time_;
}

void TrnHardIp::start_reset() {
    ordered_.clear();
    non_posted_.clear();
    current_.dws.clear();
    held_.clear();
    sent_dws_ = 0;
    reset_pcie_edges_ = reset_user_edges_ = RESET_EDGES;
}

void TrnHardIp::receive(uint8_t const *tlp, size_t bytes, uint8_t bar) {
    // Hard IPs of that generation know no prefixes; the digest ends in the hard IP.
    while (bytes >= 16 && is_prefix(from_wire(tlp))) tlp += 4, bytes -= 4;
    if (bytes < 12 || bytes % 4 != 0) return;
    Received received{std::vector<uint32_t>(bytes / 4), class_of(from_wire(tlp)), bar};
    for (size_t i = 0; i < received.dws.size(); ++i) received.dws[i] = from_wire(tlp + 4 * i);
    if (has_digest(received.dws[0])) {
        received.dws[0] &= ~TD;
        received.dws.pop_back();
    }
    auto &queue = received.kind == TLPLAB_RTL_NON_POSTED ? non_posted_ : ordered_;
    queue.emplace_back(arrivals_++, std::move(received));
    changed_ = changed_ || !showing_;
    wake();
}

void TrnHardIp::run(uint64_t until, uint8_t room, tlplab_rtl_output &output) {
    std::fill(std::begin(output.taken), std::end(output.taken), 0);
    output.tlp_bytes = 0;
    changed_ = changed_ || room != room_;
    room_ = room;
    bool ended = emit_held(output);
    changed_ = changed_ || ended;
    while (!ended && now_ < until) {
        if (idle_) {
            skip_to(until);
            break;
        }
        uint64_t const time = next_edges();
        if (time >= until) {
            now_ = until;
            break;
        }
        now_ = time;
        ended = evaluate_edges(output);
    }
    output.time = now_;
    output.intx = intx_;
    output.idle = idle_;
}

// When the next edge that has to be evaluated is: rising ones, and falling ones while a waveform is written.
uint64_t TrnHardIp::next_edges() const {
    uint64_t const pcie = tracing() && ports_->pcie_clk ? pcie_.fall() : pcie_.next();
    uint64_t const user = tracing() && ports_->user_clk ? user_.fall() : user_.next();
    return std::min(pcie, user);
}

// Evaluates the edges at `now_`. True if the caller has to hear of what came of them.
bool TrnHardIp::evaluate_edges(tlplab_rtl_output &output) {
    bool const pcie = pcie_.next() == now_, user = user_.next() == now_;
    if (pcie && changed_) { // the core has to see its inputs before the edge
        drive();
        evaluate(false, false);
    }
    bool ended = false;
    if (user && reset_user_edges_ > 0) --reset_user_edges_;
    if (pcie) {
        changed_ = false;
        if (reset_pcie_edges_ == 0) ended = before_pcie_edge(output);
        else if (reset_pcie_edges_ > 1 || reset_user_edges_ == 0) --reset_pcie_edges_;
        if (!tracing()) drive();
    }
    evaluate(pcie, user);
    dump();
    if (!pcie && !user) return false;
    if (user) user_.advance();
    if (pcie) pcie_.advance();
    if (pcie && tracing()) drive();
    return (pcie && look_at_levels()) || ended; // they are of pcie_clk
}

// Evaluates the module, with rising edges of these clocks.
//
// Vtop::eval() takes locks, of which there is no need in one thread, works out again what depends on inputs, of which only the
// registers are some, and looks for events. Where these are known, which module.mk finds out, they are said instead.
void TrnHardIp::evaluate(bool pcie, bool user) {
    if (top_ && ONLY_CLOCKS_TRIGGER) {
        if (configured_) Vtop___024root___eval(top_->rootp);
        top_->rootp->__VnbaTriggered[0] = (driven_ ? on_drive_ : 0) | (pcie ? on_pcie_clk_ : 0) | (user ? on_user_clk_ : 0);
        Vtop___024root___eval_nba(top_->rootp);
        top_->rootp->__VnbaTriggered[0] = 0;
    } else {
        // A rising edge is seen only of what was seen low.
        if (top_ && ((pcie && ports_->pcie_clk) || (user && ports_->user_clk))) {
            ports_->pcie_clk = ports_->user_clk = 0;
            Vtop___024root___eval(top_->rootp);
        }
        if (top_) top_->drive ^= driven_;
        ports_->pcie_clk = pcie || (tracing() && ports_->pcie_clk && pcie_.fall() > now_);
        ports_->user_clk = user || (tracing() && ports_->user_clk && user_.fall() > now_);
#if VM_TRACE_FST
        if (traced_) traced_->eval();
#endif
        if (top_) Vtop___024root___eval(top_->rootp);
    }
    configured_ = driven_ = false;
}

// Verilator's mark of a rising edge of `event`, before anything has run.
uint64_t TrnHardIp::trigger_of(CData &event) {
    event = 1;
    Vtop___024root___eval_triggers_vec__act(top_->rootp);
    uint64_t const mark = top_->rootp->__VactTriggered[0];
    event = 0;
    Vtop___024root___eval_triggers_vec__act(top_->rootp);
    return mark;
}

// Handshakes of the edge that comes now: what the core and the hard IP show each other just before it.
bool TrnHardIp::before_pcie_edge(tlplab_rtl_output &output) {
    non_posted_ok_ = ports_->trn_rnp_ok;
    bool const sent = ports_->trn_tsrc_rdy && ports_->trn_tdst_rdy && take_beat(output);
    if (!ports_->trn_rsrc_rdy || !ports_->trn_rdst_rdy) return sent;
    showing_ = false;
    given_ += std::min<size_t>(DWS, current_.dws.size() - given_);
    if (given_ < current_.dws.size()) return sent;
    current_.dws.clear();
    ++output.taken[current_.kind];
    return true;
}

// Drives the inputs of pcie_clk's domain for its next edge.
void TrnHardIp::drive() {
    bool const reset = reset_pcie_edges_ > 0;
    driven_ = true;
    ports_->pcie_rst = reset;
    if (reset || !showing_) give_beat(!reset && !stalls(parameters_.receive_stall));
    ports_->trn_tdst_rdy = !reset && held_.size() < HELD_MAX && !stalls(parameters_.transmit_stall);
    uint8_t room = room_;
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
    bool const goes = held_.empty() && room_ >> kind & 1;
    if (goes) emit(sent_.data(), 4 * sent_dws_, output);
    else held_.push_back(Held{std::vector<uint8_t>(sent_.begin(), sent_.begin() + 4 * sent_dws_), kind});
    sent_dws_ = 0;
    return goes || emit_held(output);
}

void TrnHardIp::emit(uint8_t const *tlp, size_t bytes, tlplab_rtl_output &output) {
    std::memcpy(output.tlp, tlp, bytes);
    output.tlp_bytes = static_cast<uint16_t>(bytes);
}

// Gives out the first TLP that has room and may pass those before it. True if there was one.
bool TrnHardIp::emit_held(tlplab_rtl_output &output) {
    // Of what waits: posted requests stop everything, completions all but posted requests, non-posted only each other.
    bool posted_waits = false, non_posted_waits = false, completion_waits = false;
    for (auto held = held_.begin(); held != held_.end(); ++held) {
        bool blocked = posted_waits || !(room_ >> held->kind & 1);
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

// True if a level changed that the caller hears of.
bool TrnHardIp::look_at_levels() {
    bool const reset = reset_pcie_edges_ > 0;
    bool const quiet =
        !reset && ports_->idle && sent_dws_ == 0 && held_.empty() && current_.dws.empty() && ordered_.empty() && non_posted_.empty();
    if (!quiet) busy_until_ = now_ + quiet_time_;
    bool const idle = now_ > busy_until_, intx = !reset && ports_->intx;
    bool const changed = (idle && !idle_) || intx != intx_;
    idle_ = idle;
    intx_ = intx;
    return changed;
}

bool TrnHardIp::stalls(unsigned percent) {
    if (percent == 0) return false;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % 100 < percent;
}

// Nothing happens until `time`.
void TrnHardIp::skip_to(uint64_t time) {
    for (Clock const *clock : {pcie_.fall() < user_.fall() ? &pcie_ : &user_, pcie_.fall() < user_.fall() ? &user_ : &pcie_}) {
        if (!tracing() || clock->fall() <= now_ || clock->fall() >= time) continue;
        now_ = clock->fall();
        evaluate(false, false);
        dump();
    }
    pcie_.skip_to(time);
    user_.skip_to(time);
    now_ = time;
}

#if VM_TRACE_FST

bool TrnHardIp::tracing() const { return waveform_ != nullptr; }

void TrnHardIp::trace(std::string const &path) {
    auto context = std::make_unique<VerilatedContext>();
    context->traceEverOn(true);
    auto traced = std::make_unique<Vtraced>(context.get());
    auto waveform = std::make_unique<VerilatedFstC>();
    traced->trace(waveform.get(), 99);
    waveform->open(path.c_str());
    if (!waveform->isOpen()) throw ModelError("cannot write the waveform " + path);
    // Nothing has run: what was driven until now are the registers.
    ports_.emplace(*traced);
    top_.reset();
    context_ = std::move(context);
    traced_ = std::move(traced);
    waveform_ = std::move(waveform);
    configure(registers_);
}

void TrnHardIp::dump() {
    if (waveform_) waveform_->dump(now_);
}

#else

bool TrnHardIp::tracing() const { return false; }
void TrnHardIp::trace(std::string const &path) {
    throw ModelError("no waveform " + path + ": the library was built without lz4.h and zlib.h, or with TRACE=0");
}
void TrnHardIp::dump() {}

#endif

} // namespace tlplab
