"""When a plan has made it worse: by hand-worked numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.addons.fleet.agent.canary import Canary
from jetsel.addons.fleet.documents import Entry, PlannedFamily
from jetsel.addons.fleet.usage import CanaryResult

ENTRY = Entry(family="pets", version=1, sha256="0" * 64)


def result(
    accuracy: float | None = 0.8, mean_ms: float | None = 10.0, failed: int = 0, mb: float = 90.0
) -> CanaryResult:
    return CanaryResult(photographs=100, failed=failed, accuracy=accuracy, mean_ms=mean_ms, memory_mb=mb)


def planned(accuracy: float | None = None, mean_ms: float | None = None) -> PlannedFamily:
    return PlannedFamily(bundle=ENTRY, models=("small",), accuracy=accuracy, mean_ms=mean_ms)


@pytest.mark.parametrize(
    ("plan", "before", "after", "word"),
    [
        # 0.745 of 100 varies by 0.0436: 2.33 of these are 0.1016, so that 0.70 may be chance and 0.69 is not.
        (planned(), result(), result(accuracy=0.70), None),
        (planned(), result(), result(accuracy=0.69), "the accuracy is"),
        (planned(accuracy=0.7), result(), result(accuracy=0.65), None),
        (planned(accuracy=0.9), None, result(accuracy=0.8), "the accuracy is"),
        (planned(), result(), result(mean_ms=21.0), "takes"),
        (planned(mean_ms=15.0), result(mean_ms=1.0), result(mean_ms=21.0), None),
        (planned(), result(failed=1), result(failed=2), "no answer"),
        (planned(), None, result(accuracy=None, mean_ms=51.0, mb=99.0), "deadline_ms"),
    ],
)
def test_it_is_worse_by_more_than_chance_and_than_the_plan_expects(
    plan: PlannedFamily, before: CanaryResult | None, after: CanaryResult, word: str | None
) -> None:
    said = Canary(Path("/nonexistent"), most_memory_mb=100.0, deadline_ms=50.0).worse(plan, before, after)
    assert said is None if word is None else said is not None and word in said
