"""The paper's policy that sends to an edge what the models here are likely to get wrong; the area under a curve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.area import area_under_curve
from calibration.papers.multiplexer.edge import Margin, MultiplexerEdge, fit_most, fitted, taught
from calibration.papers.multiplexer.local import refits
from jetsel.base.errors import EngineDiedError, ModelUnavailableError
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.multiplexer import STATISTICS, Readout, table_inputs
from jetsel.policies.policy import Evidence, Steps
from jetsel.policies.registry import KIND
from tests.unit.calibrate.recorded import drawn
from tests.unit.policies.stepping import ended, said

PHOTO = Evidence(None, "m")
GONE = ModelUnavailableError("gone")


@dataclass(frozen=True, eq=False)
class Fixed(Readout):
    """A readout of the statistics alone that says the same of every image."""

    said: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """It has but one array."""

    def chances(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Whatever the answer was."""
        assert inputs.shape[-1] == STATISTICS
        return np.array(self.said)


def edge(*chances: float, **change: Any) -> MultiplexerEdge:
    """S and m are here, and l is at the edge; an image stays for a chance of at most 0.1 less."""
    readout = Fixed({"mean": np.zeros(STATISTICS, np.float32)}, chances)
    return replace(MultiplexerEdge(readout, ("s", "m"), "l", Margin(1, 0.1)), **change)


def after_s(policy: MultiplexerEdge) -> tuple[Steps, Any]:
    """The policy once s ran, and what it does then: a Run or a Decision."""
    steps = policy(PHOTO)
    assert next(steps).models == ("s",)
    try:
        return steps, steps.send((said("s", 0.6),))
    except StopIteration as stop:
        return steps, stop.value


def test_only_what_the_device_is_likely_to_get_wrong_is_sent() -> None:
    _, decision = after_s(edge(0.75, 0.5, 0.8))
    assert decision.prediction.model == "s", "it ran already, and no second time"
    steps, run = after_s(edge(0.5, 0.6, 0.8))
    assert (run.models, run.until) == (("l",), "deadline")
    assert "a probability of 0.60, l with 0.80" in ended(steps, said("l", 0.9)).because
    steps, run = after_s(edge(0.5, 0.75, 0.8))
    assert run.models == ("m",)
    assert ended(steps, said("m", 0.9)).prediction.model == "m"


def test_what_fails_at_the_edge_or_here_is_answered_by_another_model() -> None:
    steps, _ = after_s(edge(0.5, 0.6, 0.8))
    assert steps.throw(EngineDiedError("the link is cut")).models == ("m",)
    assert "l did not answer" in ended(steps, said("m", 0.6)).because
    steps = edge(0.5, 0.6, 0.8)(PHOTO)
    next(steps)
    assert steps.throw(GONE).models == ("m",)
    assert ended(steps, said("m", 0.6)).prediction.model == "m"


@pytest.mark.parametrize(
    ("behind", "here", "there", "most"),
    [
        # Staying gains 0, -1 and +1 together, 0 and -1: after four as many are right as at the edge.
        ([-0.2, 0.1, 0.1, 0.3, 0.5], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1], 0.3),
        ([0.3, 0.1], [1, 1], [1, 0], 0.3),  # in whatever order they come
        ([0.1, 0.3], [0, 0], [1, 1], -2.0),
    ],
)
def test_as_little_is_sent_as_keeps_the_accuracy_of_the_edge(
    behind: Sequence[float], here: Sequence[int], there: Sequence[int], most: float
) -> None:
    assert fit_most(np.array(behind), np.array(here, bool), np.array(there, bool)) == most


def test_replayed_it_runs_what_its_margin_says_of_the_network_s_chances() -> None:
    """The last model of a recording stands for the edge's; the first one runs on every image."""
    fit, test = drawn(1, 300), drawn(2, 100)
    learned = taught(fit, [KIND["multiplexer"]])
    policy = fitted(learned)
    assert (policy.here, policy.away) == (("s", "m"), "l")
    said_of = policy.readout.chances(table_inputs(test.table(learned.temperatures)))
    half = float(np.median(said_of[:, 2] - said_of[:, :2].max(axis=1)))
    policy = replace(policy, margin=Margin(1, half))
    run = replay_all(policy, test, range(100), learned.temperatures, "m")
    for row in range(100):
        seen = test.prediction("s", row, learned.temperatures["s"])
        chances = policy.readout.chances_after(seen)
        stays = policy.margin.stays(chances[:2].max(), chances[2])
        assert run.ran[row].tolist() == [True, bool(stays and chances[1] > chances[0]), not stays]
    assert 0 < run.ran[:, 2].sum() < 100, "some images are sent, and some stay"


def test_refits_tell_the_spread_of_what_stays_and_what_the_local_confidence_keeps() -> None:
    rows = [row.split(" | ") for row in refits(taught(drawn(1, 300), [KIND["multiplexer"]]))]
    assert [row[:2] for row in rows[:2]] == [
        ["s", "the chance here, as folds choose"],
        ["s", "its own confidence, once it ran"],
    ]
    assert len(rows) == 4
    for row in rows:
        mean, low, high = map(int, re.findall(r"\d+", row[2]))
        assert 0 <= low <= mean <= high <= 100
        assert low < high
        assert -5 < float(row[3]) < 5


@pytest.mark.parametrize(
    ("right", "said", "area"),
    [
        ([True, True, False, False], [0.9, 0.6, 0.7, 0.1], 0.75),  # of four pairs one stands the wrong way round
        ([True, False, False], [0.5, 0.5, 0.1], 0.75),  # a tie counts half
        ([True, False], [0.5, 0.5], 0.5),
    ],
)
def test_the_area_under_the_curve_counts_pairs(right: list[bool], said: list[float], area: float) -> None:
    assert area_under_curve(np.array(right), np.array(said)) == pytest.approx(area)


def test_of_photographs_that_are_all_right_no_area_is_told() -> None:
    assert area_under_curve(np.ones(3, bool), np.arange(3.0)) is None
