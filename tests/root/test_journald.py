"""The daemon's log in a real journal: a systemd-journald of the test's own, in a mount namespace of its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.daemons import Peer, drawn, encoded, launch, wait_until_ready
from tests.waiting import until

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

    def find(self, pattern: str) -> list[dict[str, Any]]:
        """Wait for entries that match the pattern, as docs/logs.md has it."""
        command = [*self.enter, "journalctl", "--directory=/run/log/journal", "--output=json", "-g", pattern]

        def look() -> list[dict[str, Any]]:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return [json.loads(line) for line in done.stdout.splitlines()]

        return until(look)


@pytest.fixture
def journal() -> Iterator[Journal]:
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", BEGIN.format(journald=JOURNALD)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    made = Journal(process)
    try:
        ready = [*made.enter, "test", "-S", "/run/systemd/journal/stdout"]
        until(lambda: process.poll() is not None or not subprocess.run(ready, check=False).returncode)
        yield made
    finally:
        process.terminate()
        process.wait(20)


def test_what_the_daemon_says_is_found_by_its_event_and_priority(journal: Journal, tmp_path: Path) -> None:
    daemon = launch(tmp_path, "[log]\nrequests = true\n", prefix=[*journal.enter, *SERVICE])
    wait_until_ready(daemon)
    peer = Peer(daemon.endpoint)
    try:
        answer = peer.classify(encoded(drawn()), id="cam\n<0>[event=crashed")
    finally:
        peer.close()
    assert daemon.stop(signal.SIGTERM) == 0
    (ready,) = journal.find("event=ready ")
    assert ready["MESSAGE"].startswith(f"ready on ipc://{daemon.path}")
    assert (ready["PRIORITY"], ready["_TRANSPORT"]) == ("6", "stdout")
    (request,) = journal.find(r"request_id=\S*cam")
    assert f"answered {answer['label']}" in request["MESSAGE"]
    assert daemon.log.read_text() == "", "nothing beside the journal"


def test_a_configuration_that_does_not_hold_is_found_as_an_event(journal: Journal, tmp_path: Path) -> None:
    daemon = launch(tmp_path, "[server]\nworkes = 2\n", prefix=[*journal.enter, *SERVICE])
    assert daemon.process.wait(60) == 2
    (entry,) = journal.find("event=not-started ")
    assert "server.workes" in entry["MESSAGE"]
    assert entry["PRIORITY"] == "2"
