# Every target works from a bare clone: it makes its own .venv from constraints.txt (exact versions, with hashes).
# PYTHON chooses the interpreter (3.11 to 3.14).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml $(shell find src core adapters cli agent -name '*.py' 2>/dev/null) src/fivespot/py.typed

.PHONY: demo test lint bench format generate install clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed ## a fleet's week, simulated
	$(BIN)/5spot simulate --from 2026-03-02T00:00:00Z --to 7d deploy/examples

test: lint ## lint, then every tier that this machine can run
	$(BIN)/python -m pytest -p no:cacheprovider --durations=10 --ignore=tests/bench

lint: $(VENV)/.installed ## formatting, lint, import contracts, strict types of the installed package
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	cd $(VENV) && bin/mypy --config-file ../pyproject.toml -p fivespot

bench: $(VENV)/.installed ## figures; never fails on a time
	$(BIN)/python -m pytest tests/bench -p no:cacheprovider --benchmark-disable-gc -s -q

format: $(VENV)/.ready ## rewrite the sources as lint wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.installed ## the committed files that are made from the models
	$(BIN)/5spot crds --output deploy/crds
	$(BIN)/5spot docs api --output docs/api.md

install: $(VENV)/.installed

$(VENV)/.ready: constraints.txt
	@echo "making $(VENV) with $$($(PYTHON) --version) and the exact packages of constraints.txt: about a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	@touch $@

# A real install, not an editable one: the tests and mypy see what a user gets.
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	@# Under a lock, since the build folder is one: a second make waits.
	flock $(VENV)/.lock sh -c 'rm -rf build && $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --force-reinstall . && rm -rf build && touch $@'

clean: ## what this Makefile made
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
