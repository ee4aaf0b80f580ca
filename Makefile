PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Real data sets, if they lie beside the checkout; otherwise downloads go to the cache folder.
ifneq ($(wildcard ../shared/data),)
export DCGST_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help demo test check format results docs clean

help:
	@echo "make demo    set up, then show what label bias costs on embedded data"
	@echo "make test    set up, then run the tests"
	@echo "make check   lint, types, import layers"
	@echo "make format  format the code"
	@echo "make docs    build the documentation into site/"
	@echo "make results run what is missing of the paper, redraw its pages and figures"
	@echo "make clean   remove the environment and caches"

demo: $(VENV)/.ready
	$(BIN)/dcgst demo

test: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

check: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

results: $(VENV)/.ready
	$(BIN)/dcgst reproduce all --results results/reproduce.jsonl --figures results/figures --page docs/results.md
	$(BIN)/python benchmarks/readme_table.py

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), a minute or two …"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
