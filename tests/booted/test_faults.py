"""The service when it stands still, dies too often, or cannot be configured."""

from __future__ import annotations

from tests.booted.machine import Machine
from tests.booted.operator import (
    SERVICE,
    SOCKET,
    clients,
    configuration,
    kill,
    main_pid,
    ready_again,
    setting,
)
from tests.booted.package import PICTURE
from tests.waiting import until


def test_a_short_watchdog_ends_a_daemon_that_stands_still_and_none_that_works(machine: Machine) -> None:
    with setting(machine, "[Service]\nWatchdogSec=3s\n") as before:
        with clients(machine) as ended:
            machine.run("sleep", "8")
            assert main_pid(machine) == before
        assert set(ended) == {"answered"}
        kill(machine, "STOP", before)
        ready_again(machine, before)
        assert any("Watchdog timeout" in entry["MESSAGE"] for entry in machine.seen(UNIT=SERVICE))


def test_a_daemon_that_dies_too_often_stays_down_until_it_is_reset(machine: Machine) -> None:
    with setting(machine, "[Unit]\nStartLimitBurst=3\n"):
        while (process := until(lambda: next_process(machine))) != "none":
            kill(machine, "KILL", int(process))
        assert any("repeated too quickly" in entry["MESSAGE"] for entry in machine.seen(UNIT=SERVICE))
        assert machine.try_("jetsel", "status", "--timeout-ms", "2000").returncode == 1
        machine.run("systemctl", "reset-failed", SERVICE, SOCKET)
        machine.run("systemctl", "start", SERVICE)
        machine.run("jetsel", "classify", PICTURE)


def next_process(machine: Machine) -> str | None:
    """The process of the daemon that is ready, "none" where it stays down, None while it is under way."""
    state, process = machine.show(SERVICE, "ActiveState"), main_pid(machine)
    return "none" if state == "failed" else str(process) if state == "active" and process else None


def test_a_configuration_that_cannot_be_used_is_told_and_not_tried_again(machine: Machine) -> None:
    with configuration(machine, "[server]\nqueue_requets = 3\n"):
        assert machine.try_("systemctl", "restart", SERVICE).returncode != 0
        assert machine.show(SERVICE, "ActiveState") == "failed"
        assert machine.show(SERVICE, "NRestarts") == "0"
        assert any("queue_requets" in entry["MESSAGE"] for entry in machine.events("not-started"))
