"""The cameras' units, for watching and for review: off until their owner enables them, each by a user of its own."""

from collections.abc import Iterator

import pytest

from tests.booted.machine import Machine
from tests.booted.operator import configuration
from tests.booted.package import PICTURE
from tests.waiting import until

WATCH = "jetsel-watch.service"
DROP_IN = f"/etc/systemd/system/{WATCH}.d/passwords.conf"
SECRET = "swordfish-77"
DOUBTS = "/var/lib/jetsel-watch/doubts"


def camera(name: str, source: str, *more: str) -> str:
    return "\n".join(["[[cameras]]", f'name = "{name}"', f'source = "{source}"', "stay = 1", *more, ""])


@pytest.fixture
def folder(machine: Machine) -> Iterator[str]:
    """A folder that a camera writes its images into, and a password in a file of root's."""
    machine.run("mkdir", "-p", "/srv/door")
    machine.run("cp", PICTURE, "/srv/door/1.jpg")
    machine.write("/etc/jetsel/yard.password", SECRET)
    machine.run("chmod", "0600", "/etc/jetsel/yard.password")
    machine.write(DROP_IN, "[Service]\nLoadCredential=yard:/etc/jetsel/yard.password\n")
    machine.run("systemctl", "daemon-reload")
    yield "/srv/door"
    machine.run("systemctl", "stop", WATCH)
    machine.run("rm", "-rf", "/srv/door", DROP_IN, "/etc/jetsel/yard.password", DOUBTS)
    machine.run("systemctl", "daemon-reload")


def test_cameras_are_watched_by_a_user_of_their_own_and_a_reload_adds_one(machine: Machine, folder: str) -> None:
    assert machine.try_("systemctl", "is-enabled", WATCH).stdout.strip() == "disabled"
    door = camera("door", folder, f'save = "{DOUBTS}"', "save_below = 1.0")
    yard = camera("yard", "rtsp://127.0.0.1:9/1", 'user = "me"', 'password_file = "yard"')

    def shown() -> str:
        """What the gateway's user may read of the cameras."""
        user = ("runuser", "-u", "jetsel-gateway", "-g", "jetsel-gateway", "-G", "jetsel", "--")
        return machine.try_(*user, "cat", "/run/jetsel-watch/state.json").stdout

    with configuration(machine, door + yard):
        machine.run("systemctl", "start", WATCH)
        until(lambda: '"name":"door"' in shown() and '"since":"' in shown())
        until(lambda: "it cannot be opened" in shown())
        pid = machine.show(WATCH, "MainPID")
        assert machine.run("stat", "-c", "%U:%G", f"/proc/{pid}").strip() == "jetsel-watch:jetsel"
        until(lambda: machine.run("find", DOUBTS, "-name", "*.jpg").strip())
        assert SECRET not in machine.run("journalctl", "-u", WATCH, "-b")
    with configuration(machine, door + yard + camera("gate", folder)):
        machine.run("systemctl", "reload", WATCH)
        until(lambda: '"name":"gate"' in shown())
        assert machine.show(WATCH, "MainPID") == pid
        assert "changed cameras: gate" in machine.run("journalctl", "-u", WATCH, "-b")


REVIEW = "jetsel-review.service"
ASK = """
import sys, urllib.request
path, *body = sys.argv[1:]
asked = urllib.request.Request(f"http://127.0.0.1:8001{path}", *(text.encode() for text in body))
print(urllib.request.urlopen(asked, timeout=60).read().decode())
"""


def ask(machine: Machine, path: str, *body: str) -> str:
    """Return the body of a reply to a request from within the machine; body: of a POST."""
    return machine.run("/opt/jetsel/venv/bin/python", "-c", ASK, path, *body)


@pytest.fixture
def saved(machine: Machine) -> Iterator[str]:
    """An image that the cameras' user has saved, as its path in the folder."""
    machine.run("install", "-d", "-m", "0700", "-o", "jetsel-watch", "-g", "jetsel", "/var/lib/jetsel-watch")
    machine.run("install", "-d", "-o", "jetsel-watch", "-g", "jetsel", f"{DOUBTS}/lynx")
    machine.run("install", "-m", "0640", "-o", "jetsel-watch", "-g", "jetsel", PICTURE, f"{DOUBTS}/lynx/lynx-1.jpg")
    yield "lynx/lynx-1.jpg"
    machine.run("systemctl", "stop", REVIEW)
    machine.run("rm", "-r", DOUBTS, f"{DOUBTS}-reviewed")


def test_saved_images_are_reviewed_on_loopback_by_the_user_that_saved_them(machine: Machine, saved: str) -> None:
    assert machine.try_("systemctl", "is-enabled", REVIEW).stdout.strip() == "disabled"
    machine.run("systemctl", "start", REVIEW)
    assert "review.js" in ask(machine, "/"), "a start returns when it listens"
    assert f'"image":"{saved}"' in ask(machine, "/review/next")
    assert '"left":0' in ask(machine, "/review/decide", f'{{"image":"{saved}","verdict":"right"}}')
    moved = f"{DOUBTS}-reviewed/{saved}"
    assert machine.run("stat", "-c", "%U:%G", moved).strip() == "jetsel-watch:jetsel"
    pid = machine.show(REVIEW, "MainPID")
    assert machine.run("stat", "-c", "%U:%G", f"/proc/{pid}").strip() == "jetsel-watch:jetsel"
    hidden = machine.try_("nsenter", "--mount", "--target", pid, "ls", "/var/lib/jetsel/photographs")
    assert hidden.returncode != 0, "the images for calibrations are none of its business"
