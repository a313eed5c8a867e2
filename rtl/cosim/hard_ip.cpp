/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hard_ip.h"
#include "tlp_header.h"

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

// Bytes of data in a buffer that is counted in flow control's units.
uint64_t in_credits(size_t dws) { return (dws + 3) / 4 * 16; }

} // namespace

Parameters Parameters::parse(std::string const &lines, uint64_t completion_headers, uint64_t completion_bytes) {
    Parameters parameters;
    parameters.completion_headers = completion_headers;
    parameters.completion_bytes = completion_bytes;
    for (size_t at = 0; at < lines.size();) {
        size_t const end = std::min(lines.find('\n', at), lines.size());
        std::string const line = lines.substr(at, end - at);
        at = end + 1;
        size_t const equals = line.find('=');
        std::string const key = line.substr(0, equals);
        std::string const value = equals == std::string::npos ? "" : line.substr(equals + 1);
        // Periods of 1 ns to 1 us.
        if (key == "pcie_clock") parameters.pcie_clock = parse_number(key, value, 1'000'000, 1'000'000'000);
        else if (key == "user_clock" && has::user_clk) parameters.user_clock = parse_number(key, value, 1'000'000, 1'000'000'000);
        else if (key == "receive_stall") parameters.receive_stall = static_cast<unsigned>(parse_number(key, value, 0, 99));
        else if (key == "transmit_stall") parameters.transmit_stall = static_cast<unsigned>(parse_number(key, value, 0, 99));
        else if (key == "seed") parameters.seed = parse_number(key, value, 0, UINT64_MAX);
        else if (key == "completion_headers") parameters.completion_headers = parse_number(key, value, 1, UINT64_MAX);
        else if (key == "completion_bytes") parameters.completion_bytes = parse_number(key, value, 16, UINT64_MAX);
        else
            throw ModelError("unknown parameter " + key + "; there are pcie_clock, " + (has::user_clk ? "user_clock " : "") +
                             "(Hz), receive_stall, transmit_stall (%), seed, completion_headers, completion_bytes");
    }
    return parameters;
}

HardIp::HardIp(Parameters const &parameters)
    : parameters_(parameters), context_(std::make_unique<VerilatedContext>()), top_(std::make_unique<Vtop>(context_.get())),
      pcie_(parameters.pcie_clock), user_(has::user_clk ? parameters.user_clock : parameters.pcie_clock),
      quiet_time_(IDLE_EDGES * FEMTOSECONDS /
                  (has::user_clk ? std::min(parameters.pcie_clock, parameters.user_clock) : parameters.pcie_clock)),
      busy_until_(quiet_time_), random_(parameters.seed * 2 + 1) {
    ports_.emplace(*top_);
    top_->eval(); // the state before the first event
    on_drive_ = trigger_of(top_->drive);
    on_pcie_clk_ = trigger_of(ports_->pcie_clk);
    on_user_clk_ = trigger_of(ports_->user_clk);
    registers_.mrrs = 2;
    registers_.msi_vectors = 1;
}

HardIp::~HardIp() {
#if VM_TRACE_FST
    if (waveform_) waveform_->close();
    if (traced_) traced_->final();
#endif
    if (top_) top_->final();
}

void HardIp::fail(std::string const &what) const {
    char when[40];
    std::snprintf(when, sizeof when, "at %" PRIu64 ".%06" PRIu64 " ns: ", now_ / 1'000'000, now_ % 1'000'000);
    throw ModelError(when + what);
}

void HardIp::configure(tlplab_rtl_registers const &registers) {
    registers_ = registers;
    registers_.reset = 0;
    tell();
    if (registers.reset) start_reset();
    configured_ = changed_ = true;
    wake();
}

// Something came in: not idle until the core has seen it.
void HardIp::wake() {
    idle_ = false;
    busy_until_ = now_ + quiet_time_;
}

void HardIp::start_reset() {
    forget();
    completion_headers_ = completion_bytes_ = 0;
    reset_pcie_edges_ = reset_user_edges_ = RESET_EDGES;
}

bool HardIp::receive(uint8_t const *tlp, size_t bytes, uint8_t bar) {
    // Hard IPs of these generations know no prefixes; the digest ends in the hard IP.
    while (bytes >= 16 && is_prefix(from_wire(tlp))) tlp += 4, bytes -= 4;
    if (bytes < 12 || bytes % 4 != 0) return true;
    Received received{std::vector<uint32_t>(bytes / 4), class_of(from_wire(tlp)), bar};
    for (size_t i = 0; i < received.dws.size(); ++i) received.dws[i] = from_wire(tlp + 4 * i);
    if (has_digest(received.dws[0])) {
        received.dws[0] &= ~TD;
        received.dws.pop_back();
    }
    if (received.kind == TLPLAB_RTL_COMPLETION) {
        uint64_t const data = in_credits(data_dws(received.dws[0]));
        if (completion_headers_ + 1 > parameters_.completion_headers || completion_bytes_ + data > parameters_.completion_bytes)
            return false;
        ++completion_headers_;
        completion_bytes_ += data;
    }
    changed_ = arrive(std::move(received)) || changed_;
    wake();
    return true;
}

void HardIp::completion_taken(size_t data_dws) {
    --completion_headers_;
    completion_bytes_ -= in_credits(data_dws);
}

void HardIp::run(uint64_t until, uint8_t room, tlplab_rtl_output &output) {
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
uint64_t HardIp::next_edges() const {
    uint64_t const pcie = tracing() && ports_->pcie_clk ? pcie_.fall() : pcie_.next();
    uint64_t const user = tracing() && ports_->user_clk ? user_.fall() : user_.next();
    return std::min(pcie, user);
}

// Evaluates the edges at `now_`. True if the caller has to hear of what came of them.
bool HardIp::evaluate_edges(tlplab_rtl_output &output) {
    bool const pcie = pcie_.next() == now_, user = user_.next() == now_;
    if (pcie && changed_) { // the core has to see its inputs before the edge
        drive_inputs(false);
        evaluate(false, false);
    }
    bool ended = false;
    if (user && reset_user_edges_ > 0) --reset_user_edges_;
    if (pcie) {
        changed_ = false;
        if (reset_pcie_edges_ == 0) ended = take(output);
        else if (reset_pcie_edges_ > 1 || reset_user_edges_ == 0) --reset_pcie_edges_;
        if (!tracing()) drive_inputs(true);
    }
    evaluate(pcie, user);
    dump();
    if (!pcie && !user) return false;
    if (user) user_.advance();
    if (pcie) pcie_.advance();
    if (pcie && tracing()) drive_inputs(true);
    return (pcie && look_at_levels()) || ended; // they are of pcie_clk
}

// Evaluates the module, with rising edges of these clocks.
//
// Vtop::eval() takes locks, of which there is no need in one thread, works out again what depends on inputs, of which only the
// registers are some, and looks for events. Where these are known, which module.mk finds out, they are said instead.
void HardIp::evaluate(bool pcie, bool user) {
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
uint64_t HardIp::trigger_of(CData &event) {
    event = 1;
    Vtop___024root___eval_triggers_vec__act(top_->rootp);
    uint64_t const mark = top_->rootp->__VactTriggered[0];
    event = 0;
    Vtop___024root___eval_triggers_vec__act(top_->rootp);
    return mark;
}

void HardIp::drive_inputs(bool after_edge) {
    bool const reset = reset_pcie_edges_ > 0;
    driven_ = true;
    ports_->pcie_rst = reset;
    drive(reset, after_edge);
}

void HardIp::emit(uint8_t const *tlp, size_t bytes, tlplab_rtl_output &output) {
    std::memcpy(output.tlp, tlp, bytes);
    output.tlp_bytes = static_cast<uint16_t>(bytes);
}

// True if a level changed that the caller hears of.
bool HardIp::look_at_levels() {
    bool const reset = reset_pcie_edges_ > 0;
    bool const quiet = !reset && ports_->idle && nothing_under_way();
    if (!quiet) busy_until_ = now_ + quiet_time_;
    bool const idle = now_ > busy_until_, intx = !reset && this->intx();
    bool const changed = (idle && !idle_) || intx != intx_;
    idle_ = idle;
    intx_ = intx;
    return changed;
}

bool HardIp::stalls(unsigned percent) {
    if (percent == 0) return false;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % 100 < percent;
}

// Nothing happens until `time`.
void HardIp::skip_to(uint64_t time) {
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

bool HardIp::tracing() const { return waveform_ != nullptr; }

void HardIp::trace(std::string const &path) {
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
    tell();
    configured_ = changed_ = true;
}

void HardIp::dump() {
    if (waveform_) waveform_->dump(now_);
}

#else

bool HardIp::tracing() const { return false; }
void HardIp::trace(std::string const &path) {
    throw ModelError("no waveform " + path + ": the library was built without lz4.h and zlib.h, or with TRACE=0");
}
void HardIp::dump() {}

#endif

} // namespace tlplab
