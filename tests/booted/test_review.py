"""The review's unit: off until its owner enables it; it serves saved images on loopback and moves them beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.booted.machine import Machine
from tests.booted.package import PICTURE

REVIEW = "jetsel-review.service"
DOUBTS = "/var/lib/jetsel-watch/doubts"
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
