"""What the service manager is told, read off a real datagram socket as it reads them."""

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from jetsel.base.notify import LONGEST_STATUS, Notifier
from tests.waiting import LIMIT_S

Begin = Callable[[str], Notifier]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(LIMIT_S)
        yield listening


@pytest.fixture
def begin() -> Iterator[Begin]:
    with ExitStack() as stack:
        yield lambda address: stack.enter_context(closing(Notifier(address)))


def said(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_each_word_of_a_life_is_one_datagram_and_nothing_follows_the_last(manager: socket.socket, begin: Begin) -> None:
    notifier = begin(manager.getsockname())
    notifier.progress("loading 1 of 5", 2.5)
    assert said(manager) == ["EXTEND_TIMEOUT_USEC=2500000", "STATUS=loading 1 of 5"]
    notifier.ready("ready")
    assert said(manager) == ["READY=1", "STATUS=ready"]
    before_us = time.monotonic_ns() // 1000
    notifier.reloading("reloading")
    word, clock, _ = said(manager)
    assert word == "RELOADING=1"
    assert before_us <= int(clock.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    assert notifier.watchdog() is True
    assert said(manager) == ["WATCHDOG=1"]
    notifier.stopping(40, "stopping")
    assert said(manager) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=40000000", "STATUS=stopping"]
    notifier.ready("ready")
    assert notifier.watchdog() is False
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(1)


def test_a_status_is_one_line_and_no_novel(manager: socket.socket, begin: Begin) -> None:
    begin(manager.getsockname()).status("no\nREADY=1" + "x" * 10_000)
    (line,) = said(manager)
    assert line.startswith("STATUS=no READY=1xxx")
    assert len(line) == len("STATUS=") + LONGEST_STATUS


def test_an_abstract_name_is_one_too(begin: Begin) -> None:
    name = f"jetsel-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        begin(f"@{name}").status("well")
        assert said(listening) == ["STATUS=well"]


def test_without_a_service_manager_nothing_is_said_and_nothing_due() -> None:
    for environment in ({}, {"WATCHDOG_USEC": "2000000"}):
        notifier = Notifier.from_environment(environment)
        notifier.ready("ready")
        assert notifier.watchdog() is False
        assert notifier.watchdog_s is None
        assert environment == {}


@pytest.mark.parametrize(
    ("period_us", "process_after_ours", "expected_s"),
    [("30000000", None, 30.0), ("30000000", 0, 30.0), ("30000000", 1, None), ("0", None, None), ("soon", None, None)],
)
def test_the_watchdog_is_due_for_this_process_alone(
    manager: socket.socket, period_us: str, process_after_ours: int | None, expected_s: float | None
) -> None:
    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": period_us, "HOME": "/"}
    if process_after_ours is not None:
        environment["WATCHDOG_PID"] = str(os.getpid() + process_after_ours)
    notifier = Notifier.from_environment(environment)
    assert notifier.watchdog_s == expected_s
    assert environment == {"HOME": "/"}, "no child speaks in the daemon's name"
    notifier.close()


def test_a_service_manager_that_went_is_told_of_once_and_again_when_it_went_again(
    tmp_path: Path, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = begin(str(tmp_path / "notify"))
    for _ in range(3):
        notifier.watchdog()
    assert caplog.text.count("cannot report to the service manager") == 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        assert notifier.watchdog() is True
    notifier.watchdog()
    assert caplog.text.count("cannot report to the service manager") == 2
