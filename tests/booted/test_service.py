"""The service as an operator has it: start, status, reload, stop, journal, calibration, and when it stands still."""

import json
import re

from tests.booted.machine import Machine
from tests.booted.operator import (
    GATEWAY,
    SERVICE,
    SOCKET,
    clients,
    configuration,
    kill,
    main_pid,
    ready_again,
    setting,
    started_clean,
)
from tests.booted.package import MEMBER, PICTURE, STRANGER, Package, install
from tests.booted.release import Release
from tests.system.daemons import drawn, encoded
from tests.unit.systemd.test_units import NEWER_THAN_237
from tests.waiting import until

FOLDER, UNIT = "/var/lib/jetsel/photographs/drawn", "jetsel-calibrate@drawn"


def test_a_start_returns_when_the_daemon_is_ready_and_the_package_enables_it(machine: Machine) -> None:
    for unit in (SERVICE, SOCKET):
        assert machine.run("systemctl", "is-active", unit).strip() == "active"
        assert machine.run("systemctl", "is-enabled", unit).strip() == "enabled"
    machine.run("systemctl", "stop", SERVICE, SOCKET)
    machine.run("systemctl", "start", SERVICE)
    status = json.loads(machine.run("jetsel", "status", "--json"))
    assert status["state"] == "ready"
    assert {model["state"] for family in status["families"] for model in family["models"]} == {"ready"}
    assert machine.show(SERVICE, "StatusText") == "ready"
    assert machine.run("stat", "-c", "%U", f"/proc/{main_pid(machine)}").strip() == "jetsel"


def test_members_of_the_group_may_ask_but_not_reload_and_strangers_neither(machine: Machine) -> None:
    for user in ("root", MEMBER):
        assert "label" in json.loads(machine.run("jetsel", "classify", "--json", PICTURE, user=user))
    assert machine.try_("jetsel", "reload", user=MEMBER).returncode == 1
    refused = machine.try_("jetsel", "classify", PICTURE, user=STRANGER)
    assert (refused.returncode, "usermod -aG jetsel" in refused.stderr) == (1, True)
    told = machine.run("sh", "-c", "jetsel doctor --json || true")
    (socket,) = [found for found in json.loads(told) if found["name"] == "socket"]
    assert "owner jetsel, group jetsel, mode 660" in socket["said"]


def test_a_reload_takes_up_a_new_configuration_or_says_why_not_without_a_new_process(machine: Machine) -> None:
    with configuration(machine, "[log]\nrequests = true\n"):
        machine.run("systemctl", "reload", SERVICE)
        machine.run("jetsel", "classify", PICTURE)
        assert machine.events("request")
    before = main_pid(machine)
    with configuration(machine, "[server]\nqueue_requets = 3\n"):
        assert machine.try_("systemctl", "reload", SERVICE).returncode != 0
        assert "queue_requets" in machine.show(SERVICE, "StatusText")
        assert main_pid(machine) == before
        machine.run("jetsel", "classify", PICTURE)
        assert any("queue_requets" in entry["MESSAGE"] for entry in machine.events("reload-refused"))


def test_a_stop_ends_with_success_and_the_next_client_starts_it_again(machine: Machine) -> None:
    started_clean(machine)  # 237 counts a reload that failed among the service's results until the next start
    machine.run("systemctl", "stop", SERVICE)
    assert machine.show(SERVICE, "Result") == "success"
    assert machine.show(SERVICE, "ExecMainStatus") == "0"
    assert "given_up=0" in machine.events("stopped")[-1]["MESSAGE"]
    assert json.loads(machine.run("jetsel", "classify", "--json", PICTURE, user=MEMBER))
    assert machine.show(SERVICE, "ActiveState") == "active"


def test_systemd_knows_all_that_the_units_say_but_what_is_newer_than_it(machine: Machine, release: Release) -> None:
    assert machine.run("systemctl", "--version").split()[1] == str(release.systemd)
    machine.run("systemctl", "daemon-reload")
    machine.show(GATEWAY, "LoadState")  # which is read when somebody asks for it
    told = machine.run("journalctl", "--no-pager", "-o", "cat", "-b", "_PID=1").splitlines()
    ours = {line for line in told if re.match(r"/\S+/jetsel\S*:\d+:", line)}  # of a line of a file
    unknown = {match[1] for line in ours if (match := re.search(r"Unknown (?:lvalue|key name) '(\w+)'", line))}
    assert unknown == (set(NEWER_THAN_237) if release.systemd == 237 else set())
    assert all("Unknown" in line for line in ours), ours


def test_the_calibration_unit_works_on_the_photographs_of_a_folder(machine: Machine, package: Package) -> None:
    install(machine, package.calibrate)
    machine.run("/opt/jetsel/venv/bin/python", "-c", "import matplotlib")
    before = main_pid(machine)
    for seed in range(16):
        machine.write(f"{FOLDER}/{('orange', 'lemon')[seed % 2]}/{seed}.jpg", encoded(drawn(seed)))
    machine.run("chown", "-R", "jetsel:jetsel", FOLDER)
    machine.run("systemctl", "start", UNIT, timeout_s=400)
    assert machine.show(UNIT, "Result") == "success"
    assert main_pid(machine) == before
    machine.run("systemctl", "enable", "--now", f"{UNIT}.timer")
    assert f"{UNIT}.service" in machine.run("systemctl", "list-timers", "--no-legend")
    machine.run("systemctl", "disable", "--now", f"{UNIT}.timer")


def test_a_short_watchdog_ends_a_daemon_that_stands_still_and_none_that_works(machine: Machine) -> None:
    with setting(machine, "[Service]\nWatchdogSec=3s\n") as before:
        with clients(machine) as ended:
            machine.run("sleep", "8")
            assert main_pid(machine) == before
        assert set(ended) == {"answered"}
        kill(machine, "STOP", before)
        ready_again(machine, before)
        assert any("Watchdog timeout" in entry["MESSAGE"] for entry in machine.seen(UNIT=SERVICE))


def test_a_daemon_that_is_killed_under_load_is_back_by_itself_and_no_call_is_lost(machine: Machine) -> None:
    before = started_clean(machine)
    with clients(machine) as ended:
        for _ in range(3):
            kill(machine, "KILL", before)
            before = ready_again(machine, before)
    assert set(ended) == {"answered"}


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
