# Everything runs in .venv, which is made on the first call and brought up to date when
# pyproject.toml, CMakeLists.txt or native/ change. `make PYTHON=python3.13 test` picks the interpreter.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --progress-bar off
STAMP  := $(VENV)/.installed
DOCS   := $(VENV)/.docs
SANITIZE := build/sanitize
NATIVE := $(shell find native -type f 2>/dev/null)

# The build runs inside .venv (no isolation) with a build tree of its own, so that a change compiles in
# seconds.
, := ,
install = PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-build-isolation \
    --log build/install.log -Cbuild-dir=build/native --editable ".[$(1)]"

.DEFAULT_GOAL := help
.PHONY: help env run test test-all test-previous test-torch test-browser baselines sanitize fuzz fuzz-native soak \
    wheel pure lint format hooks bench docs check-docs spec clean

help:  ## show this text
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

env: $(STAMP)  ## make or refresh .venv and build the compiled core

run: $(STAMP)  ## build, install and run the demonstration
	$(BIN)/python examples/demo.py

# One worker per core; a worker that runs out of tests takes some from another.
PYTEST := -m pytest -n auto --dist worksteal

# `make test ARGS="tests/kernels -x"` runs a part.
test: $(STAMP)  ## the test suite without the slow tests
	$(BIN)/python $(PYTEST) $(ARGS)

test-all: $(STAMP)  ## the whole test suite
	$(BIN)/python $(PYTEST) -m "slow or not slow" $(ARGS)

baselines: $(STAMP)  ## draw the pictures that the tests of plots compare with
	$(BIN)/python -m tests.plot.test_plot_baselines

# The older release is put in front of the environment's own packages. It passes its checks to pytest in
# a way that newer releases of pytest warn about.
PREVIOUS := scikit-learn==1.8.*
test-previous: $(STAMP)  ## the estimators on the previous release of scikit-learn
	test -d build/previous || $(PIP) --no-deps --target build/previous "$(PREVIOUS)"
	PYTHONPATH=build/previous $(BIN)/python $(PYTEST) tests/estimators tests/test_frames.py -p no:cacheprovider \
	    -W "ignore:Passing a non-Collection" $(ARGS)

# PyTorch for the processor first, so that the extra finds it and takes no build with CUDA.
test-torch: $(STAMP)  ## tensors of PyTorch (`make test` leaves them out if it is not installed)
	$(PIP) torch==2.13.0
	$(call install,dev$(,)torch)
	$(BIN)/python -m pytest -n 0 tests/engine/test_tensor_*.py $(ARGS)

# Elsewhere than on Debian, install chromium by hand. `make test` skips these tests without it.
test-browser: $(STAMP)  ## the pages that mercer writes, in a real browser (Debian's chromium, headless)
	command -v chromium >/dev/null || { apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null
	$(call install,dev$(,)browser)
	$(BIN)/python -m pytest -n 0 tests/browser $(ARGS)

# The sanitizer's library (GCC's) must be loaded before the interpreter. Leaks of the interpreter are not
# ours. `--capture=sys` lets the sanitizer's own report through. This build is too slow for the tests that
# time an interrupt. `make sanitize ARGS="--sample 4"` runs one test in four.
SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 \
	    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    $(SANITIZE)/bin/python
sanitize: $(SANITIZE)/.installed  ## the engine tests on a core with address and undefined-behaviour sanitizers
	$(SANITIZED) $(PYTEST) tests/engine -k "not interrupt" --capture=sys -p no:cacheprovider $(ARGS)

# `make fuzz ARGS="--seconds 600 --seed 0"`; CONTRIBUTING.md says more.
fuzz: $(STAMP)  ## call everything public with nasty arguments, and load damaged files
	$(BIN)/python -m tools.fuzz $(ARGS)

fuzz-native: $(SANITIZE)/.installed  ## the fuzzer's kernel sums on a core with sanitizers
	$(SANITIZED) -m tools.fuzz --kinds native $(ARGS)

# `make soak ARGS="--minutes 60"`
soak: $(STAMP)  ## call the whole library for an hour in one process, and see whether anything grows
	$(BIN)/python -m tools.soak $(ARGS)

# A wheel, installed into a fresh environment that holds only what users get and sees no compiler.
define try_wheel
	rm -rf $(1)
	$(2) $(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation \
	    --wheel-dir $(1) .
	$(BIN)/python -m venv $(1)/venv
	PATH=$(CURDIR)/$(1)/venv/bin python -m pip --disable-pip-version-check install --quiet --progress-bar off \
	    --only-binary :all: $(1)/*.whl
	cd $(1) && venv/bin/python -I $(CURDIR)/tools/smoke.py $(3)
endef

wheel: $(STAMP)  ## build the wheel, install it elsewhere without a compiler and try it
	$(call try_wheel,build/wheel)

pure: $(STAMP)  ## the same for the wheel without the compiled core
	$(call try_wheel,build/pure,MERCER_PURE=1,--pure)

lint: $(STAMP)  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)  ## rewrite files in the project's style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

hooks: $(STAMP)  ## check style before each commit
	$(BIN)/pre-commit install

# Peers are wanted only here; one that cannot be installed is left out. `make bench ARGS="sums --quick"`.
bench: $(STAMP)  ## measure against other libraries
	$(call install,dev$(,)bench)
	-$(PIP) torch==2.13.0 array-api-compat
	-$(PIP) pykeops hyppo
	-$(PIP) strkernels
	-$(PIP) scikit-learn-intelex libsvm-official
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(DOCS)  ## build the documentation into build/docs (warnings are errors)
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs

check-docs: docs test-browser  ## build the documentation, then check links and every page in a real browser

spec: $(STAMP)  ## write docs/spec.md from docs/spec.toml and the tests
	$(BIN)/python tools/spec.py

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $$($(BIN)/python -c "import tomllib; \
	    print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])")
	command -v cmake >/dev/null || $(PIP) cmake ninja
	@mkdir -p build && rm -f build/install.log
	$(call install,dev)
	@$(BIN)/python -c "import mercer._core as c; print('compiled core:', c.describe())" 2>/dev/null || { \
	    grep -E 'error|FAILED' build/install.log | head -20; \
	    echo "The compiled core could not be built (build/install.log says why):"; \
	    echo "mercer runs on NumPy alone, more slowly."; }
	@touch $@

# An environment with another core; everything else it takes from $(VENV).
$(SANITIZE)/.installed: $(STAMP)
	$(BIN)/python -m venv --without-pip $(SANITIZE)
	$(BIN)/python -c "import sysconfig as s; print(s.get_path('purelib'))" \
	    > $$($(SANITIZE)/bin/python -c "import sysconfig as s; print(s.get_path('purelib'))")/shared.pth
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip --python $(SANITIZE)/bin/python install --quiet \
	    --ignore-installed --no-deps --no-build-isolation --log build/sanitize.log \
	    -Cbuild-dir=$(SANITIZE)/core -Ccmake.define.MERCER_SANITIZE=ON --editable .
	@touch $@

$(DOCS): $(STAMP) pyproject.toml
	$(call install,dev$(,)docs)
	@touch $@
