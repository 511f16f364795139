"""The units: each directive has a version that brought it, older systemds pass over the newer ones, both agree."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jetsel.cli.install_service import ServiceError, verify
from jetsel.cli.service_files import system_files

ROOT = Path(__file__).parents[3]
UNITS = sorted(path for path in (ROOT / "systemd").rglob("*") if path.suffix in (".service", ".socket", ".timer"))
TEMPLATES = ROOT / "systemd"

# From systemd's NEWS and the "Added in version" of its manual pages; 0: before 200. Those up to 237 were also looked up
# in Ubuntu 18.04's systemd 237 itself, which names every directive that it reads.
DIRECTIVES = {
    "[Unit]": {
        0: "After ConditionPathExists Description Requires",
        230: "StartLimitBurst StartLimitIntervalSec",
    },
    "[Service]": {
        0: """
            CapabilityBoundingSet Environment EnvironmentFile ExecReload ExecStart Group IOSchedulingClass
            KillMode KillSignal LimitCORE LimitNICE LimitNOFILE Nice NoNewPrivileges NotifyAccess PrivateTmp
            Restart RestartPreventExitStatus RestartSec SuccessExitStatus SupplementaryGroups SyslogIdentifier
            SystemCallFilter TimeoutStartSec TimeoutStopSec Type UMask User WatchdogSec""",
        208: "DeviceAllow DevicePolicy",
        209: "SystemCallArchitectures SystemCallErrorNumber",
        211: "RestrictAddressFamilies RuntimeDirectory RuntimeDirectoryMode",
        214: "ProtectHome ProtectSystem",
        229: "AmbientCapabilities",
        231: "RestrictRealtime",
        232: "CPUWeight ProtectControlGroups ProtectKernelModules ProtectKernelTunables RemoveIPC",
        233: "RestrictNamespaces",
        235: """
            ConfigurationDirectory ConfigurationDirectoryMode IPAddressAllow IPAddressDeny KeyringMode
            LockPersonality RuntimeDirectoryPreserve StateDirectory StateDirectoryMode""",
        239: "PrivateMounts",
        242: "ProtectHostname RestrictSUIDSGID",
        243: "OOMPolicy",
        244: "ProtectKernelLogs",
        245: "ProtectClock",
        247: "ProtectProc",
        248: "PrivateIPC",
    },
    "[Socket]": {
        0: "Backlog DirectoryMode ListenStream SocketMode",
        214: "RemoveOnStop SocketGroup SocketUser",
    },
    "[Timer]": {
        0: "OnCalendar",
        212: "Persistent",
        229: "RandomizedDelaySec",
    },
    "[Install]": {
        0: "Also WantedBy",
    },
}
"""The directives of the units by section and by the version of systemd that brought them."""

SINCE = {
    section: {name: version for version, names in brought.items() for name in names.split()}
    for section, brought in DIRECTIVES.items()
}

NEWER_THAN_237 = {name for names in SINCE.values() for name, version in names.items() if version > 237}

_GROUPS = """
    @basic-io @chown @clock @cpu-emulation @debug @default @file-system @io-event @ipc @keyring @memlock @module @mount
    @network-io @obsolete @privileged @process @raw-io @reboot @resources @setuid @signal @swap @sync @timer"""
GROUPS_OF_237 = frozenset(_GROUPS.split())
"""src/shared/seccomp-util.c of systemd 237. An unknown group in a list of what is allowed silently allows less."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def settings(unit: Path) -> list[tuple[str, str, str]]:
    """(section, directive, value) of each line that sets something."""
    section, found = "", []
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.append((section, name, value))
    return found


def sandbox(unit: Path) -> list[tuple[str, str, str]]:
    """What stands from the first setting of the sandbox to the end of the section."""
    found = [setting for setting in settings(unit) if setting[0] == "[Service]"]
    return found[[name for _, name, _ in found].index("NoNewPrivileges") :]


def rendered(folder: Path) -> Path:
    for path, text in system_files(Path("/bin/true")).items():
        (folder / path.name).write_text(text)
    return folder


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.relative_to(TEMPLATES).as_posix())
def test_every_directive_has_the_version_that_brought_it(unit: Path) -> None:
    found = settings(unit)
    assert found
    assert [(section, name) for section, name, _ in found if name not in SINCE[section]] == []


def test_what_237_does_not_know_is_told_apart_from_a_mistake() -> None:
    used = {name for unit in UNITS for _, name, _ in settings(unit)}
    assert used >= NEWER_THAN_237
    table = (ROOT / "docs/deploy.md").read_text()
    for name in NEWER_THAN_237:
        assert f"| `{name}` | {next(names[name] for names in SINCE.values() if name in names)} |" in table


def test_every_filter_goes_by_groups_that_237_knows() -> None:
    values = [value for unit in UNITS for _, name, value in settings(unit) if name == "SystemCallFilter"]
    named = {group for value in values for group in value.lstrip("~").split()}
    assert "@mount" in named
    assert named <= GROUPS_OF_237


REQUIRED = {
    "[Unit]": {
        "Requires": "jetsel.socket",
        "StartLimitIntervalSec": "2min",
        "StartLimitBurst": "10",
    },
    "[Service]": {
        "Type": "notify",
        "NotifyAccess": "main",
        "ExecStart": "@EXECUTABLE@ serve",
        "ExecReload": "@EXECUTABLE@ reload --timeout-ms 170000 --daemon-pid $MAINPID",
        "TimeoutStartSec": "180s",
        "TimeoutStopSec": "40s",
        "WatchdogSec": "60s",
        "Restart": "on-failure",
        "RestartSec": "1s",
        "RestartPreventExitStatus": "2",
        "KillMode": "mixed",
        "OOMPolicy": "continue",
        "LimitCORE": "0",
        "NoNewPrivileges": "yes",
        "SystemCallErrorNumber": "EPERM",
    },
}
"""What the daemon counts on, and has no other test: of the system's service as of a user's."""

REQUIRED_OF_THE_SYSTEM = {
    "[Service]": {
        "User": "jetsel",
        "Group": "jetsel",
        "SupplementaryGroups": "video",
        "RuntimeDirectory": "jetsel",
        "RuntimeDirectoryPreserve": "yes",
        "StateDirectory": "jetsel",
        "ConfigurationDirectory": "jetsel",
        "EnvironmentFile": "-/etc/default/jetsel",
        "LimitNOFILE": "8192",
        "LimitNICE": "-15",
        "CapabilityBoundingSet": "",
        "AmbientCapabilities": "",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "IPAddressDeny": "any",
        "RestrictAddressFamilies": "AF_UNIX",
        "DevicePolicy": "closed",
    },
    "[Install]": {"WantedBy": "multi-user.target", "Also": "jetsel.socket"},
}
REQUIRED_OF_A_SOCKET = {
    "[Socket]": {"ListenStream": "%t/jetsel/jetsel.sock", "RemoveOnStop": "yes", "Backlog": "1024"},
    "[Install]": {"WantedBy": "sockets.target"},
}


@pytest.mark.parametrize(
    ("unit", "required"),
    [
        ("jetsel.service", REQUIRED),
        ("jetsel.service", REQUIRED_OF_THE_SYSTEM),
        ("user/jetsel.service", REQUIRED),
        ("user/jetsel.service", {"[Install]": {"WantedBy": "default.target", "Also": "jetsel.socket"}}),
        ("jetsel.socket", REQUIRED_OF_A_SOCKET),
        ("jetsel.socket", {"[Socket]": {"SocketUser": "jetsel", "SocketGroup": "jetsel", "SocketMode": "0660"}}),
        ("user/jetsel.socket", REQUIRED_OF_A_SOCKET),
        ("user/jetsel.socket", {"[Socket]": {"SocketMode": "0600", "DirectoryMode": "0700"}}),
    ],
)
def test_a_unit_says_once_what_the_daemon_counts_on(unit: str, required: dict[str, dict[str, str]]) -> None:
    found = settings(TEMPLATES / unit)
    for section, directives in required.items():
        for name, value in directives.items():
            assert [(s, v) for s, n, v in found if n == name] == [(section, value)], name


def test_calibrations_are_sandboxed_as_the_daemon_is() -> None:
    assert sandbox(TEMPLATES / "jetsel-calibrate@.service") == sandbox(TEMPLATES / "jetsel.service")


def test_the_service_and_its_clients_agree_on_the_socket() -> None:
    listens = {value for _, name, value in settings(TEMPLATES / "jetsel.socket") if name == "ListenStream"}
    assert listens == {"%t/jetsel/jetsel.sock"}  # /run/jetsel/jetsel.sock, or below the user's $XDG_RUNTIME_DIR
    assert "Environment=XDG_RUNTIME_DIR=%t\n" in (TEMPLATES / "jetsel.service").read_text()


def test_the_command_of_a_reload_gives_up_before_systemd_does() -> None:
    for unit in ("jetsel.service", "user/jetsel.service"):
        values = {name: value for _, name, value in settings(TEMPLATES / unit)}
        limit = re.search(r"--timeout-ms (\d+)", values["ExecReload"])
        assert limit is not None
        assert float(limit[1]) / 1e3 < float(values["TimeoutStartSec"].removesuffix("s"))


@needs_systemd
def test_systemd_verifies_the_units() -> None:
    assert verify(system_files(Path("/bin/true")), user=False) == "systemd verifies the units"


@needs_systemd
def test_what_systemd_objects_to_is_told_and_what_an_older_one_lacks_is_not() -> None:
    text = "[Service]\nExecStart=/bin/true\nProtectEverything=yes\n"
    with pytest.raises(ServiceError, match="ProtectEverything"):
        verify({Path("/etc/systemd/system/jetsel.service"): text}, user=False)


@needs_systemd
@pytest.mark.parametrize("unit", ["jetsel.service", "jetsel-calibrate@.service"])
def test_the_exposure_is_2_or_lower(unit: str, tmp_path: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(rendered(tmp_path) / unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Overall exposure level" in done.stdout
    assert done.returncode == 0, done.stdout


def test_a_users_units_ask_nothing_that_only_the_systems_manager_can_do() -> None:
    units = (TEMPLATES / "user").iterdir()
    names = {name for unit in units for name in re.findall(r"^\w+", unit.read_text(), re.MULTILINE)}
    assert "ExecStart" in names
    assert names & {"User", "Group", "ProtectSystem", "DeviceAllow", "CapabilityBoundingSet", "IPAddressDeny"} == set()
