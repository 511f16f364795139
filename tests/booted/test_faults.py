"""The service when it dies, stands still, dies too often, or cannot be configured."""

from __future__ import annotations

from tests.booted.machine import Machine, wait_until
from tests.booted.operator import (
    READY_S,
    SERVICE,
    SOCKET,
    clients,
    is_active,
    is_tripped,
    main_pid,
    ready_again,
    setting,
    started_clean,
)
from tests.booted.package import PICTURE

AT_ONCE_S = 30.0  # half of WatchdogSec, which would end the reload's command in the end


def test_a_daemon_that_is_killed_comes_back_and_its_clients_are_answered(machine: Machine) -> None:
    started_clean(machine)
    with clients(machine) as ended:
        before = main_pid(machine)
        machine.signal("KILL", before)
        ready_again(machine, before)
    assert set(ended) == {"answered"}
    assert machine.show(SERVICE, "NRestarts") == "1"


def test_a_daemon_that_is_killed_during_a_reload_comes_back_at_once(machine: Machine) -> None:
    before = started_clean(machine)
    machine.signal("STOP", before)  # so that the reload is under way for as long as we like
    machine.run("systemctl", "reload", "--no-block", SERVICE)
    wait_until(lambda: machine.show(SERVICE, "ActiveState") == "reloading", READY_S, machine.journal)
    machine.signal("KILL", before)
    wait_until(lambda: main_pid(machine) not in (0, before), AT_ONCE_S, machine.journal)
    ready_again(machine, before)


def test_a_daemon_that_stands_still_is_ended_by_the_watchdog_and_comes_back(machine: Machine) -> None:
    with setting(machine, "[Service]\nWatchdogSec=3s\n") as before:
        machine.signal("STOP", before)
        ready_again(machine, before)
        assert any("Watchdog timeout" in entry["MESSAGE"] for entry in machine.seen(UNIT=SERVICE))
        machine.run("jetsel", "classify", PICTURE)


def test_a_daemon_that_works_is_left_alone_by_a_watchdog_that_is_short(machine: Machine) -> None:
    with setting(machine, "[Service]\nWatchdogSec=3s\n") as before, clients(machine) as ended:
        machine.run("sleep", "8")
        assert main_pid(machine) == before
    assert set(ended) == {"answered"}


def test_a_daemon_that_dies_too_often_stays_down_until_it_is_reset(machine: Machine) -> None:
    with setting(machine, "[Unit]\nStartLimitBurst=3\n"):
        while (process := wait_until(lambda: next_process(machine), READY_S, machine.journal)) != "none":
            machine.signal("KILL", int(process))
        assert is_tripped(machine)
        assert machine.try_("jetsel", "status", "--timeout-ms", "2000").returncode == 1
        machine.run("systemctl", "reset-failed", SERVICE, SOCKET)
        machine.run("systemctl", "start", SERVICE)
        machine.run("jetsel", "classify", PICTURE)


def next_process(machine: Machine) -> str | None:
    """The process of the daemon that is ready, "none" where it stays down, None while it is under way."""
    if machine.show(SERVICE, "ActiveState") == "failed":
        return "none"
    return str(main_pid(machine)) if is_active(machine) and main_pid(machine) else None


def test_a_configuration_that_cannot_be_used_is_told_and_not_tried_again(machine: Machine) -> None:
    machine.write("/etc/jetsel/jetsel.toml", "[server]\nqueue_requets = 3\n")
    try:
        assert machine.try_("systemctl", "restart", SERVICE).returncode != 0
        assert machine.show(SERVICE, "ActiveState") == "failed"
        assert machine.show(SERVICE, "NRestarts") == "0"
        assert any("queue_requets" in entry["MESSAGE"] for entry in machine.events("not-started"))
    finally:
        machine.run("rm", "/etc/jetsel/jetsel.toml")
        started_clean(machine)
