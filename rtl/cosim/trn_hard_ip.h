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
 *   clocks    pcie_clk and user_clk, each with its own frequency. Only their rising edges are evaluated; while a waveform is written
 *             the falling edges, too, in their middle.
 *   reset     pcie_rst is held until each clock has had RESET_EDGES rising edges.
 *   idle      While the core says `idle`, and nothing is queued, no edges are evaluated.
 *   waveform  The module is there twice, as Vtop and as Vtraced: one that can write waveforms has to keep all signals in memory, and is
 *             a tenth slower also while it writes none. trace() puts the one in place of the other. Vtraced is the module as it is,
 *             its inputs driven after an edge; Vtop has it in trn_pins, which takes them with the edge.
 */
#ifndef TLPLAB_RTL_TRN_HARD_IP_H
#define TLPLAB_RTL_TRN_HARD_IP_H

#include "clock.h"
#include "tlplab_rtl.h"

#include "Vtop.h"
#include "verilated.h"

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#if VM_TRACE_FST
#include "Vtraced.h"
#include "verilated_fst_c.h"
#endif

namespace tlplab {

// The core, or who attached it, did what a hard IP cannot go on from. The message says what and, if it has one, when.
struct ModelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What open() can be told, and what holds if it is not.
struct Parameters {
    uint64_t pcie_clock = 250'000'000; // Hz
    uint64_t user_clock = 200'000'000; // Hz
    // Percent of the edges of pcie_clk at which the hard IP pauses in giving (taking) beats, also within a TLP. Links slower than
    // the interface do that.
    unsigned receive_stall = 0, transmit_stall = 0;
    uint64_t seed = 1; // of the pauses

    // Reads lines "key=value\n"; throws ModelError.
    static Parameters parse(std::string const &lines);
};

class TrnHardIp {
public:
    explicit TrnHardIp(Parameters const &parameters);
    ~TrnHardIp();
    TrnHardIp(TrnHardIp const &) = delete;
    TrnHardIp &operator=(TrnHardIp const &) = delete;

    // These are what tlplab_rtl.h says of the functions of the same names; they throw ModelError.
    void configure(tlplab_rtl_registers const &registers);
    void receive(uint8_t const *tlp, size_t bytes, uint8_t bar);
    void run(uint64_t until, uint8_t room, tlplab_rtl_output &output);
    void trace(std::string const &path);

private:
    using Beat = std::remove_reference_t<decltype(Vtop::trn_rd)>;
    static constexpr unsigned DWS = sizeof(Beat) / 4; // of a beat
    static_assert(DWS == 2 || DWS == 4, "trn_rd must have 64 or 128 bits");
    static constexpr unsigned RESET_EDGES = 16;
    static constexpr unsigned IDLE_EDGES = 32; // of the slower clock, so that what is in a synchroniser has come out
    static constexpr size_t HELD_MAX = 4;      // TLPs that wait for room before the core is stalled
    static constexpr size_t TLP_DWS = TLPLAB_RTL_TLP_MAX / 4;

    struct Received {
        std::vector<uint32_t> dws;
        tlplab_rtl_class kind;
        uint8_t bar;
    };
    struct Held {
        std::vector<uint8_t> tlp;
        tlplab_rtl_class kind;
    };

    // The ports of the module that is in use.
    struct Ports {
        template <class Module> explicit Ports(Module &module);

        CData &pcie_clk, &pcie_rst, &user_clk;
        CData &trn_rsrc_rdy, &trn_rsof, &trn_reof, &trn_rbar, &trn_rdst_rdy, &trn_rnp_ok;
        CData &trn_tsrc_rdy, &trn_tsof, &trn_teof, &trn_tdst_rdy, &trn_tbuf_av;
        Beat &trn_rd, &trn_td;
        CData &trn_rrem, &trn_trem;
        SData &cfg_id;
        CData &cfg_mps, &cfg_mrrs, &cfg_bus_master, &cfg_ext_tag, &cfg_msix_enable, &cfg_msix_mask, &cfg_intx_disable;
        CData &intx, &idle;
    };

    uint64_t next_edges() const;
    bool evaluate_edges(tlplab_rtl_output &output);
    void evaluate(bool pcie, bool user);
    uint64_t trigger_of(CData &event);
    bool before_pcie_edge(tlplab_rtl_output &output);
    void drive();
    void give_beat(bool allowed);
    void choose_received();
    bool take_beat(tlplab_rtl_output &output);
    bool end_tlp(tlplab_rtl_output &output);
    void emit(uint8_t const *tlp, size_t bytes, tlplab_rtl_output &output);
    bool emit_held(tlplab_rtl_output &output);
    bool look_at_levels();
    void start_reset();
    void wake();
    bool stalls(unsigned percent);
    void skip_to(uint64_t time);
    bool tracing() const;
    void dump();
    [[noreturn]] void fail(std::string const &what) const;

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Vtop> top_; // none while a waveform is written
#if VM_TRACE_FST
    std::unique_ptr<Vtraced> traced_;
    std::unique_ptr<VerilatedFstC> waveform_;
#endif
    std::optional<Ports> ports_;
    uint64_t on_drive_, on_pcie_clk_, on_user_clk_; // Verilator's marks of these events
    tlplab_rtl_registers registers_{};
    Parameters parameters_;
    Clock pcie_, user_;
    uint64_t now_ = 0;
    unsigned reset_pcie_edges_ = 0, reset_user_edges_ = 0; // still to come under reset
    uint64_t quiet_time_, busy_until_ = 0;                 // how long the core has to say idle; not idle before
    bool idle_ = false, intx_ = false;
    bool changed_ = false;                     // what is to be driven, since the core last saw it
    bool driven_ = false, configured_ = false; // since the last evaluation
    uint64_t random_;

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
    uint8_t room_ = 0;
};

} // namespace tlplab

#endif
