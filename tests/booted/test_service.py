"""The service as an operator has it: start, status, reload, stop, restart under load, journal and sandbox."""

from __future__ import annotations

import json
import re

import pytest

from tests.booted.machine import Machine
from tests.booted.operator import SERVICE, SOCKET, clients, main_pid, ready_again, started_clean
from tests.booted.package import MEMBER, PICTURE, STRANGER
from tests.booted.release import Release
from tests.unit.systemd.test_units import NEWER_THAN_237

MOST_EXPOSED = 2.5
CONFIG = "/etc/jetsel/jetsel.toml"


def test_the_package_leaves_a_daemon_that_runs_now_and_after_a_boot(machine: Machine) -> None:
    for unit in (SERVICE, SOCKET):
        assert machine.run("systemctl", "is-active", unit).strip() == "active"
        assert machine.run("systemctl", "is-enabled", unit).strip() == "enabled"
    assert machine.run("stat", "-c", "%U", f"/proc/{main_pid(machine)}").strip() == "jetsel"


def test_a_start_returns_when_the_daemon_is_ready(machine: Machine, said: list[str]) -> None:
    machine.run("systemctl", "stop", SERVICE, SOCKET)
    machine.run("systemctl", "start", SERVICE)
    status = json.loads(machine.run("jetsel", "status", "--json"))
    assert status["state"] == "ready"
    assert {model["state"] for family in status["families"] for model in family["models"]} == {"ready"}
    assert machine.show(SERVICE, "StatusText") == "ready"
    began_us, ready_us = (
        int(machine.show(SERVICE, f"{name}TimestampMonotonic")) for name in ("ExecMainStart", "ActiveEnter")
    )
    assert ready_us > began_us
    said.append(f"ready {(ready_us - began_us) / 1000:.0f} ms after it was started, with the starter family")


def test_root_and_members_of_the_group_are_answered_and_a_stranger_is_told_what_to_do(machine: Machine) -> None:
    for user in ("root", MEMBER):
        answer = json.loads(machine.run("jetsel", "classify", "--json", PICTURE, user=user))
        assert "label" in answer
    refused = machine.try_("jetsel", "classify", PICTURE, user=STRANGER)
    assert refused.returncode == 1
    assert "group" in refused.stderr
    assert "jetsel" in refused.stderr


def test_a_member_of_the_group_may_ask_but_not_reload(machine: Machine) -> None:
    refused = machine.try_("jetsel", "reload", user=MEMBER)
    assert refused.returncode == 1
    assert machine.run("jetsel", "status", user=MEMBER)


def test_a_reload_takes_up_a_new_configuration_without_a_new_process(machine: Machine) -> None:
    before = main_pid(machine)
    machine.write(CONFIG, "[log]\nrequests = true\n")
    try:
        machine.run("systemctl", "reload", SERVICE)
        machine.run("jetsel", "classify", PICTURE)
        assert machine.events("request")
    finally:
        machine.run("rm", CONFIG)
        machine.run("systemctl", "reload", SERVICE)
    assert main_pid(machine) == before
    assert machine.show(SERVICE, "StatusText") == "ready"


def test_a_reload_that_is_refused_fails_says_why_and_changes_nothing(machine: Machine) -> None:
    before = main_pid(machine)
    machine.write(CONFIG, "[server]\nqueue_requets = 3\n")
    try:
        assert machine.try_("systemctl", "reload", SERVICE).returncode != 0
        assert "queue_requets" in machine.show(SERVICE, "StatusText")
        assert main_pid(machine) == before
        machine.run("jetsel", "classify", PICTURE)
        assert any("queue_requets" in entry["MESSAGE"] for entry in machine.events("reload-refused"))
    finally:
        machine.run("rm", CONFIG)
        machine.run("systemctl", "reload", SERVICE)
    assert machine.show(SERVICE, "StatusText") == "ready"


def test_a_stop_answers_what_was_accepted_and_ends_with_success(machine: Machine) -> None:
    started_clean(machine)  # 237 counts a reload that failed among the service's results until the next start
    machine.run("systemctl", "stop", SERVICE)
    try:
        assert machine.show(SERVICE, "Result") == "success"
        assert machine.show(SERVICE, "ExecMainStatus") == "0"
        assert machine.show(SERVICE, "ActiveState") == "inactive"
        assert "given_up=0" in machine.events("stopped")[-1]["MESSAGE"]
    finally:
        started_clean(machine)


def test_a_client_that_comes_while_the_daemon_is_stopped_starts_it(machine: Machine) -> None:
    machine.run("systemctl", "stop", SERVICE)
    assert json.loads(machine.run("jetsel", "classify", "--json", PICTURE, user=MEMBER))
    assert machine.show(SERVICE, "ActiveState") == "active"


def test_a_restart_under_load_refuses_no_client(machine: Machine, said: list[str]) -> None:
    with clients(machine) as ended:
        for _ in range(3):
            before = main_pid(machine)
            machine.run("systemctl", "restart", SERVICE)
            assert ready_again(machine, before)
    assert set(ended) == {"answered"}
    said.append(f"3 restarts under the load of 4 clients: {ended['answered']} calls, all answered")


def test_the_journal_holds_events_and_priorities(machine: Machine) -> None:
    ready = machine.events("ready")[-1]
    assert "took_s=" in ready["MESSAGE"]
    assert (ready["_SYSTEMD_UNIT"], ready["SYSLOG_IDENTIFIER"], ready["PRIORITY"]) == (SERVICE, "jetsel", "6")


def test_systemd_knows_all_that_the_units_say_but_what_is_newer_than_it(machine: Machine, release: Release) -> None:
    assert machine.run("systemctl", "--version").split()[1] == str(release.systemd)
    machine.run("systemctl", "daemon-reload")
    told = machine.run("journalctl", "--no-pager", "-o", "cat", "-b", "_PID=1").splitlines()
    ours = {line for line in told if "/jetsel" in line and ":" in line.partition("/jetsel")[2]}
    unknown = {match[1] for line in ours if (match := re.search(r"Unknown (?:lvalue|key name) '(\w+)'", line))}
    assert unknown == (NEWER_THAN_237 if release.systemd == 237 else set())
    assert all("Unknown" in line for line in ours), ours


@pytest.mark.systemd(240)  # from which on it can tell
def test_the_sandbox_is_as_closed_as_the_systemd_that_runs_it_can_tell(machine: Machine, said: list[str]) -> None:
    told = machine.run("systemd-analyze", "security", "--no-pager", f"--threshold={MOST_EXPOSED * 10:.0f}", SERVICE)
    said.append(told.splitlines()[-1].lstrip("→ "))
