"""The units: what the daemon counts on stands in them, systemd reads them, and older ones pass over what is newer."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from jetsel.cli.install_service import system_files

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "systemd"
UNITS = sorted(path for path in TEMPLATES.rglob("*") if path.suffix in (".service", ".socket", ".timer"))

NEWER_THAN_237 = {  # with the version that brought it, from systemd's NEWS
    "PrivateMounts": 239,
    "ProtectHostname": 242,
    "RestrictSUIDSGID": 242,
    "OOMPolicy": 243,
    "ProtectKernelLogs": 244,
    "ProtectClock": 245,
    "ProtectProc": 247,
    "ProcSubset": 247,
    "PrivateIPC": 248,
}
"""Directives that systemd 237 (Ubuntu 18.04) does not know: it logs a line for each, and goes on."""

_GROUPS = """
    @basic-io @chown @clock @cpu-emulation @debug @default @file-system @io-event @ipc @keyring @memlock @module @mount
    @network-io @obsolete @privileged @process @raw-io @reboot @resources @setuid @signal @swap @sync @timer"""
GROUPS_OF_237 = frozenset(_GROUPS.split())
"""src/shared/seccomp-util.c of systemd 237. An unknown group in a list of what is allowed silently allows less."""

RESTARTED = """StartLimitIntervalSec=2min StartLimitBurst=10 Type=notify NotifyAccess=main
    Restart=on-failure RestartSec=1s RestartPreventExitStatus=2 WantedBy=multi-user.target"""
LOCKED = """LimitCORE=0 NoNewPrivileges=yes CapabilityBoundingSet= AmbientCapabilities= SystemCallErrorNumber=EPERM
    ProtectSystem=strict ProtectHome=yes PrivateTmp=yes"""
NO_STATE = "'InaccessiblePaths=-/var/lib/jetsel -/var/lib/jetsel-agent'"
COUNTED_ON = {
    "jetsel.service": f"""
        Requires=jetsel.socket Also=jetsel.socket {RESTARTED} {LOCKED}
        TimeoutStartSec=180s TimeoutStopSec=40s WatchdogSec=60s KillMode=mixed OOMPolicy=continue
        User=jetsel Group=jetsel SupplementaryGroups=video
        RuntimeDirectory=jetsel RuntimeDirectoryPreserve=yes StateDirectory=jetsel ConfigurationDirectory=jetsel
        EnvironmentFile=-/etc/default/jetsel LimitNOFILE=8192
        RestrictAddressFamilies=AF_UNIX IPAddressDeny=any DevicePolicy=closed""",
    "jetsel-gateway.service": f"""
        Wants=jetsel.socket {RESTARTED} {LOCKED} {NO_STATE} PrivateDevices=yes
        EnvironmentFile=-/etc/jetsel/gateway Environment=JETSEL_ENDPOINT=%t/jetsel/jetsel.sock
        User=jetsel-gateway Group=jetsel-gateway SupplementaryGroups=jetsel MemoryMax=1G""",
    "jetsel-watch.service": f"""
        Wants=jetsel.socket {RESTARTED} {LOCKED} {NO_STATE}
        Environment=JETSEL_ENDPOINT=%t/jetsel/jetsel.sock
        User=jetsel-watch Group=jetsel SupplementaryGroups=video StateDirectory=jetsel-watch StateDirectoryMode=0700
        RuntimeDirectory=jetsel-watch RuntimeDirectoryMode=0750
        MemoryMax=2G DevicePolicy=closed 'DeviceAllow=char-video4linux rw'""",
    "jetsel-review.service": f"""
        Wants=jetsel.socket {RESTARTED} {LOCKED} {NO_STATE} PrivateDevices=yes
        EnvironmentFile=-/etc/jetsel/review
        User=jetsel-watch Group=jetsel StateDirectory=jetsel-watch StateDirectoryMode=0700 MemoryMax=1G
        IPAddressDeny=any IPAddressAllow=localhost""",
    "jetsel-agent.service": """
        Type=oneshot TimeoutStartSec=4h MemoryMax=75% OOMPolicy=continue LimitCORE=0
        User=jetsel-agent Group=jetsel-agent ReadWritePaths=/var/lib/jetsel-agent""",
    "user/jetsel.service": """
        Requires=jetsel.socket Type=notify NotifyAccess=main WatchdogSec=60s Restart=on-failure
        RestartPreventExitStatus=2 KillMode=mixed NoNewPrivileges=yes WantedBy=default.target Also=jetsel.socket""",
    "jetsel.socket": """
        ListenStream=%t/jetsel/jetsel.sock RemoveOnStop=yes Backlog=1024 WantedBy=sockets.target
        SocketUser=jetsel SocketGroup=jetsel SocketMode=0660""",
    "user/jetsel.socket": """
        ListenStream=%t/jetsel/jetsel.sock RemoveOnStop=yes WantedBy=sockets.target
        SocketMode=0600 DirectoryMode=0700""",
}
"""What the daemon and its clients count on, and has no other test."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def settings(unit: Path) -> list[tuple[str, str]]:
    """The name and the value of each line that sets something."""
    lines = [line for line in unit.read_text().splitlines() if line[:1] not in ("", "#", "[")]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def sandbox(unit: Path) -> list[tuple[str, str]]:
    """What stands from the first setting of the sandbox to the end of the section."""
    found = [setting for setting in settings(unit) if setting[0] not in ("WantedBy", "Also")]
    return found[[name for name, _ in found].index("NoNewPrivileges") :]


@pytest.mark.parametrize("unit", COUNTED_ON)
def test_a_unit_says_once_what_the_daemon_counts_on(unit: str) -> None:
    found = settings(TEMPLATES / unit)
    for wanted in shlex.split(COUNTED_ON[unit]):
        name, _, value = wanted.partition("=")
        assert [v for n, v in found if n == name] == [value], name


def test_each_directive_that_237_does_not_know_is_in_the_table_of_the_documents() -> None:
    assert {name for unit in UNITS for name, _ in settings(unit)} >= set(NEWER_THAN_237)
    table = (ROOT / "docs/security.md").read_text()
    for name, version in NEWER_THAN_237.items():
        assert f"| `{name}` | {version} |" in table


def test_every_filter_goes_by_groups_that_237_knows() -> None:
    values = [value for unit in UNITS for name, value in settings(unit) if name == "SystemCallFilter"]
    named = {name for value in values for name in value.lstrip("~").split() if name[0] == "@"}
    assert "@mount" in named
    assert named <= GROUPS_OF_237


def test_calibrations_are_sandboxed_as_the_daemon_is_and_the_agent_but_for_the_network() -> None:
    daemon = sandbox(TEMPLATES / "jetsel.service")
    assert sandbox(TEMPLATES / "jetsel-calibrate@.service") == daemon
    network = {("RestrictAddressFamilies", "AF_UNIX"), ("IPAddressDeny", "any")}
    agent = sandbox(TEMPLATES / "jetsel-agent.service")
    assert {*daemon} - {*agent} == network
    assert {*agent} - {*daemon} == {("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6")}


@pytest.mark.parametrize("unit", ["jetsel.service", "user/jetsel.service"])
def test_the_command_of_a_reload_gives_up_before_systemd_does(unit: str) -> None:
    values = dict(settings(TEMPLATES / unit))
    limit = re.fullmatch(r"@EXECUTABLE@ reload --timeout-ms (\d+) --daemon-pid \$MAINPID", values["ExecReload"])
    assert float(limit[1]) / 1e3 < float(values["TimeoutStartSec"].removesuffix("s"))


def test_a_users_units_ask_nothing_that_only_the_systems_manager_can_do() -> None:
    names = {name for unit in (TEMPLATES / "user").iterdir() for name, _ in settings(unit)}
    assert "ExecStart" in names
    assert names & {"User", "Group", "ProtectSystem", "DeviceAllow", "CapabilityBoundingSet", "IPAddressDeny"} == set()


@needs_systemd
def test_systemd_knows_all_that_the_units_say(tmp_path: Path) -> None:
    units = {path: text for path, text in system_files(Path("/bin/true")).items() if path.parts[2] == "systemd"}
    copies = [tmp_path / path.name.replace("@.", "@check.") for path in units]
    for copy, text in zip(copies, units.values(), strict=True):
        copy.write_text(text)
    command = ["systemd-analyze", "verify", *map(str, copies)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()
    assert [line for line in told if "jetsel" in line] == []


@needs_systemd
def test_the_exposure_is_2_or_lower_and_the_gateways_no_higher_than_the_daemons(tmp_path: Path) -> None:
    for path, text in system_files(Path("/bin/true")).items():
        (tmp_path / path.name).write_text(text)

    def exposure(unit: str) -> float:
        command = ["systemd-analyze", "security", "--offline=true", str(tmp_path / unit)]
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
        assert found is not None, told
        return float(found[1])

    assert exposure("jetsel-review.service") <= exposure("jetsel-gateway.service") <= exposure("jetsel.service") <= 2.0
    assert exposure("jetsel-watch.service") <= 2.0
