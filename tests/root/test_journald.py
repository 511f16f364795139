"""The daemon's log in a real journal: a systemd-journald of the test's own, in a mount namespace of its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.daemons import Peer, drawn, encoded, launch, wait_until_ready

JOURNALD = Path("/lib/systemd/systemd-journald")
BEGIN = """
set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal
printf '[Journal]\\nStorage=volatile\\nRateLimitIntervalSec=0\\n' > /run/systemd/journald.conf.d/test.conf
exec {journald}
"""

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        not JOURNALD.exists() or not shutil.which("journalctl") or not Path("/etc/machine-id").exists(),
        reason="needs systemd-journald, journalctl and a machine-id",
    ),
]

# What a service manager does for a service: stderr is a stream to the journal, and the environment names it.
SERVICE = ["systemd-cat", "sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh"]


class Journal:
    """A running systemd-journald, and what it has stored."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.enter = ["nsenter", "--target", str(process.pid), "--mount"]

    def entries(self, **fields: str) -> list[dict[str, Any]]:
        matches = [f"{name}={value}" for name, value in fields.items()]
        command = [*self.enter, "journalctl", "--directory=/run/log/journal", "--all", "--output=json", *matches]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def wait_for(self, **fields: str) -> list[dict[str, Any]]:
        give_up = time.monotonic() + 30
        while not (found := self.entries(**fields)):
            assert time.monotonic() < give_up, self.entries()
            time.sleep(0.1)
        return found


@pytest.fixture
def journal() -> Iterator[Journal]:
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", BEGIN.format(journald=JOURNALD)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    made = Journal(process)
    try:
        give_up = time.monotonic() + 30
        while subprocess.run([*made.enter, "test", "-S", "/run/systemd/journal/socket"], check=False).returncode:
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.05)
        yield made
    finally:
        process.terminate()
        process.wait(20)


def test_what_the_daemon_says_is_found_by_its_fields(journal: Journal, tmp_path: Path) -> None:
    daemon = launch(tmp_path, "[log]\nrequests = true\n", prefix=[*journal.enter, *SERVICE])
    wait_until_ready(daemon)
    evil = "cam\nPRIORITY=0\nJETSEL_EVENT=crashed\x1b[2J"
    peer = Peer(daemon.endpoint)
    try:
        answer = peer.classify(encoded(drawn()), id=evil)
    finally:
        peer.close()
    assert daemon.stop(signal.SIGTERM) == 0
    (ready,) = journal.wait_for(JETSEL_EVENT="ready")
    assert ready["MESSAGE"].startswith(f"ready on ipc://{daemon.path}")
    assert (ready["PRIORITY"], ready["SYSLOG_IDENTIFIER"], ready["LOGGER"]) == ("6", "jetsel", "jetsel.daemon")
    assert ready["JETSEL_ENDPOINT"] == daemon.endpoint
    assert ready["CODE_FILE"].endswith(".py")
    assert ready["_TRANSPORT"] == "journal"
    (request,) = journal.wait_for(JETSEL_EVENT="request")
    assert bytes(request["JETSEL_REQUEST_ID"]).decode() == evil, "binary, as the journal gives what holds a control"
    assert request["JETSEL_OUTCOME"] == "ok"
    assert request["JETSEL_MODEL"] in (answer["model"], [ran["model"] for ran in answer["ran"]])
    assert float(request["JETSEL_TOTAL_MS"]) > 0
    assert journal.entries(JETSEL_EVENT="crashed") == []
    assert journal.entries(PRIORITY="0") == []
    (stopped,) = journal.wait_for(JETSEL_EVENT="stopped")
    assert stopped["JETSEL_GIVEN_UP"] == "0"
    assert daemon.log.read_text() == "", "nothing beside the journal"


def test_a_traceback_longer_than_a_datagram_is_one_entry(journal: Journal) -> None:
    say = (
        "import logging; from jetsel.daemon.logs.handler import begin; from jetsel.events import event; begin('info');"
        "logging.getLogger('jetsel.test').error('x' * 2_000_000, extra=event('crashed', reason='y' * 10))"
    )
    subprocess.run([*journal.enter, *SERVICE, sys.executable, "-c", say], check=True)
    (entry,) = journal.wait_for(JETSEL_EVENT="crashed")
    assert entry["JETSEL_REASON"] == "y" * 10
    assert entry["_TRANSPORT"] == "journal"


def test_a_configuration_that_does_not_hold_is_found_as_an_event(journal: Journal, tmp_path: Path) -> None:
    daemon = launch(tmp_path, "[server]\nworkes = 2\n", prefix=[*journal.enter, *SERVICE])
    assert daemon.process.wait(60) == 2
    (entry,) = journal.wait_for(JETSEL_EVENT="not-started")
    assert "server.workes" in entry["MESSAGE"]
    assert (entry["PRIORITY"], entry["JETSEL_CODE"]) == ("2", "config")
