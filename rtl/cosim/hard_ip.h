/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The common part of all hard IPs around a verilated module: clocks, reset, time that is skipped, waveforms, the buffer of
 * completions, and TLPs that wait for room on the link.
 *
 *   clocks    pcie_clk and user_clk, each with its own frequency. Only their rising edges are evaluated; while a waveform is written
 *             the falling edges, too, in their middle.
 *   reset     pcie_rst is held until each clock has had RESET_EDGES rising edges.
 *   idle      While the core says `idle`, and nothing is queued, no edges are evaluated.
 *   receive   An end point gives no finite credits for completions. What its buffer has no room for is dropped.
 *   waveform  The module is there twice, as Vtop and as Vtraced: one that can write waveforms has to keep all signals in memory, and is
 *             a tenth slower also while it writes none. trace() puts the one in place of the other. Vtraced is the module as it is,
 *             its inputs driven after an edge; Vtop has it in pins.sv (ports.py), which takes them with the edge.
 */
#ifndef TLPLAB_RTL_HARD_IP_H
#define TLPLAB_RTL_HARD_IP_H

#include "clock.h"
#include "ports.h"
#include "tlplab_rtl.h"

#include "verilated.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

namespace tlplab {

// The core, or who attached it, did what a hard IP cannot go on from. The message says what and, if it has one, when.
struct ModelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The parameters of open(), with their defaults.
struct Parameters {
    uint64_t pcie_clock = 250'000'000; // Hz
    uint64_t user_clock = 200'000'000; // Hz
    // Percent of the edges of pcie_clk at which the hard IP pauses in giving (taking) beats, also within a TLP. Links slower than
    // the interface do that.
    unsigned receive_stall = 0, transmit_stall = 0;
    uint64_t seed = 1; // of the pauses
    // The buffer for completions: how many, and bytes of data in credits of 16 bytes.
    uint64_t completion_headers, completion_bytes;

    // Reads lines "key=value\n" over these; throws ModelError.
    static Parameters parse(std::string const &lines, uint64_t completion_headers, uint64_t completion_bytes);
};

// A TLP that was received: its DWs in the specification's order, without prefixes and digest.
struct Received {
    std::vector<uint32_t> dws;
    tlplab_rtl_class kind;
    uint8_t bar;
};

// The hard IP behind a port of the link. The public functions are those of tlplab_rtl.h with the same names; they throw
// ModelError.
class HardIp {
public:
    // The hard IP that the module was built with.
    static std::unique_ptr<HardIp> make(std::string const &parameters, tlplab_rtl_identity const &identity);
    virtual ~HardIp();
    HardIp(HardIp const &) = delete;
    HardIp &operator=(HardIp const &) = delete;

    void configure(tlplab_rtl_registers const &registers);
    bool receive(uint8_t const *tlp, size_t bytes, uint8_t bar);
    void run(uint64_t until, uint8_t room, tlplab_rtl_output &output);
    void trace(std::string const &path);

protected:
    explicit HardIp(Parameters const &parameters);

    // The registers, on the ports that tell of them.
    virtual void tell() = 0;
    // A TLP arrived; a completion has its place in the buffer, which completion_taken() frees. True if the next edge may show it.
    virtual bool arrive(Received &&received) = 0;
    // Handshakes of the edge that comes now: what the core and the hard IP show each other just before it. True if `output` has something.
    virtual bool take(tlplab_rtl_output &output) = 0;
    // Drives the inputs of pcie_clk's domain for its next edge; once after each edge, and again if something came in meanwhile.
    virtual void drive(bool reset, bool after_edge) = 0;
    // Gives out the first TLP that has room and may pass those before it. True if there was one.
    virtual bool emit_held(tlplab_rtl_output &output) = 0;
    virtual bool nothing_under_way() const = 0;
    // Drops all TLPs that were received and not taken, and those that the core has begun to send.
    virtual void forget() = 0;
    virtual bool intx() const = 0;

    void completion_taken(size_t data_dws);
    static void emit(uint8_t const *tlp, size_t bytes, tlplab_rtl_output &output);
    bool has_room(tlplab_rtl_class kind) const { return room_ >> kind & 1; }
    bool stalls(unsigned percent);
    [[noreturn]] void fail(std::string const &what) const;

    std::optional<Ports> ports_;
    Parameters parameters_;
    tlplab_rtl_registers registers_{};

private:
    static constexpr unsigned RESET_EDGES = 16;
    static constexpr unsigned IDLE_EDGES = 32; // of the slower clock, so that what is in a synchroniser has come out

    uint64_t next_edges() const;
    bool evaluate_edges(tlplab_rtl_output &output);
    void evaluate(bool pcie, bool user);
    uint64_t trigger_of(CData &event);
    void drive_inputs(bool after_edge);
    bool look_at_levels();
    void start_reset();
    void wake();
    void skip_to(uint64_t time);
    bool tracing() const;
    void dump();

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_; // none while a waveform is written
#if VM_TRACE_FST
    std::unique_ptr<Vtraced> traced_;
    std::unique_ptr<VerilatedFstC> waveform_;
#endif
    uint64_t on_drive_, on_pcie_clk_, on_user_clk_; // Verilator's marks of these events
    Clock pcie_, user_;
    uint64_t now_ = 0;
    unsigned reset_pcie_edges_ = RESET_EDGES, reset_user_edges_ = RESET_EDGES; // still to come under reset
    uint64_t quiet_time_, busy_until_;                                         // how long the core has to say idle; not idle before
    bool idle_ = false, intx_ = false;
    bool changed_ = true;                     // the inputs have changed since the core last saw them
    bool driven_ = false, configured_ = true; // since the last evaluation
    uint64_t random_;
    uint8_t room_ = 0;
    uint64_t completion_headers_ = 0, completion_bytes_ = 0; // in the buffer
};

} // namespace tlplab

#endif
