"""What the service manager is told, read off a real datagram socket as it reads them."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.daemon.notify import LONGEST_STATUS, Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test opens ends with it."""
    opened: list[Notifier] = []
    begin = Notifier.__init__

    def noted(self: Notifier, *given: object) -> None:
        opened.append(self)
        begin(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Notifier, "__init__", noted)
    yield
    for notifier in opened:
        notifier.close()


def said(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_each_word_of_a_life_is_one_datagram(manager: socket.socket) -> None:
    notifier = Notifier(manager.getsockname())
    notifier.progress("loading 1 of 5", 2.5)
    assert said(manager) == ["EXTEND_TIMEOUT_USEC=2500000", "STATUS=loading 1 of 5"]
    notifier.ready("ready")
    assert said(manager) == ["READY=1", "STATUS=ready"]
    notifier.ready()
    assert said(manager) == ["READY=1"]
    notifier.status("ready; the last reload was refused: no")
    assert said(manager) == ["STATUS=ready; the last reload was refused: no"]
    assert notifier.watchdog() is True
    assert said(manager) == ["WATCHDOG=1"]
    notifier.stopping(40, "stopping")
    assert said(manager) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=40000000", "STATUS=stopping"]


def test_a_reload_carries_the_monotonic_clock(manager: socket.socket) -> None:
    before_us = time.monotonic_ns() // 1000
    Notifier(manager.getsockname()).reloading()
    word, clock = said(manager)
    assert word == "RELOADING=1"
    assert before_us <= int(clock.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_a_status_is_one_line_and_no_novel(manager: socket.socket) -> None:
    Notifier(manager.getsockname()).status("no\nREADY=1" + "x" * 10_000)
    (line,) = said(manager)
    assert line.startswith("STATUS=no READY=1xxx")
    assert len(line) == len("STATUS=") + LONGEST_STATUS


def test_an_abstract_name_is_one_too() -> None:
    name = f"jetsel-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(10)
        Notifier(f"@{name}").ready()
        assert said(listening) == ["READY=1"]


def test_without_a_service_manager_nothing_is_said_and_nothing_due() -> None:
    for environment in ({}, {"WATCHDOG_USEC": "2000000"}):
        notifier = Notifier.from_environment(environment)
        notifier.ready()
        notifier.watchdog()
        assert notifier.watchdog_s is None
        assert environment == {}


@pytest.mark.parametrize("address", ["relative", "@", "/", "vsock:2:1234"])
def test_an_address_of_another_kind_is_told_of_and_left_alone(address: str, caplog: pytest.LogCaptureFixture) -> None:
    Notifier.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"}).ready()
    assert repr(address) in caplog.text


@pytest.mark.parametrize(
    ("period_us", "process_after_ours", "expected_s"),
    [
        ("30000000", None, 30.0),
        ("30000000", 0, 30.0),
        ("30000000", 1, None),
        ("0", None, None),
        ("-5", None, None),
        ("soon", None, None),
        ("\u0663", None, None),
    ],
)
def test_the_watchdog_is_due_for_this_process_alone(
    manager: socket.socket, period_us: str, process_after_ours: int | None, expected_s: float | None
) -> None:
    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": period_us, "HOME": "/"}
    if process_after_ours is not None:
        environment["WATCHDOG_PID"] = str(os.getpid() + process_after_ours)
    assert Notifier.from_environment(environment).watchdog_s == expected_s
    assert environment == {"HOME": "/"}, "no child speaks in the daemon's name"


def test_a_service_manager_that_went_is_told_of_once_and_again_when_it_went_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "notify"
    notifier = Notifier(str(path))
    for _ in range(3):
        notifier.watchdog()
    assert caplog.text.count("cannot be told") == 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        notifier.watchdog()
        assert said(listening) == ["WATCHDOG=1"]
    notifier.watchdog()
    assert caplog.text.count("cannot be told") == 2


def test_one_that_reads_no_more_holds_nobody_up_for_ever(manager: socket.socket) -> None:
    script = (
        "import sys\nfrom jetsel.daemon.notify import Notifier\nnotifier = Notifier(sys.argv[1])\n"
        "while not notifier._has_failed:\n    notifier.status('goes on')\nnotifier.close()\nprint('back')"
    )
    command = [sys.executable, "-c", script, manager.getsockname()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "back\n", done.stderr


def test_a_feeding_that_is_not_taken_is_told_to_the_feeder_and_not_waited_for(manager: socket.socket) -> None:
    notifier = Notifier(manager.getsockname())
    fed = 0
    while notifier.watchdog():
        fed += 1
    assert fed > 0
    waits = threading.Thread(target=notifier.status, args=("waits for room",))
    waits.start()
    assert notifier.watchdog() is False
    for _ in range(fed):
        assert said(manager) == ["WATCHDOG=1"]
    waits.join(60)
    assert said(manager) == ["STATUS=waits for room"]
    assert notifier.watchdog() is True


def test_nothing_follows_the_word_that_it_stops(manager: socket.socket) -> None:
    notifier = Notifier(manager.getsockname())
    notifier.stopping(40)
    notifier.progress("loading 1 of 5", 300)
    notifier.ready("ready")
    notifier.reloading()
    notifier.status("well")
    assert notifier.watchdog() is False
    notifier.stopping(20)
    assert said(manager) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=40000000"]
    assert said(manager) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=20000000"]


def test_a_path_that_is_too_long_for_a_socket_is_told_in_words(caplog: pytest.LogCaptureFixture) -> None:
    Notifier("/" + "x" * 200).ready()
    assert "cannot be told (READY=1): AF_UNIX path too long" in caplog.text
