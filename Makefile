# Headway: `make run` opens the live demo, `make test` runs the suite. Both set everything up first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(shell command -v uv 2>/dev/null)
# pip compiles on one core, uv does not compile: compileall uses all cores. What cannot be compiled is left to whoever imports it.
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
DEMO   ?= demo-mixed
# A worker a core, four at most; tests/support/shares.py says which tests stay together.
WORKERS ?= -n auto --maxprocesses=4 --dist loadscope --no-loadscope-reorder

.PHONY: run test setup lint warm test-e2e test-slow test-vllm test-postgres bench screenshots clean

run: setup
	@$(BIN)/headway up --demo $(DEMO)

setup: $(VENV)/.ready

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headway needs Python 3.11 or newer: set PYTHON=/path/to/python3.11" >&2; exit 2; }
ifdef UV
	@uv venv --quiet --allow-existing --python $(PYTHON) $(VENV)
else
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing: on Debian or Ubuntu run 'apt-get install python3-venv'" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
endif

$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headway into $(VENV) (once; a minute or two)"
ifdef UV
	@VIRTUAL_ENV=$(VENV) uv pip install --quiet -c constraints.txt -e .
else
	@$(PIP) -c constraints.txt -e .
endif
	@$(COMPILE)
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headway and the development tools into $(VENV) (once; a minute or two)"
ifdef UV
	@VIRTUAL_ENV=$(VENV) uv pip install --quiet -c constraints.txt -e '.[dev]'
else
	@$(PIP) -c constraints.txt -e '.[dev]'
endif
	@$(COMPILE)
	@touch $(VENV)/.ready $@

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: $(VENV)/.ready-dev
	@$(MAKE) --no-print-directory -j2 lint warm
	@$(BIN)/python -m pytest $(WORKERS) -m 'not slow and not bench and not vllm and not postgres'

# Compile the simulator first, with its progress line, rather than inside whichever test comes first.
warm: $(VENV)/.ready
	@$(BIN)/headway warm

test-e2e: $(VENV)/.ready-dev warm
	@$(BIN)/python -m pytest -m e2e

test-slow: $(VENV)/.ready-dev warm
	@$(BIN)/python -m pytest -m slow

# Against real vLLM servers on this machine's CPU, from a venv of their own: .venv-vllm, or where HEADWAY_VLLM_VENV says.
test-vllm: $(VENV)/.ready-dev
	@$(BIN)/python tests/vllm/setup_env.py
	@$(BIN)/python -m pytest -n0 -m vllm

test-postgres: $(VENV)/.ready-dev
	@$(PIP) -c constraints.txt -e '.[dev,postgres]'
	@$(BIN)/python -m pytest -m postgres || [ $$? -eq 5 ]

bench: setup
	@$(BIN)/headway bench twin --json
	@$(BIN)/headway bench tune --json
	@$(BIN)/headway bench gateway --json

# The pictures of README.md and docs/, from a Headway on a store of its own; needs chromium.
screenshots: $(VENV)/.ready-dev warm
	@$(BIN)/headway screenshots

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
