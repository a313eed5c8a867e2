# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a verilated module with the ports of a hard IP's user into a device library (rtl/include/tlplab_rtl.h). `make rtl` calls it:
#   TOP         the module
#   SOURCES     its SystemVerilog, and C++ with tlplab_rtl_identify() (rtl/cosim/identity.h)
#   OUT         the library; what it is made of is beside it, in a folder of its name
#   HARD_IP     whose ports it has: trn (rtl/cosim/trn_hard_ip.h) or usp (usp_hard_ip.h)
#   STRADDLE    usp: streams on which a beat may have parts of several TLPs, of rq rc cq cc
#   PARAMETERS  options for Verilator, such as -GW=128 for a parameter of the module
#   EXERCISE    a command that runs a library, given as its last argument: the compiler lays the model out by what it sees then
#   TRACE=0     builds it without waveforms; so does a machine without lz4.h and zlib.h (Debian's liblz4-dev, zlib1g-dev)
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

CXX := g++
TRACE ?= $(shell printf '\043include <lz4.h>\n\043include <zlib.h>\n' | $(CXX) -fsyntax-only -xc++ - 2>/dev/null && echo 1 || echo 0)
HARD_IP ?= trn
STRADDLE ?=
PARAMETERS ?=
PYTHON ?= python3
RTL_BIN ?= rtl/.venv/bin
HERE := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BUILD := $(OUT:.so=)
# What runs in every cycle is more code than a processor's instruction cache holds: the smaller it is the faster.
FAST ?= -O2 -fno-tree-vectorize -fno-tree-pre -fno-code-hoisting -fno-align-functions -fno-align-loops -fno-align-jumps -fno-align-labels
# The model of the hard IP, and Verilator's own.
HARNESS ?= -O2
JOBS ?= $(shell nproc)

CPLUSPLUS := $(filter %.cpp %.cc %.c,$(SOURCES)) $(wildcard $(HERE)/$(HARD_IP)*.cpp) $(HERE)/hard_ip.cpp $(HERE)/abi.cpp
VERILOG := $(filter-out %.cpp %.cc %.c,$(SOURCES))
# One copy of everything in each library, so that several can be loaded; nothing but the six functions is visible.
PIC := -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -fno-gnu-unique
# $stop, $finish and $fatal are this model's errors, see abi.cpp.
HOOKS := -DVL_USER_STOP -DVL_USER_FINISH -DVL_USER_FATAL
PRINT := -include $(abspath $(HERE))/print.h -DVL_PRINTF=tlplab_print
# -fno-split: statements stay in their block, in its order; a block that reads a register before it writes it needs no second copy of it.
VERILATOR_FLAGS := --cc -O3 -fno-split --x-assign fast --x-initial fast --no-assert --noassert-case \
	--timescale 1fs/1fs --MMD -Wno-fatal
# The module with waveforms, beside the one without (hard_ip.h), and the runtime of both.
TRACED := $(BUILD)/traced
RUNTIME := $(if $(filter 1,$(TRACE)),$(TRACED),$(BUILD))/libverilated.a
TRACED_LIBRARY := $(if $(filter 1,$(TRACE)),$(TRACED)/libVtraced.a)

# The module in its pins (ports.py), which have its parameters, -GW=128 -GTAGS=64.
PINS = --top-module tlplab_pins $(filter-out -G%,$(PARAMETERS)) $(BUILD)/pins.sv

# Do pcie_clk and user_clk do anything but trigger, or does anything trigger but they and drive?
others_trigger = awk '/___eval_(triggers_vec__act|debug_assertions)\(.*{$$/ { skip = 1 } /^}/ { skip = 0 } \
	!skip && /[.>](pcie|user)_clk[^A-Za-z0-9_]/ { found = 1 } \
	{ gsub(/__Vtrigprevexpr___TOP__(pcie_clk|user_clk|drive)__[0-9]/, "") } /__Vtrigprevexpr/ { found = 1 } \
	END { exit !found }' $$(ls $(BUILD)/Vtop_*.cpp | grep -v Slow)

# $(call verilate,PREFIX,FOLDER,OPTIONS), $(call link,LIBRARY,OPTIONS for the harness), $(call build,PREFIX,FOLDER,OPTIONS of what runs
# in every cycle) and $(call compile,the same). The counts of the harness lie beside those of the model.
verilate = mkdir -p $2; rm -f $2/V*.cpp $2/V*.h $2/*.d $2/*.o $2/*.a; \
	$(RTL_BIN)/verilator $(VERILATOR_FLAGS) --prefix $1 --Mdir $2 $3 $(VERILOG) >$2/verilator.log 2>&1 || { cat $2/verilator.log >&2; exit 1; }
link = root=$$(sed -n 's/^VERILATOR_ROOT = //p' $(BUILD)/Vtop.mk); \
	if $(others_trigger); then only_clocks=0; else only_clocks=1; fi; \
	$(CXX) -std=c++17 $(HARNESS) $2 -dumpdir $(BUILD)/ $(PIC) $(HOOKS) -Wall -Wextra -DVM_TRACE_FST=$(TRACE) -DONLY_CLOCKS_TRIGGER=$$only_clocks -I$(HERE) -I$(HERE)/../include -I$(BUILD) -I$(TRACED) -isystem $$root/include \
		-shared -Wl,--gc-sections -Wl,-z,defs -o $1 $(CPLUSPLUS) $(BUILD)/libVtop.a $(TRACED_LIBRARY) $(RUNTIME) $(if $(filter 1,$(TRACE)),-llz4 -lz)
build = $(MAKE) --no-print-directory -s -j$(JOBS) -C $2 -f $1.mk lib$1.a $(notdir $(filter $2/libverilated.a,$(RUNTIME))) CXX="$(CXX)" \
	CXXFLAGS="-std=c++17 $(PIC) $(HOOKS)" OPT_FAST="$3" OPT_SLOW=-O1 OPT_GLOBAL="$(HARNESS) $(PRINT)" >$2/build.log || { cat $2/build.log >&2; exit 1; }
compile = $(call build,Vtop,$(BUILD),$(FAST) $1)

GENERATE := -fprofile-generate -fprofile-update=single
USE := -fprofile-use -fprofile-partial-training -Wno-missing-profile

$(OUT): $(CPLUSPLUS) $(wildcard $(HERE)/*.h) $(HERE)/../include/tlplab_rtl.h $(BUILD)/libVtop.a $(TRACED_LIBRARY)
	@$(call link,$@,$(if $(EXERCISE),$(USE)))
	@echo "$@$(if $(filter 0,$(TRACE)), (no waveforms: built without lz4.h and zlib.h))"

ifdef EXERCISE
$(BUILD)/libVtop.a: $(BUILD)/Vtop.mk $(TRACED_LIBRARY) $(CPLUSPLUS) $(wildcard $(HERE)/*.h)
	@rm -f $(BUILD)/*.gcda
	@$(call compile,$(GENERATE))
	@$(call link,$(BUILD)/profile.so,$(GENERATE))
	@$(EXERCISE) $(BUILD)/profile.so >$(BUILD)/profile.log || { cat $(BUILD)/profile.log >&2; exit 1; }
	@for counts in $(BUILD)/*.gcda; do rm -f "$${counts%.gcda}.o"; done; rm -f $@ $(BUILD)/profile.so
	@$(call compile,$(USE))
	@touch $@
else
$(BUILD)/libVtop.a: $(BUILD)/Vtop.mk
	@$(call compile)
	@touch $@
endif

$(BUILD)/pins.sv: $(VERILOG) $(HERE)/module.mk $(HERE)/ports.py
	@mkdir -p $(BUILD)
	@$(RTL_BIN)/verilator --json-only --json-only-output $(BUILD)/ports.json --json-only-meta-output $(BUILD)/ports.meta.json -Wno-fatal \
		--top-module $(TOP) $(PARAMETERS) $(VERILOG) >$(BUILD)/ports.log 2>&1 || { cat $(BUILD)/ports.log >&2; exit 1; }
	@$(PYTHON) $(HERE)/ports.py --straddle "$(STRADDLE)" $(HARD_IP) $(TOP) $(BUILD)/ports.json $(BUILD) $(patsubst -G%,%,$(filter -G%,$(PARAMETERS)))

$(BUILD)/Vtop.mk: $(BUILD)/pins.sv
	@$(call verilate,Vtop,$(BUILD),$(PINS))

$(TRACED)/libVtraced.a: $(TRACED)/Vtraced.mk
	@$(call build,Vtraced,$(TRACED),-O1)
	@touch $@

$(TRACED)/Vtraced.mk: $(VERILOG) $(HERE)/module.mk
	@$(call verilate,Vtraced,$(TRACED),--trace-fst --top-module $(TOP) $(PARAMETERS))

# What the sources include.
-include $(BUILD)/Vtop__ver.d
-include $(if $(TRACED_LIBRARY),$(TRACED)/Vtraced__ver.d)
# One that is there no more makes what was built of it old, and is nothing to stop for.
%.sv %.svh: ;
