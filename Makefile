# sparkmirror's commands. `make` alone prints them. Every target sets up what it needs by itself.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup jars demo test test-newcomer test-pure test-brokers test-spark lint types imports fmt docs bench check lock clean

# Any Python from 3.11 on will do: `make PYTHON=/path/to/python3.12 test`.
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3,$(shell \
	$(name) -c 'import sys; print(sys.executable) if sys.version_info >= (3, 11) else None' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=

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
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	@touch $(READY)

setup: $(READY) jars ## make the virtual environment and fetch Kafka's jars

jars: $(READY) ## fetch and check Apache Kafka's jars (cached per user)
	@$(BIN)/sparkmirror lab jars

demo: $(READY) ## two real clusters on this computer (ARGS="--for 30" ends by itself)
	@$(BIN)/sparkmirror demo $(ARGS)

test: lint types imports test-pure test-brokers test-spark ## everything CI runs

test-newcomer: ## `make test` as a user who is not root, from a long path with a space, on a busy machine
	@$(PYTHON) tests/newcomer.py $(ARGS)

test-pure: $(READY) ## the tests that need nothing, in under a minute
	@$(BIN)/pytest -n auto tests/pure $(ARGS)

test-brokers: jars ## the tests on real Kafka brokers
	@$(BIN)/sparkmirror lab jars --version 3.9.2
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder tests/brokers $(ARGS)

test-spark: jars ## the tests on real Spark
	@$(BIN)/python -m sparkmirror.engine.driver.cds_archive > /dev/null
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder tests/spark $(ARGS)

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict everywhere
	@$(BIN)/mypy

imports: $(READY) ## import contracts: the layers, one importer per outside library
	@$(BIN)/lint-imports --no-cache

fmt: $(READY) ## format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY) ## print docs/configuration.md from the tables
	@$(BIN)/python -m sparkmirror.config.manual.markdown > docs/configuration.md.new
	@mv docs/configuration.md.new docs/configuration.md

bench: jars ## side by side with Java MirrorMaker 2, about an hour (ARGS="--quick")
	@$(BIN)/python -m bench $(ARGS)

check: test ## the same as test: all that CI runs, in CI's order

lock: $(READY) ## pin the dependencies anew, with hashes
	@$(BIN)/python -m pip install --disable-pip-version-check -q uv
	@$(BIN)/uv pip compile pyproject.toml --extra spark --extra lab --group dev --universal \
		--python-version 3.11 --generate-hashes --no-emit-find-links --no-emit-index-url \
		--custom-compile-command "make lock" --upgrade --quiet --output-file requirements/dev.txt

clean: ## remove the virtual environment and the tools' caches (not the jars)
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
