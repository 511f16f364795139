"""The board under test: the interpreter that the daemon would take, engines built once, and the report at the end."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.report import table
from jetsel.base.errors import JetselError
from jetsel.base.host_settings import HostSettings
from jetsel.calibrate.record.conditions import gather
from jetsel.engines.building.builder import Builder
from jetsel.engines.hosting.interpreters import default
from jetsel.engines.hosting.process import HostStart, query_host
from jetsel.zoo import STARTER, scan
from tests.contract.opening import Models, Subject

UNKNOWN = "unknown"


def percentiles(times_ms: Sequence[float]) -> str:
    """Return the median and the 95th percentile in words."""
    p50, p95 = np.percentile(times_ms, [50, 95])
    return f"{p50:.2f} / {p95:.2f}"


def megabytes(size_bytes: int | None) -> str:
    """Return a size in MB; unknown for None."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / 1e6:.1f}"


class Report:
    """Facts about the machine, and a row for each engine: figures in words by their names, the same for all."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.rows: list[dict[str, str]] = []

    def machine(self, about: Mapping[str, Any]) -> None:
        """Note the machine's conditions, and what the host says of itself."""
        self.facts |= gather().described()
        self.facts |= {"host's python": about["python"], "TensorRT": about["version"]}
        self.facts |= {f"host's {name}": version for name, version in sorted(about["libraries"].items())}
        self.facts |= {f"gpu {name}": str(value) for name, value in about["gpu"].items()}

    def lines(self) -> list[str]:
        """Return all of it as text, the rows as a table in Markdown."""
        lines = [f"- {name}: {value}" for name, value in self.facts.items()]
        if self.rows:
            lines += table(list(self.rows[0]), [list(row.values()) for row in self.rows])
        return lines


PYTHON, ENGINES = "JETSEL_BOARD_PYTHON", "JETSEL_BOARD_ENGINES"
REPORT = pytest.StashKey[Report]()

Built = Callable[[str, str], Mapping[str, Any]]


@pytest.fixture(scope="session")
def python(pytestconfig: pytest.Config) -> str:
    """The interpreter that sees TensorRT, found as the daemon finds it unless JETSEL_BOARD_PYTHON names one."""
    try:
        found = os.environ.get(PYTHON) or default("tensorrt")
        query_host(HostStart(found, "tensorrt"))
        return found
    except JetselError as error:
        if pytestconfig.getoption("forbid_skips"):
            pytest.exit(f"no test was run: {error}", returncode=1)  # once, and not once for every test
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def settings(python: str, tmp_path_factory: pytest.TempPathFactory) -> HostSettings:
    """The host as it comes, with engines in a folder of their own, or in JETSEL_BOARD_ENGINES, where they stay."""
    return HostSettings(engines=os.environ.get(ENGINES) or str(tmp_path_factory.mktemp("engines")), interpreter=python)


@pytest.fixture(scope="session")
def about(settings: HostSettings, report: Report) -> Mapping[str, Any]:
    """What the host says of itself, its TensorRT and its GPU."""
    found = Builder(settings).about
    report.machine(found)
    return found


@pytest.fixture(scope="session")
def report(pytestconfig: pytest.Config) -> Report:
    """What is told at the end."""
    return pytestconfig.stash.setdefault(REPORT, Report())


@pytest.fixture(scope="session")
def built(settings: HostSettings, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the starter family in a precision, once, and return what `jetsel models build --json` says of one model."""
    build = functools.cache(lambda precision: build_starter(settings, precision, tmp_path_factory.mktemp("build")))

    def of(precision: str, name: str) -> Mapping[str, Any]:
        told: Mapping[str, Any] = build(precision)[name]
        assert told["fault"] is None, told["fault"]
        return told

    return of


@pytest.fixture(scope="module", params=["fp32", "fp16"])
def precision(request: pytest.FixtureRequest) -> str:
    """Those that every board can do."""
    return str(request.param)


@pytest.fixture
def models(settings: HostSettings) -> Iterator[Models]:
    """Open models as the settings come, in one host that ends with the test."""
    made = Models(Subject("tensorrt", settings))
    yield made
    made.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    report = config.stash.get(REPORT, None)
    if report is not None and report.facts:
        terminalreporter.section("figures of this board; please send them (tests/board/README.md)")
        for line in report.lines():
            terminalreporter.line(line)


LIMIT_S = 4 * 3600  # a slow board builds for minutes; what hangs is ended by the command's own limits
MODELS = {model.manifest.name: model.weights(100) for model in scan([STARTER]).families["starter"].models}


def build_starter(settings: HostSettings, precision: str, folder: Path) -> Mapping[str, Any]:
    """Run `jetsel models build`, and return what it says of each model by name; fails with what it printed."""
    config = folder / "jetsel.toml"
    config.write_text(
        f"[host]\ninterpreter = {json.dumps(settings.interpreter)}\nengines = {json.dumps(str(settings.folder))}\n"
    )
    command = [sys.executable, "-m", "jetsel", "models", "build", *MODELS, "--family", "starter", "--json"]
    command += ["--precision", precision, "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout, done.stderr
    return {model["name"]: model for model in json.loads(done.stdout)["models"]}
