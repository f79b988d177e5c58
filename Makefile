# Everything here works from a fresh clone: each target first makes .venv, or finds it ready.
SHELL := /bin/sh
ARGS ?=
BIN := .venv/bin
UV_VERSION := 0.13.7
COMPILE := pip compile --universal --generate-hashes --python-version 3.11 --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help bootstrap servers up test check format bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bootstrap: ## make .venv from the lock files
	@tools/bootstrap

servers: bootstrap
	@$(BIN)/python -m harness.provide

up: bootstrap ## run Attune in one process on this machine
	@$(BIN)/attune up $(ARGS)

test: servers ## run the tests, against real servers (ARGS="-k name" chooses)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(ARGS)

check: bootstrap ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: bootstrap ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: servers ## measure Attune and its peers, on real servers (ARGS="--quick pipeline" chooses)
	$(BIN)/python -m bench $(ARGS)

lock: ## renew the lock files from pyproject.toml (ARGS=--upgrade for newer versions)
	@uv=$$(tools/bootstrap --print-uv) && \
	"$$uv" $(COMPILE) $(ARGS) pyproject.toml -o requirements.lock && \
	"$$uv" $(COMPILE) $(ARGS) pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock && \
	echo hatchling | "$$uv" $(COMPILE) $(ARGS) - --no-annotate -c requirements-dev.lock -o tools/build.lock && \
	echo uv==$(UV_VERSION) | "$$uv" $(COMPILE) - --no-annotate -o tools/uv.lock

clean: ## remove .venv, tools and caches
	rm -rf .venv .tools build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests harness bench -name __pycache__ -type d -prune -exec rm -rf {} +
