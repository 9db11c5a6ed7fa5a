# `make circles` and `make test` do everything on a fresh machine; `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
WORKERS ?= 2
PIP_INSTALL := -m pip install --disable-pip-version-check -q -c constraints.txt
# One thread per worker: more would fight over the cores. Compiled modules are kept even where the environment forbids it:
# else every worker, layer and started process compiles the whole project again.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -rs -n $(WORKERS)
PYENV_ROOT ?= $(HOME)/.pyenv
# The first interpreter that ArviZ 1.x can run on (a pyenv shim may exist and yet not start).
ARVIZ1_PYTHON = $(shell for python in python3.13 python3.12 python3.14 $(PYTHON) $(PYENV_ROOT)/versions/3.1[234]*/bin/python; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 && echo "$$python" && break; done)

.PHONY: help .venv .venv-arviz1 circles test test-unit test-end-to-end test-arviz1 lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[.a-z0-9-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "PYTHON=python3.12 chooses the interpreter of a new environment; WORKERS=4 the processes of the tests."

circles: .venv  ## create the environment, then fit the circles data set: python -m inference.svi --dataset circles
	.venv/bin/python -m inference.svi --dataset circles

test: test-unit test-end-to-end test-arviz1  ## create the environments, then run every test

test-unit: .venv  ## tests of functions and modules
	$(PYTEST) -m "not end_to_end" --ignore=tests/end_to_end

test-end-to-end: .venv  ## tests of whole commands, of the README and of docs
	$(PYTEST) --dist loadgroup -m end_to_end tests/end_to_end tests/documentation

test-arviz1: .venv .venv-arviz1  ## the ArviZ file under ArviZ 1.x, in an environment without torch
	@if [ -e .venv-arviz1/complete ]; then \
		if [ -z "$${POSTERIOR_FILES:-}" ]; then \
			export POSTERIOR_FILES=$$(mktemp -d); trap 'rm -rf "$$POSTERIOR_FILES"' EXIT; \
			PYTHONPATH=. OMP_NUM_THREADS=1 .venv/bin/python tests/end_to_end/posterior_files.py "$$POSTERIOR_FILES"; \
		fi; \
		.venv-arviz1/bin/python -m pytest -rs -p no:cacheprovider --noconftest \
			tests/results/test_arviz_export.py tests/end_to_end/test_arviz_calls.py; \
	else \
		echo "SKIPPED tests under ArviZ 1.x: no Python 3.12 or newer was found"; \
	fi

lint: .venv  ## check style, formatting and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: .venv  ## mend style and formatting
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

clean:  ## remove environments and caches (runs/ stays)
	rm -rf .venv .venv-arviz1 .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv: .venv/complete  ## create the environment

# `complete` is written last. Without it the folder is what an interrupted creation left, and is made anew.
.venv/complete: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d; name another: make .venv PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip' || { echo "$(PYTHON) cannot create environments: install its venv package (Debian: python3-venv)"; exit 1; }
	@echo "Installing into .venv (PyTorch is the long part, a few minutes)"
	@[ -e $@ ] || $(PYTHON) -m venv --clear .venv
	@rm -f $@
	.venv/bin/python $(PIP_INSTALL) torch
	@# As a path, so that `python -m inference.svi` works from any folder, too.
	.venv/bin/python $(PIP_INSTALL) -e '.[test,lint,oracles,sweep]' --config-settings editable_mode=compat
	@touch $@

.venv-arviz1:
	@if [ -z "$(ARVIZ1_PYTHON)" ]; then \
		echo "No .venv-arviz1: no Python 3.12 or newer was found"; \
	else \
		$(MAKE) --no-print-directory -s .venv-arviz1/complete; \
	fi

.venv-arviz1/complete: constraints.txt
	@echo "Installing ArviZ 1.x into .venv-arviz1"
	@$(ARVIZ1_PYTHON) -m venv --clear .venv-arviz1
	.venv-arviz1/bin/python $(PIP_INSTALL) 'arviz>=1.2,<2' h5netcdf h5py lazy-loader numpy pytest xarray
	@touch $@
