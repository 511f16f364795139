"""What all tests get: nothing of the user's, steady property tests, marks by folder, skips that may be forbidden."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.private import leave_the_machines_folders

TESTS = Path(__file__).parent
MARKED_FOLDERS = (
    "root",
    "edge_servers",
    "export",
    "browser",
    "board",
    "kernel",
    "booted",
    "emulated",
)  # their tests carry these marks without saying so

# Examples may be slow on a busy machine: that is no failure of theirs.
settings.register_profile("jetsel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("jetsel"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "jetsel")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forbid-skips", action="store_true", help="a test that skips, for want of a tool, fails instead")
    parser.addoption("--release", default="bookworm", help="what tests/booted boots: bookworm or bionic")


def pytest_configure() -> None:
    leave_the_machines_folders()  # a test that wants one sets it
    os.environ["PYTEST_DEBUG_TEMPROOT"] = "/tmp"  # a socket's path has 107 bytes at most, and $TMPDIR may be long
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a script's background job: what tests start inherits it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in MARKED_FOLDERS:
            if (TESTS / mark) in item.path.parents:
                item.add_marker(mark)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") is not None and os.geteuid() != 0:
        pytest.skip("needs root: run make test-system as root")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _fail_if_skipped(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report, collector.config)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> None:
    if report.skipped and config.getoption("forbid_skips"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped where every test must run: {reason}"


@pytest.fixture(autouse=True)
def _a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a table or a message is broken, however long a temporary path is."""
    monkeypatch.setenv("COLUMNS", "400")
