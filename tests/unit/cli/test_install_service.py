"""`jetsel install-service`: units filled in, the commands that start them, and real files under a prefix."""

import subprocess
import sys
from pathlib import Path

import pytest

from jetsel.base.errors import ConfigError
from jetsel.cli.install_service import (
    BOOTED,
    OPTIONAL_UNITS,
    TEMPLATES,
    ServiceError,
    commands,
    run_commands,
    system_files,
    units,
    unreadable_paths,
)

EXECUTABLE = Path("/opt/jetsel/venv/bin/jetsel")


def install(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jetsel", "install-service", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_every_file_of_the_service_is_filled_in_and_has_a_place() -> None:
    files = {str(path): text for path, text in system_files(EXECUTABLE).items()}
    templates = [path.relative_to(TEMPLATES) for path in TEMPLATES.rglob("*") if path.is_file()]
    names = sorted(path.name for path in templates if path.parts[0] not in {"user", "deb"})
    assert sorted(Path(path).name for path in files) == names
    places = {"/etc/systemd/system", "/etc/sysusers.d", "/etc/tmpfiles.d", "/etc/udev/rules.d"}
    assert {str(Path(path).parent) for path in files} == places | {"/usr/local/share/jetsel/grafana"}
    assert not any("@EXECUTABLE@" in line for text in files.values() for line in text.splitlines() if line[:1] != "#")
    assert f"ExecStart={EXECUTABLE} serve\n" in files["/etc/systemd/system/jetsel.service"]


@pytest.mark.parametrize("path", ["/opt/my jetsel/bin/jetsel", "/opt/100%/jetsel", '/opt/"x"/jetsel', "bin/x"])
def test_a_path_that_systemd_would_take_apart_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="split this path"):
        units(TEMPLATES, Path("/etc"), Path(path))


def test_the_service_is_started_again_and_its_socket_only_where_its_unit_has_changed() -> None:
    run = commands(user=False, socket_changed=False)
    optional_units = [f"-systemctl try-restart jetsel-{name}.service" for name in ("gateway", "watch", "review")]
    assert run[-4:] == ["systemctl restart jetsel.service", *optional_units]
    assert not any("enable" in line and unit in line for line in run for unit in OPTIONAL_UNITS), "their owner does"
    assert run.index("systemctl daemon-reload") < run.index("systemctl start jetsel.socket")
    stop = "systemctl stop jetsel.socket jetsel.service"
    assert stop not in run, "clients go on waiting in it"
    assert stop in commands(user=False, socket_changed=True)


def test_a_command_that_must_not_fail_ends_it_with_its_words_and_another_does_not(tmp_path: Path) -> None:
    after = tmp_path / "after"
    with pytest.raises(ServiceError, match="no such thing"):
        run_commands(["echo no such thing >&2; exit 3", f"touch {after}"], runs=True)
    assert not after.exists()
    run_commands(["-false", f"touch {after}"], runs=True)
    assert after.exists()


def test_a_user_has_a_manager_of_their_own_and_no_root_commands() -> None:
    assert {line.lstrip("-")[:17] for line in commands(user=True, socket_changed=True)} == {"systemctl --user "}


def test_an_installation_in_a_home_directory_is_named_with_the_repair() -> None:
    said = next(unreadable_paths(Path("/home/ann/venv/bin/jetsel")))
    assert "/home/ann/venv/bin/jetsel" in said
    assert "/opt" in said


def test_an_image_gets_the_files_and_is_told_the_commands(tmp_path: Path) -> None:
    dry = install("--dry-run", "--prefix", str(tmp_path))
    assert (dry.returncode, dry.stdout.count("write ")) == (0, 14)
    assert list(tmp_path.iterdir()) == []
    done = install("--prefix", str(tmp_path))
    assert done.returncode == 0, done.stderr
    unit = tmp_path / "etc/systemd/system/jetsel.service"
    assert "@EXECUTABLE@ serve" not in unit.read_text()
    assert unit.stat().st_mode & 0o777 == 0o644
    assert "to run systemctl restart jetsel.service" in done.stdout
    again = install("--prefix", str(tmp_path))
    assert (again.stdout.count("keep "), again.stdout.count("write ")) == (14, 0)
    unit.unlink()
    unit.symlink_to("/dev/null")
    masked = install("--prefix", str(tmp_path))
    assert (masked.returncode, "systemctl mask" in masked.stderr, unit.is_symlink()) == (2, True, True)


@pytest.mark.skipif(BOOTED.is_dir(), reason="systemd runs this machine")
def test_without_systemd_nothing_is_changed_and_the_repair_is_named() -> None:
    unit = Path("/etc/systemd/system/jetsel.service")
    was_there = unit.exists()
    for options in ([], ["--user"], ["--remove"]):
        done = install(*options)
        assert (done.returncode, done.stdout, "--prefix" in done.stderr) == (2, "", True)
    assert unit.exists() == was_there
    assert "systemctl --user restart" in install("--dry-run", "--user").stdout
