"""The agent's unit: off until its owner enables its timer, as the daemon's user, and it writes its own folder alone."""

from __future__ import annotations

import json
from pathlib import Path

from jetsel.fleet import publishing
from tests.booted.machine import Machine
from tests.booted.operator import configuration, started_clean
from tests.system.fleet.site import Site, put_pets
from tests.unit.fleet.published import pair

AGENT, TIMER = "jetsel-agent.service", "jetsel-agent.timer"
SITE, STATE = "/srv/site", "/var/lib/jetsel/fleet"


def test_the_unit_installs_a_plan_and_the_daemon_serves_it(machine: Machine, tmp_path: Path) -> None:
    key = pair(tmp_path, "key")
    site = Site(tmp_path / "repository", key, tmp_path / "key.pub")
    publishing.init(site.storage, [key.private])
    site.publish(put_pets(tmp_path / "models", "small", "large"))
    site.plan("line-1", 1, "small")
    for path in (path for path in site.url.rglob("*") if path.is_file()):
        machine.write(f"{SITE}/{path.relative_to(site.url)}", path.read_bytes())
    machine.write(f"{SITE}.pub", f"{key.public}\n")
    fleet = f'[fleet]\nurl = "{SITE}"\nupload = "{STATE}"\ndevice = "line-1"\nkeys = ["{SITE}.pub"]\n'
    assert machine.show(TIMER, "ActiveState") == "inactive"
    with configuration(machine, fleet):
        try:
            machine.run("systemctl", "start", AGENT)
            (family,) = json.loads(machine.run("jetsel", "status", "--json"))["families"]
            assert (family["name"], [model["name"] for model in family["models"]]) == ("pets", ["small"])
            assert machine.run("stat", "-c", "%U", f"{STATE}/installed/1/plan.json").strip() == "jetsel"
            assert machine.run("ls", f"{STATE}/usage/line-1").endswith(".jsonl.gz\n")
            machine.run("systemctl", "enable", "--now", TIMER)
            assert machine.show(TIMER, "ActiveState") == "active"
        finally:
            machine.run("systemctl", "disable", "--now", TIMER)
            machine.run("rm", "-rf", SITE, f"{STATE}/installed", f"{STATE}/remembered.json", f"{STATE}/usage")
            started_clean(machine)
