# Two commands do everything on a machine with Python 3.11 and nothing else: `make benchmarks` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SUITES := $(sort $(wildcard data/*/suite.yaml))

.PHONY: benchmarks test lint lock lab clean

benchmarks: $(VENV)/.made
	@for suite in $(SUITES); do \
	  folder=$$(dirname $$suite); name=$$(basename $$folder); \
	  $(BIN)/searcheval run $$folder -o reports/$$name || exit $$?; \
	done
	@$(BIN)/searcheval index reports
	@for suite in $(SUITES); do \
	  folder=$$(dirname $$suite); name=$$(basename $$folder); \
	  if [ -f $$folder/baseline.json ]; then echo; $(BIN)/searcheval gate reports/$$name || exit $$?; fi; \
	done

test: $(VENV)/.made lint
	$(BIN)/python -m pytest

lint: $(VENV)/.made
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy searcheval
	$(BIN)/lint-imports
	$(BIN)/nbstripout --verify notebooks/*.ipynb

lab: $(VENV)/.made
	$(BIN)/jupyter lab notebooks

# Everything is installed from the lock, with hashes; the package itself from this folder, editable.
$(VENV)/.made: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Needs uv. Writes the lock for every platform, without an index address.
lock:
	uv pip compile pyproject.toml --extra all --extra test --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
