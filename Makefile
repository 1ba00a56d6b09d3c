# `make demo` and `make test` work on a machine with Python >= 3.11 and make, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= demo

TORCH  ?= torch==2.13.0

.PHONY: help demo test test-doors lint docs docs-check dist stranger bench bench-gallery bench-checkpoints torture clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/.ready  ## sample the paper's mixture with SGLD and CSGLD; writes $(OUT)/demo.png and results.json
	$(BIN)/contourmc demo --out $(OUT) --force

test: lint  ## lint, type check and run all tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-doors: $(VENV)/.doors  ## install PyTorch and PyMC too, and test the doors to them
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/doors tests/torch tests/pymc \
	  'tests/test_examples.py::test_a_mixture_of_a_modelling_language[pymc]'
	$(BIN)/python -m pytest tests/targets/test_external.py tests/test_reference.py tests/site/test_snippets.py \
	  -k "torch or pymc"

lint: $(VENV)/.dev  ## ruff, pyright, and the contract of layers: imports go one way only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

docs: $(VENV)/.docs  ## build the site into build/docs, and run every cell of its pages; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env -b html -d build/doctrees docs build/docs

docs-check: docs  ## build the site, and open it and a report in a headless Chromium, which is installed where that is possible
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { apt-get update -q && apt-get install -q -y chromium; } || { sudo -n apt-get install -q -y chromium; } || \
	  echo "Chromium could not be installed: what needs it is skipped"
	$(BIN)/python -m pytest tests/site tests/draws/report/test_browser.py

dist: $(VENV)/.dev  ## build wheel and sdist into dist, and try the wheel in an environment of its own
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m tools.try_package

stranger: $(BIN)/python  ## the README's path in a fresh clone, with a clock: clone, demo, an energy of one's own, its report
	$(BIN)/python -m tools.stranger

bench: $(VENV)/.bench  ## time per step beside BlackJAX and a C loop, in one run
	$(BIN)/python -m benchmarks.speed

bench-gallery: $(VENV)/.bench  ## the gallery by contourmc and its peers at equal evaluations: many hours, goes on after a cut; QUICK=--quick: less
	$(BIN)/python -m benchmarks.gallery $(QUICK)

torture: $(VENV)/.dev  ## kill 100 runs of every kind at random, resume them, and compare the results bit for bit
	$(BIN)/python -m benchmarks.torture

bench-checkpoints: $(VENV)/.dev  ## what checkpoints cost: time, resuming, memory
	$(BIN)/python -m benchmarks.checkpoints

clean:  ## remove the virtual environment, the demo's output, the site and the packages
	rm -rf $(VENV) demo build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "contourmc needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of requirements; a change of pyproject.toml installs again.
$(VENV)/.ready: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.ready

$(VENV)/.doors: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,torch,pymc]'
	@touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' || \
	  echo "PyTorch could not be installed: the guide to it is not executed"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@
