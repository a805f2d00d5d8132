.DEFAULT_GOAL := help
.PHONY: help setup quickstart test check

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1: /p' $(MAKEFILE_LIST)

setup:  ## create .venv with everything in it, for the GPUs or the CPU of this machine
	@scripts/setup.sh

quickstart: setup  ## train the small policy in the package with MASPO, on two CPU cores
	.venv/bin/maspo-rl train experiment=quickstart

test: setup  ## run the whole test suite
	.venv/bin/python -m pytest

check: setup  ## lint, format and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
