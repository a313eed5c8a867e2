/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The six functions of tlplab_rtl.h over the hard IP's model, and what Verilator's runtime calls when the core gives up. */
#include "hard_ip.h"
#include "identity.h"
#include "print.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace {

// The last output of Verilator's runtime before it stops, "[time] %Fatal: file:line: Assertion failed in PLACE: TEXT".
thread_local std::string last_words;

// PLACE: TEXT, where the text does not begin with its place anyway (%m).
std::string why_it_stopped() {
    static std::string const before = "Assertion failed in ";
    std::string said;
    said.swap(last_words);
    size_t const at = said.find(before);
    if (at == std::string::npos) return "the core stopped ($stop, or a failed assertion)";
    said.erase(said.find_last_not_of('\n') + 1).erase(0, at + before.size());
    size_t const end = said.find(": ");
    if (end != std::string::npos && said.compare(end + 2, end + 2, said, 0, end + 2) == 0) said.erase(0, end + 2);
    return said;
}

} // namespace

int tlplab_print(char const *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    std::string text(static_cast<size_t>(std::max(0, std::vsnprintf(nullptr, 0, format, again))), '\0');
    va_end(again);
    std::vsnprintf(text.data(), text.size() + 1, format, values);
    va_end(values);
    // That is for the run's error, not for whatever the program prints.
    if (text.find("%Fatal: ") == std::string::npos && text.find("%Error: ") == std::string::npos) return std::fputs(text.c_str(), stdout);
    last_words.swap(text);
    return 0;
}

// $fatal, $stop and $finish of the core fail the run instead of ending the process.
void vl_fatal(const char *file, int line, const char *, const char *message) VL_MT_UNSAFE {
    throw tlplab::ModelError(std::string(file) + ":" + std::to_string(line) + ": " + message);
}
void vl_stop(const char *file, int line, const char *) VL_MT_UNSAFE {
    throw tlplab::ModelError(std::string(file) + ":" + std::to_string(line) + ": " + why_it_stopped());
}
void vl_finish(const char *file, int line, const char *) VL_MT_UNSAFE {
    throw tlplab::ModelError(std::string(file) + ":" + std::to_string(line) + ": the core called $finish");
}

struct tlplab_rtl {
    std::unique_ptr<tlplab::HardIp> hard_ip;
};

namespace {

void put_error(char *to, char const *message) { std::snprintf(to, TLPLAB_RTL_ERROR_MAX, "%s", message); }

// Runs `body`; what it throws becomes a message and false.
template <class Body> bool guarded(char *error, Body body) {
    try {
        body();
        return true;
    } catch (std::exception const &failure) {
        put_error(error, failure.what());
    } catch (...) {
        put_error(error, "the model failed");
    }
    return false;
}

} // namespace

#define TLPLAB_EXPORT extern "C" __attribute__((visibility("default")))

TLPLAB_EXPORT tlplab_rtl *tlplab_rtl_open(uint32_t abi, const char *parameters, tlplab_rtl_identity *identity, char *error) {
    tlplab_rtl *model = nullptr;
    guarded(error, [&] {
        if (abi != TLPLAB_RTL_ABI)
            throw tlplab::ModelError("built for version " + std::to_string(TLPLAB_RTL_ABI) +
                                     " of tlplab_rtl.h, the caller has version " + std::to_string(abi) +
                                     ": build the library again");
        tlplab_rtl_identify(identity);
        identity->abi = TLPLAB_RTL_ABI;
        model = new tlplab_rtl{tlplab::HardIp::make(parameters, *identity)};
    });
    return model;
}

TLPLAB_EXPORT void tlplab_rtl_close(tlplab_rtl *model) { delete model; }

TLPLAB_EXPORT void tlplab_rtl_configure(tlplab_rtl *model, const tlplab_rtl_registers *registers) {
    model->hard_ip->configure(*registers);
}

TLPLAB_EXPORT int tlplab_rtl_receive(tlplab_rtl *model, const uint8_t *tlp, size_t bytes, uint8_t bar) {
    return model->hard_ip->receive(tlp, bytes, bar) ? 0 : 1;
}

TLPLAB_EXPORT int tlplab_rtl_run(tlplab_rtl *model, uint64_t until, uint8_t room, tlplab_rtl_output *output) {
    return guarded(output->error, [&] { model->hard_ip->run(until, room, *output); }) ? 0 : -1;
}

TLPLAB_EXPORT int tlplab_rtl_trace(tlplab_rtl *model, const char *path, char *error) {
    return guarded(error, [&] { model->hard_ip->trace(path); }) ? 0 : -1;
}
