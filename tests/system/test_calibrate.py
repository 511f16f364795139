"""`jetsel calibrate` and `jetsel evaluate` as their first user finds them, on views of three photographs."""

import html
import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from skimage import data

from jetsel.artefact.calibration import Calibration
from jetsel.artefact.installed import current
from jetsel.calibrate.record.conditions import TimingPlan
from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Connect, Start
from tests.unit.calibrate.record.making import content
from tests.waiting import until

pytestmark = pytest.mark.slow

VIEWS = 72
SOURCES = {
    "n02123045": data.chelsea(),
    "espresso": data.coffee(),
    "obelisk": data.rocket(),
}  # a tabby, by its identifier
TWO = 'only = ["xs", "s"]\n'  # the daemon's own way to hold fewer models, and much less time


def put(folder: Path, views: int = VIEWS) -> Path:
    """Write square views of the three photographs, mirrored, brighter and darker, into class folders by turns."""
    draw = np.random.default_rng(2018)
    for number in range(views):
        label = list(SOURCES)[number % len(SOURCES)]
        whole = SOURCES[label]
        side = int(min(whole.shape[:2]) * draw.uniform(0.45, 1))
        top, left = (int(draw.integers(0, length - side + 1)) for length in whole.shape[:2])
        view = whole[top : top + side, left : left + side, ::-1]
        view = cv2.resize(view[:, :: draw.choice([-1, 1])], (96, 96), interpolation=cv2.INTER_AREA)
        view = np.clip(view * draw.uniform(0.6, 1.4) + draw.uniform(-30, 30), 0, 255).astype(np.uint8)
        (folder / label).mkdir(parents=True, exist_ok=True)
        assert cv2.imwrite(str(folder / label / f"{number:03}.jpg"), view)
    return folder


def configured(folder: Path, models: str = TWO, more: str = "") -> Path:
    """Write a configuration whose calibrations and socket lie in the folder, and return it."""
    path = folder / "own.toml"
    endpoint = f'[server]\nendpoint = "ipc://{folder}/none.sock"\n'
    path.write_text(f'{endpoint}[models]\n{models}calibrations = "{folder}/calibrations"\n{more}')
    return path


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def installed(folder: Path) -> Calibration:
    entry = current(folder / "calibrations", "starter")
    assert entry is not None
    return entry.usable_calibration()


class Home(NamedTuple):
    """An owner's folder in which the photographs are recorded, and a first calibration is installed."""

    folder: Path
    photos: Path
    recording: Path
    config: Path
    first: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    photos, recording, config = put(folder / "photos"), folder / "recording.sqlite", configured(folder)
    options = ("--recording", recording, "--force", "--json", "--config", config)
    return Home(folder, photos, recording, config, jetsel("calibrate", photos, *options))


def test_a_program_reads_the_outcome_as_one_object(home: Home) -> None:
    (said,) = lines(home.first)
    assert home.first.stderr == ""
    calibration = installed(home.folder)
    facts = said["calibration"]
    assert (said["installed"], facts["images"]["labels_from"]) == (1, None)
    assert said["daemon"].startswith("no daemon listens")
    assert (said["verdict"], facts["rival"]) == (calibration.because, calibration.rival)
    assert facts["default_policy"] == calibration.default_policy
    assert list(calibration.identities) == ["xs", "s"]  # those that are served
    assert said["best_single"] in calibration.identities
    comparison = said["comparison"]
    assert {"top1", "top5", "vs_best_single"} <= comparison["policies"]["single:xs"].keys()
    assert {"best single", "oracle"} == comparison["bounds"].keys()
    assert {"energy", "identities"} <= facts.keys()
    assert {"conditions", "left_out"} <= said.keys()
    entry = current(home.folder / "calibrations", "starter")
    assert entry is not None
    assert entry.report is not None
    assert entry.report.read_text() == Path(said["report"]).read_text()


def test_a_person_is_told_the_outcome_and_a_running_daemon_takes_it_up(
    start: Start, connect: Connect, home: Home, tmp_path: Path
) -> None:
    daemon = start(f'[models]\n{TWO}calibrations = "{tmp_path}/calibrations"\n')
    done = jetsel("calibrate", home.photos, "--recording", home.recording, "--force", "--config", daemon.config)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for part in ("Policy", "single:xs", "cascade", "oracle"):
        assert part in text
    called = f"number 1, of {installed(tmp_path).created}"
    assert "installed as number 1" in text
    assert f"the daemon has reloaded, and serves family starter with this calibration: {called}" in text
    assert f"the report: {home.recording.with_suffix('.html')}" in text
    (family,) = connect(daemon).status()["families"]
    assert family["calibration"] == called
    assert family["because"] == installed(tmp_path).because


def test_a_multiplexer_is_fitted_on_request_and_served(
    start: Start, connect: Connect, home: Home, tmp_path: Path, jpeg: bytes
) -> None:
    daemon = start(f'[models]\n{TWO}calibrations = "{tmp_path}/calibrations"\n')
    recording = shutil.copy(home.recording, tmp_path / "recording.sqlite")
    options = ("--recording", recording, "--policy", "multiplexer", "--json", "--config", daemon.config)
    (said,) = lines(jetsel("calibrate", home.photos, *options, "--with", "multiplexer"))
    assert (said["calibration"]["default_policy"], said["installed"]) == ("multiplexer", 1)
    assert installed(tmp_path).figures["multiplexer"]["runs"].keys() == {"xs", "s"}
    answer = connect(daemon).classify(jpeg)
    assert (answer["policy"], answer["ran"][0]["model"]) == ("multiplexer", next(iter(installed(tmp_path).identities)))
    (judged,) = lines(jetsel("evaluate", home.photos, *options))
    assert judged["policies"].keys() == {"multiplexer"}


def test_what_cannot_be_better_is_not_installed_and_a_model_that_stands_for_labels_is_named(
    home: Home, tmp_path: Path
) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, path in enumerate(sorted(home.photos.rglob("*.jpg"))):
        shutil.copy(path, flat / f"{number}.jpg")
    # The model in use always agrees with itself: nothing is better.
    config = configured(tmp_path, more='[policy]\ndefault = "single:s"\n')
    done = jetsel("calibrate", flat, "--labels-from", "s", "--config", config)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    meaning = "right means agreement with s"
    for part in ("single:s, the policy in use", meaning, "nothing was installed"):
        assert part in text
    assert [path.name for path in (tmp_path / "calibrations").iterdir()] == ["recordings"]
    (report,) = (tmp_path / "calibrations/recordings").glob("starter-flat-*.html")
    page = html.unescape(report.read_text())
    assert "Nothing was changed" in page
    assert f"jetsel calibrate {flat} --labels-from s --config {config} --policy NAME" in page


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--objective", "energy"], "energy, but energy is unknown: [power] sensor is"),
        (["--labels-from", "m"], "has no model m: xs, s"),  # it is not served
        (["--labels-from", "xss"], "has no model xss (did you mean xs?): xs, s"),
        (["--report", "nowhere/report.html"], "no folder nowhere"),
        (["--policy", "nonsense"], "no policy 'nonsense'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_recorded(
    home: Home, tmp_path: Path, options: list[str], part: str
) -> None:
    config = configured(tmp_path, more='[power]\nsensor = "none"\n')
    done = jetsel("calibrate", home.photos, *options, "--config", config)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert part in done.stderr
    assert not (tmp_path / "calibrations").exists()


def test_too_few_images_are_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    few = put(tmp_path / "few", 5)
    (few / "foood").mkdir()
    (few / "foood/1.jpg").write_bytes(b"")
    done = jetsel("calibrate", few, "--config", configured(tmp_path))
    assert done.returncode == 1
    assert "the family knows are too few" in done.stderr
    assert "foood/1.jpg: unknown label" in done.stderr
    assert not (tmp_path / "calibrations").exists()


def test_ctrl_c_leaves_what_is_recorded_and_the_same_command_goes_on(home: Home, tmp_path: Path) -> None:
    config = configured(tmp_path)
    command = ["calibrate", str(home.photos), "--config", str(config)]
    with subprocess.Popen([*COMMAND, *command], stderr=subprocess.PIPE, text=True) as process:
        until(lambda: any((tmp_path / "calibrations").rglob("*.sqlite")))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 130
    assert "run the same command again" in said
    (recording,) = (tmp_path / "calibrations/recordings").glob("*.sqlite")
    kept = content(recording)["predictions"]
    done = jetsel(*command)
    assert done.returncode == 0, done.stderr
    found = content(recording)
    assert set(kept) <= set(found["predictions"])
    assert len(found["photographs"]) == VIEWS
    assert len(found["timed"]) >= 2 * TimingPlan().least


def test_evaluate_prints_the_documented_object(home: Home) -> None:
    done = jetsel("evaluate", home.photos, "--json", "--policy", "all", "--config", home.config)
    assert done.stderr == ""
    (found,) = lines(done)
    assert (found["photographs"], found["labels_from"]) == (VIEWS, None)
    assert {"single:xs", "single:s", "cascade"} <= set(found["policies"])
    assert set(found["bounds"]) == {"best single", "oracle"}
    for result in [*found["policies"].values(), *found["bounds"].values()]:
        assert {"top1", "top5"} <= set(result)
        assert set(result["time_ms"]) == {"mean", "p50", "p95"}
        assert result["energy_mj"] is None
        assert found["energy_reason"]
        assert set(result["runs"]) == {"xs", "s"}
        assert {"points", "time_ratio"} <= set(result["vs_best_single"])
    alone = found["policies"]["single:xs"]
    assert alone["runs"] == {"xs": 1.0, "s": 0.0}


def test_evaluate_without_a_calibration_judges_the_models_and_records_once(home: Home, tmp_path: Path) -> None:
    config = configured(tmp_path)
    (found,) = lines(jetsel("evaluate", home.photos, "--json", "--config", config))
    assert set(found["policies"]) == {"single:xs", "single:s"}
    (recording,) = (tmp_path / "calibrations/recordings").glob("*.sqlite")
    before = content(recording)
    lines(jetsel("evaluate", home.photos, "--json", "--config", config))
    assert content(recording) == before
