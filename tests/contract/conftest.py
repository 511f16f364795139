"""Every backend of the table in turn; TensorRT by doubles of each generation of its interface."""

from collections.abc import Iterator

import pytest

from jetsel.base.host_settings import HostSettings
from jetsel.engines import BACKENDS
from tests.contract.opening import MAX_BATCH, Models, Subject
from tests.doubles.interpreter import GENERATIONS, make_interpreter

DOUBLED = "tensorrt-"


@pytest.fixture(scope="module", params=sorted(set(BACKENDS) - {"tensorrt"}) + [DOUBLED + one for one in GENERATIONS])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """A backend, and how exactly it answers: the doubles compute in float32 as ONNX Runtime does."""
    name = str(request.param)
    if not name.startswith(DOUBLED):
        return Subject(name)
    folder = tmp_path_factory.mktemp(name)
    python = make_interpreter(folder / "interpreter", name.removeprefix(DOUBLED))
    return Subject(
        "tensorrt",
        HostSettings(engines=str(folder / "engines"), interpreter=str(python), precision="fp32", max_batch=MAX_BATCH),
    )


@pytest.fixture(scope="module")
def models(subject: Subject) -> Iterator[Models]:
    """What the models of one subject share: an engine host, if they have one."""
    made = Models(subject)
    yield made
    made.close()
