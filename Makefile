# make demo    install into .venv; then a CSV: is its judge any good, and is there a better prompt?
# make test    lint, types, tests, the README's commands, the built wheel in an empty environment
# make lint    ruff and mypy alone
# make welcome play the README and the handbook's ten minutes from a bare clone in an empty environment
# make docs    the handbook into site/, strict, every link checked; in an environment of its own
# make docs-pictures  the handbook's pictures anew, of real runs; DATA=DIR has the public data; needs Chromium
# make bench   measurements that are too slow or too noisy for a test; DATA=DIR for those on public data
# make torture kill, starve and mislead it for some minutes; TORTURE=quick for a small version
# make golden  write anew what every command prints and writes; read the diff
# make pins    compile requirements*.lock anew from pyproject.toml

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
TORTURE ?= full
DEMO_CSV := examples/judged.csv
DOCS := .venv-docs
DOCS_READY := $(DOCS)/.ready-$(shell cksum < requirements-docs.lock | cut -d' ' -f1)
READY := $(VENV)/.ready-$(shell cat requirements-dev.lock pyproject.toml | cksum | cut -d' ' -f1)

# Commands that tests start would compile all that they import anew: half the time of the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo welcome test lint docs docs-pictures bench torture golden pins clean

demo: $(READY)
	@rm -rf .demo && $(BIN)/judgecal init .demo --json >/dev/null
	@echo "1. $(DEMO_CSV): 223 replies of a made-up help desk, 130 with our label. Is its judge any good, and where does it fail?" && echo
	@cd .demo && ../$(BIN)/judgecal agreement ../$(DEMO_CSV) --labels-by project --name first
	@echo && echo "2. Its answers become a gold set. Does another prompt do better than correctness_v3, with the free model?" && echo
	@cd .demo && ../$(BIN)/judgecal gold import ../$(DEMO_CSV) --as judged \
		--label label --verdict judge --scale binary --labels-by project --json >/dev/null
	@cd .demo && ../$(BIN)/judgecal optimize --gold judged --signature correctness_v3 --name better
	@echo && echo "3. The page of the CSV's judge, with every answer on which it errs:" && echo
	@cd .demo && ../$(BIN)/judgecal report first --format html
	@echo "next: cd .demo && ../$(BIN)/judgecal report first --open"

# Plays the README and the first page of the handbook from a bare clone in an empty environment.
welcome:
	$(PYTHON) tests/ten_minutes.py

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "site/index.html; with its search: $(BIN)/python -m http.server -d site"

docs-pictures: $(READY)
	$(BIN)/python -m docs.pictures $(DATA)

bench: $(READY)
	$(BIN)/python tests/benchmarks/coverage.py
	$(BIN)/python -m tests.benchmarks.front_door
	$(BIN)/python -m tests.benchmarks.calibration
	$(BIN)/python -m tests.benchmarks.false_alarms
	$(BIN)/python -m tests.benchmarks.optimize_decisions
	$(BIN)/python -m tests.benchmarks.optimize_auto
	$(BIN)/python -m tests.benchmarks.optimize_race
	$(BIN)/python -m tests.benchmarks.selection
	$(BIN)/python -m tests.benchmarks.corrected_rate --data $(DATA)
	$(BIN)/python -m tests.benchmarks.gate_nights
	$(BIN)/python -m tests.benchmarks.migrations
	$(BIN)/python -m tests.benchmarks.looks
	$(BIN)/python -m tests.benchmarks.retrieval_speed
	$(BIN)/python -m tests.benchmarks.slices
	$(BIN)/python -m tests.benchmarks.sweeps
	$(BIN)/python -m tests.benchmarks.throughput

# Not collected without the variable, so `make test` passes them over.
torture: $(READY)
	JUDGECAL_TORTURE=$(TORTURE) $(BIN)/python -m pytest tests/torture -n 4 --dist load --maxschedchunk 1 --durations=10

golden: $(READY)
	$(BIN)/python -m tests.support.golden

pins: $(READY)
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header -q pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header -q pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header -q --group pyproject.toml:docs -o requirements-docs.lock

clean:
	rm -rf $(VENV) $(DOCS) .demo build dist site .pytest_cache .mypy_cache .ruff_cache

# pip brings the pinned uv; the sync then keeps uv, which is one of the pins, and drops pip, which is none.
$(READY):
	@echo "Installing judgecal and what it needs into $(VENV), about 1 GB: a minute or two, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || { $(BIN)/python -m ensurepip >/dev/null && \
		$(BIN)/python -m pip install -q --disable-pip-version-check $$(sed -n 's/^\(uv==[0-9.]*\).*/\1/p' requirements-dev.lock); }
	@rm -f $(VENV)/.failed
	@{ VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --require-hashes requirements-dev.lock 2>&1 || touch $(VENV)/.failed; } | \
		sed '/^ [-+~] /d' && test ! -e $(VENV)/.failed
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.ready-* && touch $@

# mkdocs needs nothing of judgecal: the generated pages are committed, and a test holds them.
$(DOCS_READY): $(READY)
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv --without-pip $(DOCS)
	VIRTUAL_ENV=$(DOCS) $(BIN)/uv pip sync --quiet --require-hashes requirements-docs.lock
	rm -f $(DOCS)/.ready-*
	touch $@
