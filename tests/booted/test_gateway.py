"""The gateway's unit: off until its owner enables it, its own user, and neither process takes the other with it."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.machine import Machine
from tests.booted.operator import GATEWAY, SERVICE, clients, configuration, kill, main_pid
from tests.booted.package import MEMBER, PICTURE, Package, install
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PYTHON = "/opt/jetsel/venv/bin/python"
OPTIONS = "/etc/jetsel/gateway"
TOKEN = "/etc/jetsel/gateway.token"
SECRET = "0123456789abcdef0123456789abcdef"
ASK = """
import sys, urllib.error, urllib.request
url, body, token = sys.argv[1:]
headers = {"Content-Type": "image/jpeg", "Authorization": f"Bearer {token}"}
data = open(body, "rb").read() if body else None
try:
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as reply:
        print(reply.status, reply.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print(0, error)
"""


def ask(machine: Machine, path: str, picture: str = "", *, port: int = 8000, token: str = "") -> tuple[int, str]:
    """Return the status and the body of a request from within the machine; 0 where nobody listens."""
    told = machine.run(PYTHON, "-c", ASK, f"http://127.0.0.1:{port}{path}", picture, token)
    status, _, body = told.partition(" ")
    return int(status), body


def ready(machine: Machine) -> int:
    return ask(machine, "/v2/health/ready")[0]


def pid(machine: Machine) -> int:
    return int(machine.show(GATEWAY, "MainPID"))


@contextlib.contextmanager
def options(machine: Machine, text: str) -> Iterator[None]:
    """Have a file of options while the block lasts."""
    machine.write(OPTIONS, f"JETSEL_GATEWAY_OPTIONS={text}\n")
    try:
        yield
    finally:
        machine.run("rm", OPTIONS)
        machine.try_("systemctl", "reset-failed", GATEWAY)
        machine.run("systemctl", "restart", GATEWAY)


@pytest.fixture
def gateway(machine: Machine) -> Iterator[int]:
    """The process number of a gateway that runs while the test does."""
    machine.run("systemctl", "start", GATEWAY)
    yield pid(machine)
    machine.run("systemctl", "stop", GATEWAY)


def test_the_daemon_reaches_an_edge_once_the_network_is_opened_to_it(machine: Machine, gateway: int) -> None:
    edge = '[edge]\nurl = "http://127.0.0.1:8000"\n[edge.models.xl]\nremote = "starter.xl"\n'

    def is_there() -> bool:
        return "can be asked" in machine.run("jetsel", "status")

    with configuration(machine, edge):
        machine.run("systemctl", "restart", SERVICE)
        until(lambda: "is away" in machine.run("jetsel", "status"))
        page = (ROOT / "docs/remote-access.md").read_text()
        text = re.search(r"```ini\n# (\S+/edge\.conf)\n(.*?)```", page, re.DOTALL)
        drop_in = text[2].replace("192.0.2.7", "127.0.0.1")
        machine.write(text[1], drop_in)
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", SERVICE)
        until(is_there)
        machine.run("rm", text[1])
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", SERVICE)
        until(lambda: not is_there())


def test_it_is_off_until_it_is_enabled_and_then_answers_as_a_user_of_its_own(
    machine: Machine, package: Package
) -> None:
    assert machine.try_("systemctl", "is-enabled", GATEWAY).stdout.strip() == "disabled"
    assert machine.show(GATEWAY, "ActiveState") == "inactive"
    machine.run("systemctl", "enable", "--now", GATEWAY)
    assert ready(machine) == 200, "a start returns when it listens"
    status, body = ask(machine, "/classify", PICTURE)
    wanted = json.loads(machine.run("jetsel", "classify", "--json", PICTURE, user=MEMBER))
    assert (status, json.loads(body)["label"]) == (200, wanted["label"])
    process = f"/proc/{pid(machine)}"
    assert machine.run("stat", "-c", "%U:%G", process).strip() == "jetsel-gateway:jetsel-gateway"
    assert machine.run("ls", "/usr/share/jetsel/grafana").split() == ["dashboard.json", "rules.yml"]
    hidden = machine.try_("nsenter", "--mount", "--target", str(pid(machine)), "ls", "/var/lib/jetsel/photographs")
    assert hidden.returncode != 0, "the owner's photographs are none of its business"

    before = pid(machine)
    install(machine, package.main)
    assert pid(machine) not in (0, before), "an upgrade starts it again"
    assert machine.run("systemctl", "is-enabled", GATEWAY).strip() == "enabled"
    machine.run("systemctl", "disable", "--now", GATEWAY)
    install(machine, package.main)
    assert machine.try_("systemctl", "is-enabled", GATEWAY).stdout.strip() == "disabled"
    assert pid(machine) == 0


def test_a_gateway_that_is_killed_is_started_again_and_the_daemon_does_not_notice(
    machine: Machine, gateway: int
) -> None:
    daemon = main_pid(machine)
    with clients(machine) as ended:
        kill(machine, "KILL", gateway)
        until(lambda: pid(machine) not in (0, gateway) and ready(machine) == 200)
    assert set(ended) == {"answered"}
    assert main_pid(machine) == daemon
    machine.run("systemctl", "stop", GATEWAY)
    assert machine.show(GATEWAY, "Result") == "success"


def test_the_daemon_knows_its_requests_by_its_user(machine: Machine, gateway: int) -> None:
    with configuration(machine, "[log]\nrequests = true\n"):
        machine.run("systemctl", "reload", SERVICE)
        assert ask(machine, "/classify", PICTURE)[0] == 200
        user = machine.run("id", "-u", "jetsel-gateway").strip()
        assert f"uid {user}" in machine.events("request")[-1]["MESSAGE"]


def test_its_options_stand_in_a_file_and_what_cannot_be_used_is_not_tried_again(machine: Machine, gateway: int) -> None:
    machine.write(TOKEN, SECRET)
    machine.run("chmod", "640", TOKEN)
    machine.run("chgrp", "jetsel-gateway", TOKEN)
    with options(machine, f"--listen 0.0.0.0:8080 --token-file {TOKEN}"):
        machine.run("systemctl", "restart", GATEWAY)
        assert ask(machine, "/classify", PICTURE, port=8080)[0] == 401
        assert ask(machine, "/classify", PICTURE, port=8080, token=SECRET)[0] == 200
    with options(machine, "--listen 0.0.0.0:8080"):
        assert machine.try_("systemctl", "restart", GATEWAY).returncode != 0
        assert machine.show(GATEWAY, "ExecMainStatus") == "2"
        assert machine.show(GATEWAY, "ActiveState") == "failed"
        assert any("--token-file" in entry["MESSAGE"] for entry in machine.seen(GATEWAY))
    assert ready(machine) == 200
