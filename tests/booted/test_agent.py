"""The agent's unit: off until its owner enables its timer; the agent and the daemon cannot write each other's state."""

import json
from pathlib import Path

from jetsel.addons.fleet import publishing
from tests.booted.machine import Machine
from tests.booted.operator import configuration, started_clean
from tests.system.fleet.site import Site, put_pets
from tests.unit.addons.fleet.published import pair

AGENT, TIMER = "jetsel-agent.service", "jetsel-agent.timer"
SITE, STATE, DAEMONS = "/srv/site", "/var/lib/jetsel-agent", "/var/lib/jetsel"


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
            assert served(machine) == ("pets", ["small"])
            assert machine.run("stat", "-c", "%U", f"{STATE}/installed/1/plan.json").strip() == "jetsel-agent"
            assert machine.run("ls", f"{STATE}/usage/line-1").endswith(".jsonl.gz\n")
            folders = {f"{DAEMONS}/engines": "jetsel", f"{DAEMONS}/calibrations": "jetsel", STATE: "jetsel-agent"}
            for folder, owner in folders.items():
                machine.run("mkdir", "-p", folder, user=owner)
                can_write = {user: can_make_a_file(machine, folder, user) for user in ("jetsel", "jetsel-agent")}
                assert [user for user, can in can_write.items() if can] == [owner], folder
            machine.run("jetsel", "reload", user="jetsel-agent")
            machine.run("systemctl", "enable", "--now", TIMER)
            assert machine.show(TIMER, "ActiveState") == "active"

            machine.run("systemctl", "disable", "--now", TIMER)
            machine.run("dpkg-reconfigure", "jetsel")
            assert served(machine) == ("pets", ["small"]), "an upgrade keeps the plan"
            machine.run("systemctl", "start", AGENT)
            assert len(machine.run("ls", f"{STATE}/usage/line-1").split()) == 2
        finally:
            machine.run("systemctl", "disable", "--now", TIMER)
            machine.run("rm", "-rf", SITE, f"{STATE}/installed", f"{STATE}/remembered.json", f"{STATE}/usage")
            started_clean(machine)


def served(machine: Machine) -> tuple[str, list[str]]:
    """The one family that the daemon serves, and its models."""
    (family,) = json.loads(machine.run("jetsel", "status", "--json"))["families"]
    return family["name"], [model["name"] for model in family["models"]]


def can_make_a_file(machine: Machine, folder: str, user: str) -> bool:
    return machine.try_("sh", "-c", f"touch {folder}/probe && rm {folder}/probe", user=user).returncode == 0
