# Every target sets up what it needs: a virtual environment with the pinned dependencies.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo test sweep lint format bench bench-flink clean

help:
	@echo "make demo    an airline on Spark for a minute and a half"
	@echo "make test    the test suite"
	@echo "make sweep   the long random sweeps; TESTS=tests/hosts/simulated runs some of them"
	@echo "make lint    ruff, format check, mypy"
	@echo "make format  rewrite the sources in the project's format"
	@echo "make bench   the benchmarks; tables go to docs/results"
	@echo "make bench-flink   Braid and Flink on the same rows; sets Flink up in .venv-flink"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Braid needs Python 3.11 or newer: make PYTHON=python3.11")'
	@echo "setting up .venv, once: some minutes, and 2 GB"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/braid prepare
	@touch $(READY)

demo: $(READY)
	$(BIN)/braid demo

# Three processes for two cores, because tests that start sites and programs wait most of the time.
test: $(READY)
	$(BIN)/python -m pytest -q -n 3 --dist loadgroup

sweep: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m sweep $(TESTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks.kernel
	$(BIN)/python -m benchmarks.plans
	$(BIN)/python -m benchmarks.transition
	$(BIN)/python -m benchmarks.adaptive
	$(BIN)/python -m benchmarks.spark

FLINK := .venv-flink/.ready

$(FLINK):
	@echo "setting up Flink in .venv-flink, once: some minutes, and 900 MB"
	$(PYTHON) -m venv .venv-flink
	.venv-flink/bin/python -m pip install --quiet --disable-pip-version-check apache-flink==2.3.0
	@touch $(FLINK)

bench-flink: $(READY) $(FLINK)
	$(BIN)/python -m benchmarks.flink .venv-flink/bin/python

clean:
	rm -rf .venv .venv-flink .pytest_cache .mypy_cache .ruff_cache .hypothesis
