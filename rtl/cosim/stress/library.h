/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A device library, loaded: the six functions of tlplab_rtl.h. */
#ifndef TLPLAB_STRESS_LIBRARY_H
#define TLPLAB_STRESS_LIBRARY_H

#include "tlplab_rtl.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace stress {

class Library {
public:
    explicit Library(std::string const &path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!handle_) throw std::runtime_error(dlerror());
        find(open, "tlplab_rtl_open");
        find(close, "tlplab_rtl_close");
        find(configure, "tlplab_rtl_configure");
        find(receive, "tlplab_rtl_receive");
        find(run, "tlplab_rtl_run");
        find(trace, "tlplab_rtl_trace");
    }

    decltype(&tlplab_rtl_open) open;
    decltype(&tlplab_rtl_close) close;
    decltype(&tlplab_rtl_configure) configure;
    decltype(&tlplab_rtl_receive) receive;
    decltype(&tlplab_rtl_run) run;
    decltype(&tlplab_rtl_trace) trace;

private:
    template <class Function> void find(Function &function, char const *name) {
        function = reinterpret_cast<Function>(dlsym(handle_, name));
        if (!function) throw std::runtime_error(dlerror());
    }

    void *handle_; // stays loaded until the program ends
};

// One model of a library.
class Device {
public:
    Device(Library const &library, std::string const &parameters) : library_(library) {
        char error[TLPLAB_RTL_ERROR_MAX];
        tlplab_rtl_identity identity{};
        model_ = library.open(TLPLAB_RTL_ABI, parameters.c_str(), &identity, error);
        if (!model_) throw std::runtime_error(error);
    }
    ~Device() { library_.close(model_); }
    Device(Device const &) = delete;
    Device &operator=(Device const &) = delete;

    void trace(std::string const &path) {
        char error[TLPLAB_RTL_ERROR_MAX];
        if (library_.trace(model_, path.c_str(), error) != 0) throw std::runtime_error(error);
    }
    void configure(tlplab_rtl_registers const &registers) { library_.configure(model_, &registers); }
    void receive(uint8_t const *tlp, size_t bytes, uint8_t bar) { library_.receive(model_, tlp, bytes, bar); }
    void run(uint64_t until, uint8_t room, tlplab_rtl_output &output) {
        if (library_.run(model_, until, room, &output) != 0) throw std::runtime_error(output.error);
    }

private:
    Library const &library_;
    tlplab_rtl *model_;
};

} // namespace stress

#endif
