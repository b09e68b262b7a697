# Everything works on a machine with nothing but python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
# Dagster announces successors of its commands at each start.
export PYTHONWARNINGS := ignore::FutureWarning

.PHONY: help install install-dev demo dev test test-all test-long test-lowest check docs bench constraints clean

help:
	@echo "make demo    index data/input and ask two questions"
	@echo "make install-dev  what the tests and the server need, into .venv (three minutes, 2 GB)"
	@echo "make dev     the Dagster UI on http://127.0.0.1:3000"
	@echo "make test    the quick tests, on all cores (under four minutes on two)"
	@echo "make test-all  also with a browser, servers and killed processes (under nine minutes): what must pass before a change lands"
	@echo "make test-long  all tests, with more random examples (ten minutes on two cores): before a release"
	@echo "make test-lowest  the quick tests and the demo with the lowest versions that pyproject.toml allows"
	@echo "make check   formatting, lint, types, definitions"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make bench   seconds and memory per stage for a million tokens"
	@echo "make constraints  take the newest versions of all dependencies into constraints.txt"
	@echo "make clean   remove the index and Dagster's state, not the input"

install: .venv/.installed
install-dev: .venv/.installed-dev

.venv/bin/python:
	$(PYTHON) -m venv .venv

# uv takes a quarter of pip's time. Where it cannot reach the packages (it does not read pip's settings), pip does it all.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL = { $(PIP) uv && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(PINNED) -e '$(1)'; } \
  || $(PIP) $(PINNED) -e '$(1)'
# The versions that were tested together. `make CONSTRAINTS= test` in a new folder installs what pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
PINNED = $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# Half a second of each start, where Python is told not to write bytecode.
COMPILE = $(BIN)/python -m compileall -q graphrag_assets

.venv/.installed: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	@echo "Installing into .venv: half a minute to three minutes, 1 GB."
	@$(call INSTALL,.)
	@$(COMPILE)
	@touch $@

.venv/.installed-dev: pyproject.toml $(CONSTRAINTS) | .venv/bin/python
	@$(call INSTALL,.[dev])
	@$(COMPILE)
	@touch $@ .venv/.installed

demo: .venv/.installed
	$(BIN)/graphrag-assets index
	$(BIN)/graphrag-assets query local "Who commanded the Great Eastern in 1865?"
	$(BIN)/graphrag-assets query global "Why did the cable of 1858 fail, and what was learned from it?"

dev: .venv/.installed
	$(BIN)/graphrag-assets dev

# One more than there are cores: some tests wait for servers and browsers.
PYTEST = $(BIN)/python -m pytest --dist worksteal -n $(shell $(BIN)/python -c 'import os; print(os.cpu_count() + 1)')

test: .venv/.installed-dev
	$(PYTEST) -m "not extended and not long"

test-all: .venv/.installed-dev
	$(PYTEST) -m "not long"

test-long: .venv/.installed-dev
	$(PYTEST) --hypothesis-profile thorough

# A lower bound in pyproject.toml is raised where this fails.
test-lowest: .venv/.installed-dev
	$(PYTHON) -m venv build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct -e '.[dev]'
	build/lowest/bin/python -m pytest --dist worksteal -n 3 -m "not extended and not long"
	rm -rf build/lowest-data
	GRAPHRAG_DATA=build/lowest-data GRAPHRAG_INPUT=data/input build/lowest/bin/graphrag-assets index
	GRAPHRAG_DATA=build/lowest-data build/lowest/bin/graphrag-assets query local "Who commanded the Great Eastern in 1865?"

check: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/dg check defs

docs: .venv/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# For every supported Python and system; names and versions only.
constraints: .venv/.installed-dev
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade --quiet \
	  --no-header --no-annotate --output-file constraints.txt

bench: .venv/.installed-dev
	$(BIN)/python benchmarks/index_million_tokens.py

clean:
	rm -rf data/index data/dagster
