# Two commands matter: `make demo` and `make test`. Each makes its own .venv and installs what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of programs: compiled once, not each time

.DEFAULT_GOAL := help
.PHONY: help demo test coverage quick lint format soak soak-twin soak-server soak-federated bench audit mutants release docs notebooks clean python-is-new-enough

help:  ## Show this list
	@echo "discreet: Naive Bayes classifiers from data nobody has to reveal"
	@echo
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

demo: $(VENV)/.demo  ## Train and compare classifiers on the bundled population
	@$(BIN)/discreet demo --out demo

test: lint  ## Lint, type-check, run all tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile

coverage: $(VENV)/.test  ## Run all tests and print which lines they reach
	@$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term:skip-covered

quick: lint  ## The same without the slow tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not spark"

lint: $(VENV)/.test  ## ruff, mypy and codespell
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell
	@$(BIN)/mypy

format: $(VENV)/.test  ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

soak: soak-twin soak-server soak-federated  ## Long runs of what CI samples: takes hours

soak-twin: $(VENV)/.test  # a million new cases of the JavaScript client beside Python: two hours
	@DISCREET_CASES=1000000 DISCREET_DRAWS=1000000 REQUIRE_BROWSER=1 \
	  $(BIN)/python -m pytest tests/vectors/test_live.py tests/browser/test_channels.py

soak-server: $(VENV)/.test  # hundreds of servers killed under load, on both databases: an hour
	@DISCREET_ROUNDS=300 $(BIN)/python -m pytest -n 0 tests/server/test_killed.py

soak-federated: $(VENV)/.test  # parties of rounds killed before and after every step, in every mode
	@SOAK=1 $(BIN)/python -m pytest -n 0 tests/federated/test_kills.py tests/federated/test_silence.py

bench: $(VENV)/.bench  ## Measure against peers (takes a while); see benchmarks/RESULTS.md
	@for script in benchmarks/[!_]*.py; do echo "## $$script"; $(BIN)/python $$script || exit 1; done

audit: $(VENV)/.test  ## Audit planted defects and sound mechanisms: under 10 minutes on two cores
	@cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m audit.catalogue

mutants: $(VENV)/.test  ## Change privacy-relevant lines one by one; show which tests notice (an hour)
	@$(BIN)/python tests/mutants.py

release: $(VENV)/.release  ## Build wheel and sdist twice, compare them, list licences and parts
	@rm -rf dist build/again
	@SOURCE_DATE_EPOCH=1700000000 $(BIN)/python -m hatchling build -d dist
	@SOURCE_DATE_EPOCH=1700000000 $(BIN)/python -m hatchling build -d build/again
	@for file in dist/*; do cmp $$file build/again/$$(basename $$file) || exit 1; done
	@tar -xzf dist/*.tar.gz -C build/again  # and once more, from what is in the sdist alone
	@cd build/again/discreet-*/ && SOURCE_DATE_EPOCH=1700000000 $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d ../alone
	@cmp dist/*.whl build/again/alone/*.whl
	@echo "Built twice, and from the sdist: the same bytes"
	@$(BIN)/discreet verify --list >dist/page.sha256  # its own SHA-256 is the digest on the page
	@$(BIN)/python docs/generate_licences.py
	@$(BIN)/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-file dist/sbom.cdx.json
	@$(BIN)/python docs/generate_licences.py dist/sbom.cdx.json
	@! grep -q 'discreet\.example' pyproject.toml || echo "Not to be published yet: discreet.example in pyproject.toml is a reserved name"

docs: $(VENV)/.docs  ## Build the documentation into site/
	@$(BIN)/python docs/generate_reference.py >/dev/null
	@$(BIN)/zensical build --clean
	@rm -f site/*.py

notebooks: $(VENV)/.notebooks  ## Run the notebooks of examples/ and keep their outputs
	@$(BIN)/python docs/run_notebooks.py

clean:  ## Remove everything that can be made again
	rm -rf .venv .venv-* .cache site docs/reference dist build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python-is-new-enough:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "discreet needs Python 3.11 or later, '$(PYTHON)' is $$($(PYTHON) --version 2>&1); try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }

$(BIN)/python: | python-is-new-enough
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing discreet into $(VENV) (once; about a minute) …"
	@$(PIP) -e . && touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing discreet and its test tools into $(VENV) (once; a few minutes) …"
	@$(PIP) -e ".[test,lint,export,postgres,federated,server,plot,docs]" && touch $@ $(VENV)/.demo

$(VENV)/.bench: $(VENV)/.test
	@$(PIP) -e ".[bench]" && touch $@

$(VENV)/.release: $(VENV)/.test
	@$(PIP) -e ".[release]" && touch $@

$(VENV)/.notebooks: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[notebooks]" && touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@$(PIP) -e ".[docs,federated,server]" && touch $@
