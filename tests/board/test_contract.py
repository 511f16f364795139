"""The suite that every backend passes, with the board's own TensorRT, in both precisions."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from jetsel.base.host_settings import HostSettings
from tests.contract.conftest import models  # noqa: F401  # a fixture
from tests.contract.opening import MAX_BATCH, Subject
from tests.contract.test_engines import *  # noqa: F403  # its tests are ours

HALF = 2.0**-11
"""The unit roundoff of float16, and of TF32, in which an Ampere or later multiplies what is said to be float32."""

EXACT, ROUNDED = 1e-4, 0.05
"""Of a logit. The tiny model's is a sum of 18 products whose magnitudes sum up to 25 at most here: two operands rounded
to half make 25 * 2 * HALF = 0.024; as much again is for a sum that is kept in float16. In float32 the order of the sum
is TensorRT's own."""

AMPERE = 8


@pytest.fixture(scope="module")
def subject(precision: str, settings: HostSettings, about: Mapping[str, Any]) -> Subject:
    host = replace(settings, precision=precision, max_batch=MAX_BATCH)
    is_half = precision == "fp16"
    is_rounded = is_half or int(about["gpu"]["compute_capability"].split(".")[0]) >= AMPERE
    return Subject("tensorrt", host, tolerance=ROUNDED if is_rounded else EXACT, rounding=HALF if is_half else 0.0)
