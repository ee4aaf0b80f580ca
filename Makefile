PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Use the real datasets if they are next to the checkout; otherwise they are downloaded.
ifneq ($(wildcard ../shared/data),)
export DCGST_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test check format docs outputs results package mutants fuzz clean

help:
	@echo "make demo     install, then show the cost of biased labels on built-in data"
	@echo "make test     install, then run the tests"
	@echo "make check    lint, types, import layers"
	@echo "make format   format the code"
	@echo "make docs     build the documentation into site/"
	@echo "make outputs  update the command outputs in README and documentation"
	@echo "make results  run missing experiments of the paper, update result pages and figures"
	@echo "make package  build wheel and source distribution into dist/"
	@echo "make mutants  change the code in 200 ways and report which changes no test detects"
	@echo "make fuzz     run 15,000 generated and damaged inputs and report how each ended"
	@echo "make clean    remove the environment, caches and build results"

demo: $(VENV)/.ready
	$(BIN)/dcgst demo

test: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

outputs: $(VENV)/.ready
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python tools/run_docs.py --update README.md docs/*.md

results: $(VENV)/.ready
	$(BIN)/dcgst reproduce all --results results/reproduce.jsonl --figures results/figures --page docs/results.md
	$(BIN)/python tools/update_pages.py

package: $(VENV)/.ready
	$(BIN)/python -m build --outdir dist .

mutants: $(VENV)/.ready
	$(BIN)/python tools/mutants.py

fuzz: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .mutants .fuzz build dist site

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), a few minutes …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
