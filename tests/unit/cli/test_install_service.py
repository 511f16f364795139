"""`jetsel install-service`: units filled in, a plan that follows from what is there, and real files under a prefix."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jetsel.cli.service import before
from jetsel.cli.service.doing import ServiceError, carry_out
from jetsel.cli.service.plan import Keep, Remove, Run, Write, placed, removed, started
from jetsel.cli.service.units import File, render, system_files, user_files
from jetsel.errors import ConfigError

EXECUTABLE = Path("/opt/jetsel/venv/bin/jetsel")


def install(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jetsel", "install-service", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_every_file_of_the_service_is_filled_in_and_has_a_place() -> None:
    files = {str(file.path): file.text for file in system_files(EXECUTABLE)}
    assert set(files) == {
        "/etc/systemd/system/jetsel-calibrate@.service",
        "/etc/systemd/system/jetsel-calibrate@.timer",
        "/etc/systemd/system/jetsel.service",
        "/etc/systemd/system/jetsel.socket",
        "/etc/sysusers.d/jetsel.conf",
        "/etc/tmpfiles.d/jetsel.conf",
        "/etc/udev/rules.d/60-jetsel-sensors.rules",
    }
    assert not any("@EXECUTABLE@" in line for text in files.values() for line in text.splitlines() if line[:1] != "#")
    assert f"ExecStart={EXECUTABLE} serve\n" in files["/etc/systemd/system/jetsel.service"]


def test_a_users_service_lies_in_that_users_folder() -> None:
    files = user_files(EXECUTABLE, Path("/home/ann"))
    assert [str(file.path) for file in files] == [
        "/home/ann/.config/systemd/user/jetsel.service",
        "/home/ann/.config/systemd/user/jetsel.socket",
    ]
    assert not any("User=" in file.text for file in files)


@pytest.mark.parametrize(
    "path", ["/opt/my jetsel/bin/jetsel", "/opt/100%/jetsel", '/opt/"x"/jetsel', "/opt/$x", "bin/x"]
)
def test_a_path_that_systemd_would_take_apart_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="would take this path apart"):
        render("ExecStart=@EXECUTABLE@ serve\n", Path(path))


def test_what_is_as_it_should_be_stays_and_the_rest_is_written(tmp_path: Path) -> None:
    files = [File(Path("/etc/same"), "1\n"), File(Path("/etc/other"), "2\n"), File(Path("/etc/none"), "3\n")]
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/same").write_text("1\n")
    (tmp_path / "etc/other").write_text("of an older version\n")
    same, other, none = placed(files, tmp_path)
    assert same == Keep(tmp_path / "etc/same")
    assert other == Write(File(tmp_path / "etc/other", "2\n"), "changed")
    assert none == Write(File(tmp_path / "etc/none", "3\n"), "new")


def test_the_service_is_started_again_not_only_reloaded() -> None:
    commands = [step.command for step in started([], user=False, has_udev=True)]
    assert commands[-1] == ("systemctl", "restart", "jetsel.service")
    assert commands.index(("systemctl", "daemon-reload")) < commands.index(("systemctl", "start", "jetsel.socket"))
    assert ("systemctl", "stop", "jetsel.socket", "jetsel.service") not in commands  # clients go on waiting in it


def test_a_socket_whose_unit_has_changed_is_made_anew() -> None:
    changed = Write(File(Path("/etc/systemd/system/jetsel.socket"), ""), "changed")
    commands = [step.command for step in started([changed], user=False, has_udev=False)]
    assert ("systemctl", "stop", "jetsel.socket", "jetsel.service") in commands
    assert not any(command[0] == "udevadm" for command in commands)


def test_a_user_has_a_manager_of_their_own_and_no_root_commands() -> None:
    commands = [step.command for step in started([], user=True, has_udev=True)]
    assert {command[:2] for command in commands} == {("systemctl", "--user")}


def test_removing_stops_first_and_takes_the_calibrations_timers_along(tmp_path: Path) -> None:
    unit = tmp_path / "jetsel.service"
    unit.write_text("")
    files = [File(unit, ""), File(tmp_path / "jetsel.socket", "")]
    steps = list(removed(files, ["jetsel-calibrate@pets.timer"], user=False, has_udev=False))
    assert isinstance(steps[0], Run)
    assert steps[0].command == ("systemctl", "disable", "--now", "jetsel.service", "jetsel-calibrate@pets.timer")
    assert steps[1] == Remove(unit)
    assert len(steps) == 3  # and daemon-reload


def test_a_command_that_must_not_fail_ends_it_with_its_words_and_another_does_not(tmp_path: Path) -> None:
    said: list[str] = []
    after = tmp_path / "after"
    with pytest.raises(ServiceError, match="no such thing"):
        carry_out([Run(("sh", "-c", "echo no such thing >&2; exit 3")), Run(("touch", str(after)))], said.append)
    assert not after.exists()
    carry_out([Run(("false",), must=False), Run(("touch", str(after)))], said.append)
    assert after.exists()
    assert any("need not stop anything" in line for line in said)


def test_a_masked_unit_is_not_written_through(tmp_path: Path) -> None:
    unit = tmp_path / "jetsel.service"
    unit.symlink_to("/dev/null")
    with pytest.raises(ConfigError, match="masked"):
        carry_out([Write(File(unit, "x"), "changed")], lambda _: None)
    assert unit.is_symlink()


def test_an_installation_in_a_home_directory_is_named_with_the_repair() -> None:
    where = Path("/home/ann/venv/bin/jetsel")
    (said,) = before.unreachable(where, (Path("/home/ann/venv"), Path("/usr/bin/python3")))
    assert said == "/home/ann/venv/bin/jetsel lies in /home, which the service does not see"


def test_the_repair_of_a_place_that_cannot_be_reached_is_told_once_on_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(before, "SYSTEM_CONFIG", str(tmp_path / "none.toml"))
    said = list(before.problems(Path("/home/ann/venv/bin/jetsel"), user=False, needs_root=True))
    assert sum(" lies in " in line for line in said) >= 1
    assert said[-1] == before.INTO_OPT
    assert sum(before.INTO_OPT in line for line in said) == 1


def test_a_folder_that_others_may_not_enter_is_found_on_the_way() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        closed = Path(folder, "closed")
        (closed / "bin").mkdir(parents=True)
        (closed / "bin/jetsel").touch()
        assert before.closed_on_the_way(closed / "bin/jetsel") is None
        closed.chmod(0o700)
        assert before.closed_on_the_way(closed / "bin/jetsel") == closed


def test_an_image_gets_the_files_and_is_told_the_commands(tmp_path: Path) -> None:
    done = install("--prefix", str(tmp_path))
    assert done.returncode == 0, done.stderr
    unit = tmp_path / "etc/systemd/system/jetsel.service"
    assert "@EXECUTABLE@ serve" not in unit.read_text()
    assert unit.stat().st_mode & 0o777 == 0o644
    assert "systemctl restart jetsel.service" in done.stdout
    command = before.executable()
    assert f"the units run {command}: this path must exist in the image\n" in done.stdout
    warned = done.stderr.splitlines()
    assert [line.removeprefix("warning  ") for line in warned[:-1]] == list(before.unreachable(command))
    assert ("/opt/jetsel/venv" in done.stderr) == bool(warned)
    again = install("--prefix", str(tmp_path))
    assert again.stdout.count("keep ") == 7
    assert "write " not in again.stdout


def test_a_dry_run_prints_files_and_commands_and_changes_nothing(tmp_path: Path) -> None:
    done = install("--dry-run", "--prefix", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("write ") == 7
    assert list(tmp_path.iterdir()) == []
    for options in (["--dry-run"], ["--dry-run", "--user"]):
        assert "systemctl" in install(*options).stdout


@pytest.mark.skipif(before.BOOTED.is_dir(), reason="systemd runs this machine")
def test_without_systemd_nothing_is_changed_and_the_repair_is_named() -> None:
    unit = Path("/etc/systemd/system/jetsel.service")
    was_there = unit.exists()
    done = install()
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("stops  systemd does not run this machine")
    assert lines[-1] == "jetsel: nothing was changed: see above what is in the way"
    assert lines[1:-1] == [line for line in install("--dry-run").stdout.splitlines() if line.startswith("stops")][1:]
    assert done.stdout == ""
    assert unit.exists() == was_there
