"""What calibration records of a photograph is what serving sees of it, large JPEGs and every way to ask included."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from skimage import data

from jetsel.base.config import Config, Models
from jetsel.calibrate.record import load as reading
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.photographs import FoundImages, Labelled
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.calibrate.record.recording import Recording
from jetsel.daemon.admission import Load
from jetsel.daemon.deciding import policy_for
from jetsel.daemon.job import Job
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.snapshot import Snapshot, load_snapshot, read_snapshot
from jetsel.engines import Backends
from jetsel.features import NAMES
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.wire import Classify
from jetsel.zoo import STARTER, scan
from tests.system.daemons import drawn, encoded
from tests.unit.daemon.families import calibrate, put_family

CLOSE = 4e-3  # logits are recorded in float16: 8 is 8 to 0.004, and a probability what they make of it
FEATURES_PX = {"starter": 4096, "mixed": 250_000}  # the second is more than its models see of a large JPEG
ALL = "all"  # a policy of the owner's that runs every model, whatever they say


def photographs() -> dict[str, bytes]:
    """Files of photographs and of drawn pictures; the large JPEGs are decoded at a reduced scale."""
    cat, coffee = (cv2.cvtColor(picture, cv2.COLOR_RGB2BGR) for picture in (data.cat(), data.coffee()))
    large = cv2.resize(coffee, (3000, 2000), interpolation=cv2.INTER_CUBIC)
    _, progressive = cv2.imencode(".jpg", large, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1, cv2.IMWRITE_JPEG_QUALITY, 80])
    return {
        "coffee": encoded(coffee),
        "coffee in a PNG": encoded(coffee, ".png"),
        "coffee at 3000 x 2000": encoded(large),
        "coffee at 3000 x 2000, progressive": progressive.tobytes(),
        "a cat at 1999 x 3001": encoded(cv2.resize(cat, (1999, 3001), interpolation=cv2.INTER_CUBIC)),
        "shapes at 511 x 513": encoded(drawn(2, 513, 511)),
        "shapes of a few pixels": encoded(drawn(3, 9, 700)),
    }


PHOTOGRAPHS = photographs()


def recorded(folder: Path, family: str, work: Path) -> Recording:
    """The photographs as calibration records them; their classes do not matter here."""
    found = scan([folder]).families[family]
    paths = [work / f"{number:02d}" for number in range(len(PHOTOGRAPHS))]
    for path, file in zip(paths, PHOTOGRAPHS.values(), strict=True):
        path.write_bytes(file)
    shown = FoundImages(work, tuple(Labelled(path, 0, "any") for path in paths), ())
    plan = TimingPlan(images=1, repeats=2)
    options = RecordOptions(plan=plan, features_px=FEATURES_PX[family])
    with loaded_models(found) as engines:
        record(work / "recording.sqlite", found, engines, shown, options)
    return reading.load(work / "recording.sqlite", found).recording


def serving(folder: Path) -> Snapshot:
    """The same family as the daemon serves it."""
    names = [model.manifest.name for family in scan([folder]).families.values() for model in family.models]
    snapshot = read_snapshot(Config(models=Models(starter=False, paths=[str(folder)])))
    snapshot.family(None).policies[ALL] = Cascade(ALL, rungs_of(names, [1.0] * (len(names) - 1)))
    load_snapshot(snapshot, Backends(), lambda *_: None, threading.Event())
    return snapshot


def prepared(snapshot: Snapshot, file: bytes, **fields: Any) -> Job:
    """A request after the part of the pipeline that decodes and reads features."""
    family = snapshot.family(None)
    request = Classify(1, "a", **fields)
    job = Job(
        route=None,
        message=request,
        data=memoryview(file),
        load=Load("uid 0", len(file), 0),
        snapshot=snapshot,
        family=family,
        policy=policy_for(family, request),
        received_s=time.monotonic(),
    )
    Pipeline.start(job)
    return job


@pytest.fixture(scope="module", params=["starter", "mixed"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family with a calibration of the test's own, whose temperatures are far from 1.

    The starter family, or one whose models take 16, 150 and 64 pixels: each alone would have large JPEGs decoded at its
    own scale.
    """
    made: Path = tmp_path_factory.mktemp("models") / request.param
    if request.param == "starter":
        shutil.copytree(STARTER, made, ignore=shutil.ignore_patterns("calibration"))
    else:
        put_family(made, "mixed", "s", "m", "l", sides_px=(16, 150, 64))
    calibrate(made, request.param, features_px=FEATURES_PX[request.param])
    return made


@pytest.fixture(scope="module")
def recording(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recorded(folder, folder.name, tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def snapshot(folder: Path) -> Iterator[Snapshot]:
    made = serving(folder)
    yield made
    made.close()


WAYS: list[dict[str, Any]] = [
    {"policy": ALL},
    {"policy": "cascade"},
    {"policy": "chain"},
    {"policy": "cascade", "explain": True},
    {"policy": ALL, "top_k": 1},
    {"policy": ALL, "deadline_ms": 1.0},
]


@pytest.mark.slow
def test_logits_and_features_served_are_those_recorded(recording: Recording, snapshot: Snapshot) -> None:
    queues = snapshot.family(None).driver.queues
    for number, file in enumerate(PHOTOGRAPHS.values()):
        for column, model in enumerate(recording.models):
            for way in ({"model": model}, *WAYS):
                job = prepared(snapshot, file, **way)
                assert job.photograph is not None
                engine = queues[model].engine
                served = engine.infer(job.model_input(model)).logits[0]
                assert served == pytest.approx(recording.logits[column, number], abs=CLOSE), (model, way)
                if way.get("policy", "").startswith("chain"):
                    assert np.array_equal(job.run.features, recording.features[number, used(snapshot)])


def used(snapshot: Snapshot) -> list[int]:
    """The columns of the features that the family's calibration reads."""
    features = snapshot.family(None).policies["chain"].features
    assert features, "the calibration is in use"
    return [NAMES.index(name) for name in features]
