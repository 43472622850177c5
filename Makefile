# One way to run things: people, the README and CI all use these targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# What every run of tests has in common. What is compiled is kept, also where the environment says
# otherwise: each of hundreds of processes would compile deniable anew.
test campaign mutants: export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest -n auto --max-worker-restart=0 -q

.DEFAULT_GOAL := help
.PHONY: help demo dist test campaign mutants size lint format audit bench site screenshots texts web clean

help: ## Show this help
	@echo "deniable: telemetry with plausible deniability"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## Collector, dashboard and 50,000 simulated devices, on this machine
	@$(BIN)/deniable demo

# The same commit makes the same bytes: the day of the commit is in it, and not of the build. A copy
# without git has hatchling's day.
SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),1580601600)
dist: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)
dist: export PIP_CONSTRAINT := constraints.txt
dist: $(BIN)/python ## A wheel in dist/, for apps and servers to install, and its list of parts (CycloneDX)
	@rm -rf dist
	@$(PIP) wheel --no-deps --wheel-dir dist .
	@$(BIN)/python .ci/sbom.py > dist/deniable.cdx.json
	@ls dist/*

test: $(VENV)/.dev ## The tests, on all cores, in less than five minutes
	$(PYTEST) --dist worksteal --durations=10 --longest=5 -m "not campaign" $(TESTS)

# One worker runs a file, in its order: documented commands build on those before them.
campaign: $(VENV)/.dev ## What takes long: many draws, clusters, faults, browsers. ROOM=collector for a part
	$(PYTEST) --dist loadfile --durations=20 -m campaign tests/$(ROOM)

mutants: $(VENV)/.dev ## Faults put into the product one at a time: do the tests notice? MUTANTS="ledger --sample 50"
	$(BIN)/python -m tests.mutants $(MUTANTS)

size: ## Files, code lines and words of each room
	@$(PYTHON) .ci/size.py

lint: $(VENV)/.dev ## Style, imports and types, of Python and TypeScript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@.ci/web check lint

web: ## Build the TypeScript SDK, and copy it into the Python package for `deniable compile web`
	DENIABLE_REQUIRE_ALL=1 .ci/web build
	@mkdir -p client/deniable/web
	rm -f client/deniable/web/*
	cp client/web/dist/*.js client/deniable/web
	rm client/deniable/web/deniable.closed.development* client/deniable/web/deniable.memoized.development*

format: $(VENV)/.dev ## Put the code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## All benchmarks, quickly; benchmarks/README.md says more
	@for file in benchmarks/*.py; do $(BIN)/python $$file --quick || exit 1; done

audit: $(VENV)/.dev ## Look up known vulnerabilities of the versions in constraints.txt
	@$(BIN)/python .ci/audit.py constraints.txt

site: $(VENV)/.dev ## The documentation as a site, in site/: open site/index.html
	@mkdir -p .make/typescript
	@echo 'This site was built without Node, which this page needs.' > .make/typescript/README.md
	@.ci/web reference
	@rm -rf site
	@$(BIN)/sphinx-build -q -W --keep-going -E -d .make/doctrees -c docs/site . site
	@rm -rf site/_sources site/.buildinfo
	@echo "The documentation is in site/index.html"

screenshots: $(VENV)/.dev ## Take the documentation's pictures of the dashboard anew
	$(BIN)/python docs/screenshots.py

texts: $(VENV)/.runtime ## Gather the texts to translate, and bring the catalogues up to date
	$(BIN)/python .ci/texts.py

clean: ## Remove the environment and all caches
	rm -rf $(VENV) dist site .make .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@echo "Making the environment in $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "deniable needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints.txt --upgrade pip

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing deniable ..."
	@$(PIP) install -c constraints.txt -e '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "Installing what the tests and checks need ..."
	@$(PIP) install -c constraints.txt --group dev
	@$(PIP) install -c constraints.txt --group accounting --no-deps
	@touch $@
