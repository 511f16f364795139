"""`jetsel calibration` in process: the history, one of it, and the way back, with no daemon there."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from jetsel.artefact.calibration import PolicyPart
from jetsel.artefact.installed import current, install
from jetsel.cli.app import app
from jetsel.cli.calibration import as_plain
from tests.unit.daemon.families import calibrate, calibration_of, put_family
from tests.unit.policies.animals import animals

NOWHERE = "ipc:///nonexistent/jetsel.sock"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    calibrate(folder, "cats", created="May")
    return folder


@pytest.fixture
def config(tmp_path: Path, models: Path) -> Path:
    """A configuration that serves the family `cats`, whose owner's calibrations are in the folder `owners`."""
    file = tmp_path / "jetsel.toml"
    text = f'[server]\nendpoint = "{NOWHERE}"\n[models]\nstarter = false\npaths = ["{models}"]\n'
    file.write_text(text + f'calibrations = "{tmp_path / "owners"}"\n')
    return file


def put(config: Path, created: str, report: str | None = None, **changed: Any) -> Path:
    made = calibration_of(config.parent / "cats", "cats", created=created, **changed)
    return install(made, config.parent / "owners", "cats", report).directory


def run(config: Path, *arguments: str, status: int = 0) -> str:
    """What the command prints: on the standard output where it succeeds, else its one line of error."""
    command = ["calibration", arguments[0], "--config", str(config), *arguments[1:]]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == status, done.output
    if status != 0 and done.stderr:
        assert len(done.stderr.splitlines()) == 1
        return done.stderr
    return done.stdout


def as_json(config: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(config, *arguments, "--json"))
    return found


def test_the_history_is_listed_with_what_is_in_use_and_what_is_refused(config: Path) -> None:
    put(config, "June", "<p>report")
    put(config, "July", labels_sha256="a" * 64)
    (put(config, "August") / "arrays.npz").write_bytes(b"")
    found = as_json(config, "list")
    assert (found["family"], found["current"], found["folder"]) == ("cats", 3, str(config.parent / "owners"))
    rows = {row["number"]: row for row in found["calibrations"]}
    assert list(rows) == [3, 2, 1, 0]
    assert rows[1] == {
        "number": 1,
        "is_current": False,
        "created": "June",
        "default_policy": "cascade",
        "photographs": 6,
        "labels_from": None,
        "refused": None,
        "directory": str(config.parent / "owners" / "cats" / "1"),
        "report": str(config.parent / "owners" / "cats" / "1" / "report.html"),
    }
    assert (rows[3]["created"], rows[3]["default_policy"], rows[3]["photographs"]) == (None, None, None)
    assert "damaged" in rows[3]["refused"]
    assert rows[2]["created"] == "July"
    assert "made for other models: other labels" in rows[2]["refused"]
    printed = run(config, "list")
    for words in ("family cats", "not used", "June", "cascade", "0 (shipped)", str(config.parent / "owners")):
        assert words in printed


def test_one_is_shown_with_all_it_says(config: Path) -> None:
    put(config, "June", "<p>report", because="[bold]June did best")
    shown = as_json(config, "show")
    assert (shown["number"], shown["calibration"]["because"]) == (1, "[bold]June did best")
    assert "temperatures" not in run(config, "show")
    assert "June did best" in run(config, "show")
    printed = run(config, "show", "--all")
    for words in (
        "number 1, of June, in use",
        "temperatures",
        "[bold]June did best",
        "report.html",
        "float32 (6, 2)",
    ):
        assert words in printed
    shipped = " ".join(run(config, "show", "0").split())  # a title may be wrapped
    assert "shipped with the models, of May" in shipped
    assert "its report: none" in shipped


def test_the_way_back_says_what_is_used_now_and_that_no_daemon_listens(config: Path) -> None:
    for created in ("June", "July"):
        put(config, created)
    printed = run(config, "rollback")
    for part in ("now uses number 1, of June", "no daemon listens"):
        assert part in printed
    found = as_json(config, "rollback")
    assert (found["number"], found["reloaded"]) == (0, None)
    assert current(config.parent / "owners", "cats") is None
    assert "now uses number 2, of July" in run(config, "rollback", "--to", "2")


def test_a_calibration_of_other_classes_that_lies_beside_the_models_is_not_theirs(config: Path) -> None:
    calibrate(config.parent / "cats", "cats", labels_sha256="a" * 64)  # as a backbone's, whose folder heads share
    assert as_json(config, "list")["calibrations"] == []
    assert "has no calibration yet" in run(config, "show", status=1)
    put(config, "June")
    printed = run(config, "rollback")
    assert "ships without one; single:l answers by default" in printed
    assert "jetsel calibration rollback --to 1" in printed
    assert "no calibration of your own" in run(config, "rollback", status=1)


def test_what_is_refused_is_not_in_use_and_not_gone_back_to(config: Path) -> None:
    calibrate(config.parent / "cats", "cats", identities={"s": "0" * 64, "l": "1" * 64})
    assert as_json(config, "list")["current"] is None
    assert "in use" not in run(config, "list")
    put(config, "June")
    assert "number 0 cannot be used" in run(config, "rollback", status=1)
    assert as_json(config, "list")["current"] == 1


def test_as_plain_values_one_other_value_in_an_array_shows() -> None:
    calibration = animals()
    plain = as_plain(calibration)
    assert tuple(plain) == calibration.__struct_fields__
    assert msgspec.json.decode(msgspec.json.encode(plain))["temperatures"] == calibration.temperatures
    arrays = dict(calibration.parts["chain"].arrays)

    def changed() -> dict[str, Any]:
        part = PolicyPart(calibration.parts["chain"].facts, arrays)
        return as_plain(msgspec.structs.replace(calibration, parts=dict(calibration.parts) | {"chain": part}))

    assert changed() == plain
    arrays["right"] = ~arrays["right"]
    assert changed() != plain
