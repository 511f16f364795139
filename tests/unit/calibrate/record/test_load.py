"""A recording read back: order, costs, groups, labels, and the models that a cheaper one makes superfluous."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.base.weights import Head
from jetsel.calibrate.record import recorder
from jetsel.calibrate.record.conditions import gather
from jetsel.calibrate.record.load import learned_share, load
from jetsel.calibrate.record.recorder import dominated_models, record
from jetsel.engines import Engine
from jetsel.features import NAMES
from jetsel.zoo import Model
from jetsel.zoo.manifest import ManifestHead
from tests.unit.calibrate.record.making import LABELS, QUICK, change, draw, family, found, put, rows

BOTH = family("xs", "s")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, engines: Mapping[str, Engine]) -> Path:
    """A recording of six photographs, one of them saved once more."""
    folder = tmp_path_factory.mktemp("whole")
    put(folder / "photos", 6)
    done, data = cv2.imencode(".jpg", draw(0), [cv2.IMWRITE_JPEG_QUALITY, 60])
    assert done
    (folder / "photos" / LABELS.wnids[2] / "again.jpg").write_bytes(data.tobytes())
    record(folder / "recording.db", BOTH, engines, found(folder / "photos"), QUICK)
    change(folder / "recording.db", "UPDATE timings SET median_ms = model")  # a busy machine may time s faster than xs
    return folder / "recording.db"


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    made = tmp_path / "copy.db"
    made.write_bytes(whole.read_bytes())
    return made


def test_arrays_stand_in_the_order_of_paths_and_cost(whole: Path) -> None:
    loaded = load(whole, BOTH)
    recording = loaded.recording
    assert recording.models == ("xs", "s")
    assert [Path(path).name for path in recording.paths] == [
        "000.jpg", "003.jpg", "001.jpg", "004.jpg", "002.jpg", "005.jpg", "again.jpg",
    ]  # fmt: skip
    assert recording.classes.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert (recording.logits.shape, recording.logits.dtype) == ((2, 7, len(LABELS.wnids)), np.float16)
    assert recording.features.shape == (7, len(NAMES))
    assert recording.embeddings is not None
    assert recording.embeddings.shape == (7, BOTH.models[0].manifest.embedding_width)
    assert recording.groups is not None
    assert recording.groups.tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert loaded.identity.identities == {model.manifest.name: model.manifest.identity for model in BOTH.models}


def test_models_stand_in_the_order_of_their_recorded_times(copy: Path) -> None:
    change(copy, "UPDATE timings SET median_ms = 3 - model")
    loaded = load(copy, BOTH)
    assert loaded.recording.models == tuple(loaded.identity.identities) == ("s", "xs")
    assert loaded.recording.embeddings is None, "those of xs, which is not the cheapest"


def test_costs_are_medians_over_the_photographs_timed_for_every_model(copy: Path) -> None:
    change(copy, "UPDATE timings SET median_ms = 2.0 + photograph * (model = 1)")
    change(copy, "DELETE FROM timings WHERE model = 2 AND photograph = (SELECT MAX(photograph) FROM timings)")
    kept = [number for (number,) in rows(copy, "SELECT photograph FROM timings WHERE model = 2")]
    change(copy, "UPDATE photographs SET features_ms = 2 * id")
    loaded = load(copy, BOTH)
    times = loaded.times
    names = dict(rows(copy, "SELECT id, name FROM models"))
    median = sorted(kept)[1]
    assert loaded.recording.costs_ms == {names[1]: 2.0 + median, names[2]: 2.0}
    assert (times.features_ms, len(kept)) == (2.0 * median, 3)
    assert (loaded.recording.energies, times.energy_reason) == (None, "no meter")
    assert times.conditions["jetsel"] == gather().described()["jetsel"]


def test_only_complete_photographs_count(copy: Path) -> None:
    change(copy, "DELETE FROM predictions WHERE model = 2 AND photograph = 1")
    assert len(load(copy, BOTH).recording.classes) == 6
    change(copy, "DELETE FROM predictions WHERE model = 2")
    with pytest.raises(CalibrationError, match="no labelled image has results from every model"):
        load(copy, BOTH)


def test_some_models_may_be_named_and_what_was_not_recorded_is_refused(copy: Path) -> None:
    only = load(copy, BOTH, models=["s"]).recording
    assert (only.models, only.embeddings, only.logits.shape[0]) == (("s",), None, 1)
    with pytest.raises(CalibrationError, match="m was not recorded; record into it again, only that model"):
        load(copy, family("xs", "s", "m"))
    change(copy, "UPDATE models SET identity = 'other' WHERE name = 's'")
    with pytest.raises(CalibrationError, match="s was recorded with other weights; record into it again"):
        load(copy, BOTH)


def test_without_times_it_is_refused(copy: Path) -> None:
    change(copy, "DELETE FROM timings WHERE model = 1")
    with pytest.raises(CalibrationError, match="some models are not timed; run the recording to its end"):
        load(copy, BOTH)


def test_labels_from_a_model_are_its_own_first_answers(copy: Path) -> None:
    change(copy, "UPDATE photographs SET class = NULL WHERE id = 1")
    assert len(load(copy, BOTH).recording.classes) == 6
    loaded = load(copy, BOTH, labels_from="s")
    assert loaded.labels_from == "s"
    assert loaded.recording.right[:, 1].tolist() == [True] * 7
    assert np.array_equal(loaded.recording.classes, loaded.recording.logits[1].argmax(axis=1))


def test_times_and_energies_of_two_machines_are_never_mixed(
    copy: Path, whole: Path, engines: Mapping[str, Engine]
) -> None:
    photographs = found(whole.parent / "photos")
    change(copy, "INSERT INTO energies (photograph, conditions, mean_mj, windows, runs) VALUES (1, 1, 1.0, 2, 2)")
    change(copy, "UPDATE timings SET median_ms = 1000.0")
    change(copy, "DELETE FROM timings WHERE photograph = (SELECT MIN(photograph) FROM timings)")
    record(copy, BOTH, engines, photographs, QUICK)
    assert (
        len(rows(copy, "SELECT 1 FROM timings WHERE median_ms = 1000.0")) == 6
    )  # this machine: only the rest is timed
    assert len(rows(copy, "SELECT 1 FROM energies")) == 1
    change(copy, "UPDATE conditions SET found = json_set(found, '$.board.value', 'Jetson TX2') WHERE id = 1")
    record(copy, BOTH, engines, photographs, QUICK)
    assert len(rows(copy, "SELECT 1 FROM timings WHERE median_ms = 1000.0")) == 0
    assert len(rows(copy, "SELECT 1 FROM timings")) == 8
    assert rows(copy, "SELECT 1 FROM energies") == []


def test_photographs_that_are_elsewhere_by_now_stay_and_those_here_are_timed(
    whole: Path, copy: Path, tmp_path: Path, engines: Mapping[str, Engine]
) -> None:
    change(copy, "DELETE FROM timings")
    change(copy, "UPDATE photographs SET path = '/elsewhere/' || id")
    record(copy, BOTH, engines, found(put(tmp_path / "more", 2, first_seed=20)), QUICK)
    assert len(load(copy, BOTH).recording.classes) == 9
    assert len(rows(copy, "SELECT 1 FROM timings")) == 2 * 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE predictions SET logits = x'0011'",
        "UPDATE photographs SET features = x'00'",
        "UPDATE conditions SET found = '{}'",
        "UPDATE timings SET median_ms = 'words'",
        "DELETE FROM meta WHERE key = 'version'",
    ],
)
def test_a_recording_of_other_values_than_jetsel_writes_is_refused(copy: Path, statement: str) -> None:
    change(copy, statement)
    with pytest.raises(CalibrationError, match="contains data that jetsel did not write"):
        load(copy, BOTH)


def test_the_share_of_images_that_heads_were_trained_on_is_known(tmp_path: Path, whole: Path) -> None:
    head = Head(np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    digests = [f"{number:064x}" for number in (1 << 200, 2 << 200, 3 << 200, 4 << 200)]
    (tmp_path / "head.npz").write_bytes(head.content(digests[:1]))
    assert Head.read(tmp_path / "head.npz").bias.shape == (3,)
    of_head = ManifestHead(file="head.npz", sha256="0" * 64, backbone_classes=3)
    manifest = msgspec.structs.replace(BOTH.models[0].manifest, head=of_head)
    assert learned_share([Model(manifest, tmp_path / "m.json"), BOTH.models[1]], digests) == 0.25
    assert load(whole, BOTH).learned == 0


def right(*alone: int, n: int = 300) -> np.ndarray:
    """Right on the first half and on these images of the second."""
    values = np.arange(n) < n // 2
    values[[n // 2 + one for one in alone]] = True
    return values


def test_a_model_goes_if_a_clearly_cheaper_one_is_right_wherever_it_is() -> None:
    times_ms = {"s": 1.0, "m": 2.0, "l": 4.0}
    models = {"s": right(), "m": right(), "l": right(1, 2)}
    assert dominated_models(models, times_ms) == [("m", "s")]
    assert dominated_models({"s": right(), "m": right(0)}, times_ms) == [], "one in 300 may be more than 1 %"
    assert dominated_models({"s": right(n=290), "m": right(n=290)}, times_ms) == [], "too few images to be sure"
    assert dominated_models({"s": right(), "m": right()}, {"s": 1.0, "m": 1.05}) == [], "either may be the cheaper one"


def test_a_dropped_model_is_recorded_no_further_until_all_are_asked_for(
    tmp_path: Path, engines: Mapping[str, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "LEAST_IMAGES", 4)
    monkeypatch.setattr(recorder, "dominated_models", lambda right, _: [("s", "xs")] if "s" in right else [])
    images, path = put(tmp_path / "photos", 8), tmp_path / "recording.db"
    one = dataclasses.replace(QUICK, workers=1)
    record(path, BOTH, engines, found(images), one)
    loaded = load(path, BOTH)
    assert loaded.recording.models == ("xs",)
    assert len(loaded.recording.classes) == 8
    assert "first 4 images" in loaded.dropped["s"]
    record(path, BOTH, engines, found(images), dataclasses.replace(one, always_recorded=frozenset({"s"})))
    assert load(path, BOTH).dropped == {}
    assert len(rows(path, "SELECT 1 FROM predictions")) == 16
