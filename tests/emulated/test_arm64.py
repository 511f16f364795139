"""The arm64 package does on arm64 what it is for: its wheels load; the daemon starts, answers, reloads and stops."""

from __future__ import annotations

import json

from tests.emulated.shell import Shell

JETSEL = "/opt/jetsel/venv/bin/jetsel"
PICTURE = "/srv/pictures/an-orange-on-a-table.jpg"
IPC = "ipc:///tmp/jetsel.sock"
READY_S = 300  # emulated, it takes some 45 times as long

LIFE = f"""
set -eu
cd /tmp
printf '[server]\\nendpoint = "{IPC}"\\n' >jetsel.toml
setpriv --reuid=jetsel --regid=jetsel --init-groups {JETSEL} serve --config jetsel.toml 2>log &
daemon=$!
begun=$(date +%s)
until grep -q ' ready on ' log; do
    kill -0 $daemon || {{ cat log >&2; exit 1; }}
    [ $(($(date +%s) - begun)) -lt {READY_S} ] || {{ cat log >&2; exit 1; }}
    sleep 1
done
date +%s | awk "{{print \\$1 - $begun}}"
{JETSEL} classify --json --endpoint {IPC} --timeout-ms 60000 {PICTURE}
{JETSEL} reload --endpoint {IPC} --timeout-ms 120000 >&2
kill -TERM $daemon
wait $daemon
"""


def test_the_daemon_starts_answers_reloads_and_stops(shell: Shell, said: list[str]) -> None:
    assert shell.run("uname", "-m").strip() == "aarch64"
    ready_s, answer = shell.run("sh", "-c", LIFE).splitlines()
    said.append(f"ready after {ready_s} s")
    assert json.loads(answer)["label"], answer


def test_doctor_finds_every_library_at_work(shell: Shell) -> None:
    told = json.loads(shell.run("sh", "-c", f"{JETSEL} doctor --json || true"))  # no daemon runs, which it says
    found = {check["name"]: check["state"] for check in told if check["section"] == "installation"}
    assert "jetsel" in found
    assert set(found.values()) == {"ok"}, told
