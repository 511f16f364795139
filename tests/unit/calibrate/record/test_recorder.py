"""What is recorded, what is not done twice, and what is left out: real models on photographs made here."""

import dataclasses
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from jetsel import image
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.recorder import record
from jetsel.calibrate.record.workers import Observer, RecordingPlan
from jetsel.engines import Engine, EngineFailedError, Output
from jetsel.features import extract
from jetsel.features.near_duplicates import perceptual_hash
from jetsel.zoo import Family
from tests.unit.calibrate.record.making import (
    LABELS,
    QUICK,
    Run,
    content,
    family,
    found,
    jpeg,
    put,
    rows,
    run,
)

BOTH = family("xs", "s")
NO_TIMES = dataclasses.replace(QUICK, plan=TimingPlan(images=0))


class Counting:
    """A real engine that counts its runs, and may fail from one of them on."""

    def __init__(self, engine: Engine, fails_after: int | None = None) -> None:
        self.runs = 0
        self._engine = engine
        self._fails_after = fails_after

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def infer(self, *parts: np.ndarray) -> Output:
        if self.runs == self._fails_after:
            raise EngineFailedError("out of memory")
        self.runs += 1
        return self._engine.infer(*parts)


@pytest.fixture
def counted(engines: Mapping[str, Engine]) -> dict[str, Counting]:
    return {name: Counting(engine) for name, engine in engines.items()}


def runs(counted: Mapping[str, Counting]) -> dict[str, int]:
    return {name: engine.runs for name, engine in counted.items()}


def go(
    folder: Path,
    engines: Mapping[str, Engine],
    options: RecordOptions = NO_TIMES,
    of: Family = BOTH,
    labels: bool = True,
) -> Run:
    return run(folder.parent / "recording.db", of, engines, found(folder, labels), options)


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    return put(tmp_path / "photos", 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.db"


def test_each_photograph_is_recorded_as_the_serving_code_sees_it(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    done = go(photographs, engines)
    assert done == Run(finished=True, due=6, photographs=6, skipped={})
    file = photographs / LABELS.wnids[1] / "004.jpg"
    decoded = image.decode(file.read_bytes(), NO_TIMES.limits, BOTH.decode_px)
    (row,) = rows(
        path, f"SELECT class, label, width_px, height_px, near_hash, features FROM photographs WHERE path = '{file}'"
    )
    assert row[:4] == (1, LABELS.wnids[1], 96, 72)
    assert row[4] == perceptual_hash(decoded.bgr)
    assert np.array_equal(np.frombuffer(row[5], "<f4"), extract(decoded.bgr))
    for model in BOTH.models:
        name = model.manifest.name
        output = engines[name].infer(image.model_input(decoded, model.manifest.input))
        ((logits, embedding),) = rows(
            path,
            "SELECT logits, embedding FROM predictions JOIN photographs p ON p.id = photograph"
            f" JOIN models m ON m.id = model WHERE path = '{file}' AND name = '{name}'",
        )
        assert np.array_equal(np.frombuffer(logits, "<f2"), output.logits[0].astype(np.float16))
        assert output.embedding is not None
        assert (embedding == output.embedding[0].astype("<f2").tobytes()) if name == "xs" else embedding is None


def test_the_same_call_again_does_nothing(photographs: Path, path: Path, counted: dict[str, Counting]) -> None:
    go(photographs, counted, QUICK)
    before, first = content(path), runs(counted)
    assert len(before["timed"]) == 4 * 2
    assert go(photographs, counted, QUICK).due == 0
    assert content(path) == before
    assert runs(counted) == first
    put(photographs, 2, first_seed=6)
    assert go(photographs, counted).due == 2


def test_other_weights_of_a_model_are_recorded_again_and_nothing_else(
    photographs: Path, path: Path, counted: dict[str, Counting]
) -> None:
    go(photographs, counted, QUICK)
    first = runs(counted)
    xs, s = BOTH.models
    changed = dataclasses.replace(s, manifest=msgspec.structs.replace(s.manifest, sha256="f" * 64))
    go(photographs, counted, QUICK, of=dataclasses.replace(BOTH, models=(xs, changed)))
    assert dict(rows(path, "SELECT name, identity FROM models")) == {
        model.manifest.name: model.manifest.identity for model in (xs, changed)
    }
    assert counted["xs"].runs - first["xs"] == 3  # the first runs before the timing of s
    assert len(rows(path, "SELECT 1 FROM predictions")) == 12
    assert len(rows(path, "SELECT 1 FROM timings")) == 8


def test_the_plan_counts_the_models_that_lack_answers_and_its_images_are_examined_once(
    photographs: Path, path: Path, counted: dict[str, Counting]
) -> None:
    record(path, BOTH, {"xs": counted["xs"]}, found(photographs), NO_TIMES)
    plans: list[RecordingPlan] = []
    record(path, BOTH, counted, found(photographs), NO_TIMES, Observer(announce=plans.append))
    assert [(plan.images, plan.models) for plan in plans] == [(6, 1)]
    assert runs(counted) == {"xs": 6, "s": 6}


def test_the_same_content_twice_counts_once(photographs: Path, path: Path, engines: Mapping[str, Engine]) -> None:
    first = photographs / LABELS.wnids[0] / "000.jpg"
    other = first.with_name("zzz.jpg")
    shutil.copy(first, other)
    assert go(photographs, engines).skipped == {"duplicate": 1}
    assert rows(path, "SELECT * FROM skipped") == [(str(other), f"duplicate: the same file as {first}")]
    first.unlink()  # the other one stays, at its own place
    done = go(photographs, engines)
    assert (done.photographs, done.due, done.skipped) == (6, 0, {})
    assert (str(other),) in rows(path, "SELECT path FROM photographs")


def test_one_content_under_two_labels_counts_not_at_all_until_one_is_left(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    go(photographs, engines)
    first = photographs / LABELS.wnids[0] / "000.jpg"
    other = photographs / LABELS.wnids[1] / "other.jpg"
    shutil.copy(first, other)
    done = go(photographs, engines)
    assert (done.photographs, done.skipped) == (5, {"contradictory": 2})
    first.unlink()
    assert go(photographs, engines).photographs == 6
    assert rows(path, f"SELECT class FROM photographs WHERE path = '{other}'") == [(1,)]


def test_labels_come_and_change_without_a_run_and_are_not_lost(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    go(photographs, engines, labels=False)
    assert set(rows(path, "SELECT class, label FROM photographs")) == {(None, None)}
    target = photographs / LABELS.wnids[1] / "moved.jpg"
    (photographs / LABELS.wnids[0] / "000.jpg").rename(target)
    assert go(photographs, engines).due == 0
    labelled = content(path)
    assert sorted(row[2] for row in labelled["photographs"]) == [0, 1, 1, 1, 2, 2]
    assert rows(path, f"SELECT class, label FROM photographs WHERE path = '{target}'") == [(1, LABELS.wnids[1])]
    go(photographs, engines, labels=False)
    assert content(path) == labelled


def test_unreadable_files_are_listed_and_stop_nothing(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    folder = photographs / LABELS.wnids[0]
    (folder / "cut.jpg").write_bytes(jpeg(50)[:-200])
    (folder / "text.jpg").write_text("no picture")
    (folder / "large.jpg").write_bytes(jpeg(51, 400, 300))
    (folder / "gone.jpg").symlink_to(folder / "nowhere")
    (folder / "endless.jpg").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.jpg")
    limits = image.Limits(max_bytes=1_000_000, max_pixels=10_000)
    done = go(photographs, engines, dataclasses.replace(NO_TIMES, limits=limits))
    assert (done.photographs, done.skipped) == (6, {"unreadable": 6})
    reasons = {Path(p).name: reason for p, reason in rows(path, "SELECT * FROM skipped")}
    assert reasons["gone.jpg"] == "unreadable: No such file or directory"
    assert reasons["endless.jpg"] == reasons["pipe.jpg"] == "unreadable: it is not a regular file"
    assert reasons["cut.jpg"].startswith("unreadable: the JPEG is truncated")
    assert "and at most 10000 are accepted" in reasons["large.jpg"]
    (folder / "cut.jpg").write_bytes(jpeg(50))
    assert go(photographs, engines, dataclasses.replace(NO_TIMES, limits=limits)).skipped == {"unreadable": 5}


def test_a_file_that_changes_between_reading_and_recording_is_not_mistaken(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    file = photographs / LABELS.wnids[0] / "000.jpg"

    def tell(phase: str, done: int, _: int) -> None:
        if (phase, done) == ("recording", 0):
            file.write_bytes(jpeg(77))

    record(path, BOTH, engines, found(photographs), NO_TIMES, Observer(tell))
    assert rows(path, "SELECT COUNT(*) FROM photographs") == [(5,)]
    assert "changed" in rows(path, "SELECT reason FROM skipped")[0][0]
    assert go(photographs, engines).photographs == 6


def test_a_model_that_fails_loses_nothing_that_was_done(
    photographs: Path, path: Path, engines: Mapping[str, Engine]
) -> None:
    failing = {"xs": Counting(engines["xs"]), "s": Counting(engines["s"], fails_after=4)}
    with pytest.raises(EngineFailedError, match="out of memory"):
        go(photographs, failing, dataclasses.replace(NO_TIMES, workers=1))
    assert len(rows(path, "SELECT 1 FROM predictions")) == 8
    assert go(photographs, engines).due == 2


def test_numbers_that_float16_does_not_hold_are_refused(photographs: Path, engines: Mapping[str, Engine]) -> None:
    class Loud(Counting):
        def infer(self, *parts: np.ndarray) -> Output:
            found = super().infer(*parts)
            return found._replace(logits=found.logits * 1e6)

    with pytest.raises(EngineFailedError, match="s returns numbers that are not finite, or are above 65504"):
        go(photographs, {"xs": engines["xs"], "s": Loud(engines["s"])})


@pytest.mark.parametrize("phase", ["reading", "recording", "timing"])
def test_stopped_in_any_phase_it_goes_on_later(
    photographs: Path, path: Path, engines: Mapping[str, Engine], phase: str
) -> None:
    stop = threading.Event()

    def tell(now: str, *_: int) -> None:
        if now == phase:
            stop.set()

    assert not record(path, BOTH, engines, found(photographs), QUICK, Observer(tell, stop))
    assert rows(path, "SELECT COUNT(*) FROM photographs") == [({"reading": 0, "recording": 1, "timing": 6}[phase],)]
    assert go(photographs, engines, QUICK).finished
    one_call = path.with_name("one.db")
    record(one_call, BOTH, engines, found(photographs), QUICK)
    assert content(one_call) == content(path)
