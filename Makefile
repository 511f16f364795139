# Everything that a checkout can do; `make help` lists it. Environments are made on first use, without root, and again
# when pyproject.toml or the pinned versions change. PYTHON chooses the interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
PYTHON_LOWEST ?= python3.10
LOCKED := constraints/tests.txt
ENVIRONMENTS := not root and not edge_servers and not export and not browser and not servers and not board and not kernel and not booted and not emulated
PLAIN := -m "$(ENVIRONMENTS) and not slow"
SLOW := -m "$(ENVIRONMENTS) and slow"
PARALLEL := -n $(shell expr $$(nproc) + 1) --dist worksteal# one more than cores: many tests wait for other processes
ARCH ?= $(shell dpkg --print-architecture)
DEB_PYTHONS ?= 3.10 3.11 3.12 3.13

# The tests start hundreds of processes: each reads what Python compiled before, whatever the shell has set.
export PYTHONDONTWRITEBYTECODE :=

export GOAL := $(firstword $(MAKECMDGOALS))
export PYTHON
asked := $(if $(filter file,$(origin PYTHON)),,yes)
environment = @ASKED=$(asked) .ci/environment

# An environment whose interpreter is gone, or is not the one that was asked for, is noticed although its stamp is fresh.
gone = $(if $(realpath $(1)/bin/python),,FORCE)
chosen := $(if $(asked),| same-python)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check lint format layers test-slow test-lowest test-host test-system test-edge test-export test-kernel test-booted test-booted-bionic test-emulated test-board deb bench lock clean same-python FORCE

help:  ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

demo: .venv/.demo  ## classify a few photographs: a daemon is started, asked and stopped
	.venv/bin/jetsel demo --models build/models

test: .venv/.test  ## the tests that need neither root, torch nor a browser, but for the slow ones
	.venv/bin/python -m pytest $(PLAIN) $(PARALLEL) tests/unit tests/contract tests/system calibration/tests

test-slow: .venv/.bench  ## the slow ones: kills, drains, limits, whole calibrations, hostile files, the documents' programs
	.venv/bin/python -m pytest $(SLOW) $(PARALLEL) tests/unit tests/contract tests/system calibration/tests

check: lint test  ## everything before a commit: format, lint, types, layers, tests

lint: .venv/.test  ## format, lint, types and layers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/python -m pytest tests/unit/test_layers.py

format: .venv/.test  ## rewrite the sources in the project's format
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

test-lowest: .venv-lowest/.test  ## unit and contract tests with the oldest versions we accept, on Python 3.10
	.venv-lowest/bin/python -m pytest $(PLAIN) $(PARALLEL) tests/unit tests/contract calibration/tests

test-host: .venv/.test  ## the engine host under the Python of each board: those on the path, or HOST_PYTHONS="..."
	.ci/test-host .venv $(HOST_PYTHONS)

test-system: .venv/.browser .venv-export/.test  ## the tests that need root, torch, Chromium or Debian's servers; what they lack is a failure
	.ci/marked .venv root
	.ci/marked .venv browser
	.ci/marked .venv servers
	.ci/marked .venv-export export

test-edge: .venv-edge/.test  ## a device asks Triton, Ray Serve and our gateway through a bad link; needs root
	.ci/marked .venv-edge edge_servers

test-export: .venv-exporters/.test  ## what real exporters write is added and answers as they do; some GB of packages
	.venv-exporters/bin/python -m pytest --forbid-skips -W ignore tests/exporters

test-kernel: .venv/.test  ## power read through Linux's own sensor drivers, in a QEMU machine
	.ci/marked .venv kernel

test-booted: DEB_PYTHONS = 3.11# of the Debian that is booted
test-booted: deb  ## the Debian package, and the service under a real systemd, in a booted container
	.ci/marked .venv booted

test-booted-bionic: DEB_PYTHONS = 3.10# that is built there, beside the system's 3.6
test-booted-bionic: deb  ## the same on Ubuntu 18.04 with systemd 237, which is what a board with JetPack 4 has
	.ci/marked .venv booted --release=bionic

test-emulated: ARCH = arm64
test-emulated: DEB_PYTHONS = 3.11# of the Debian that is emulated
test-emulated: deb  ## the arm64 package in a Debian of arm64, under QEMU's user emulation: some ten minutes
	.ci/marked .venv emulated

test-board: .venv/.test  ## the contract, faults and figures with a board's own TensorRT: see tests/board/README.md
	.venv/bin/python -m pytest --forbid-skips -m board tests/board

deb: .venv/.test .venv-lock/.uv  ## Debian packages with all wheels, in dist/: ARCH=arm64, DEB_PYTHONS="3.10 3.12"
	PYTHONS="$(DEB_PYTHONS)" systemd/deb/build $(ARCH) .venv/bin/python .venv-lock/bin/uv

bench: .venv/.bench  ## the daemon beside a bare loop and another server
	.venv/bin/python -m benchmarks

lock: .venv-lock/.uv  ## renew the pinned versions in constraints/
	.ci/lock .venv-lock/bin/uv

clean:  ## remove the environments and everything that was built
	rm -rf .venv .venv-edge .venv-export .venv-exporters .venv-host-* .venv-lowest .venv-lock build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.demo: pyproject.toml $(LOCKED) $(call gone,.venv) $(chosen)
	$(environment) .venv $@ -c $(LOCKED) -e '.[demo]'

.venv/.test: pyproject.toml $(LOCKED) $(call gone,.venv) $(chosen)
	$(environment) .venv $@ -c $(LOCKED) -e '.[demo,dev,gateway,edge,agent,fleet]'
	@touch .venv/.demo

.venv/.browser: pyproject.toml $(LOCKED) $(call gone,.venv) $(chosen)
	$(environment) .venv $@ -c $(LOCKED) -e '.[demo,dev,gateway,edge,agent,fleet,browser]'
	@touch .venv/.demo .venv/.test

.venv/.bench: pyproject.toml $(LOCKED) $(call gone,.venv) $(chosen)
	$(environment) .venv $@ -c $(LOCKED) -e '.[demo,dev,gateway,edge,agent,fleet,bench]'
	@touch .venv/.demo .venv/.test

.venv-export/.test: pyproject.toml $(LOCKED) constraints/export.txt $(call gone,.venv-export)
	$(environment) .venv-export $@ -c $(LOCKED) -c constraints/export.txt -e '.[demo,dev,gateway,edge,agent,fleet,export,reference]'

.venv-edge/.test: pyproject.toml tests/edge_servers/requirements.txt constraints/edge-servers.txt $(call gone,.venv-edge)
	$(environment) .venv-edge $@ -c constraints/edge-servers.txt -r tests/edge_servers/requirements.txt -e '.[demo,dev,gateway,edge,agent,fleet]'

.venv-exporters/.test: pyproject.toml tests/exporters/requirements.txt constraints/exporters.txt $(call gone,.venv-exporters)
	$(environment) .venv-exporters $@ -c constraints/exporters.txt -r tests/exporters/requirements.txt -e .

.venv-lowest/.test: PYTHON := $(PYTHON_LOWEST)
.venv-lowest/.test: export VARIABLE := PYTHON_LOWEST
.venv-lowest/.test: pyproject.toml constraints/lowest.txt constraints/lowest-rest.txt $(call gone,.venv-lowest)
	$(environment) .venv-lowest $@ -c constraints/lowest.txt -c constraints/lowest-rest.txt -e '.[demo,dev,gateway,edge,agent,fleet]'

.venv-lock/.uv: $(call gone,.venv-lock)
	$(environment) .venv-lock $@ uv

same-python:
	$(environment) .venv -
FORCE:
