"""A multiplexer in the driver: it runs like any model, and what it says is never the answer."""

from __future__ import annotations

import pytest

from jetsel.errors import DeadlineError, JetselError, ModelUnavailableError
from jetsel.policies import Decision, Evidence, Run
from jetsel.policies.policy import Steps
from jetsel.runtime import Driver, ModelQueue
from tests.unit.runtime.driving import Clock, TableEngine, finish, go_away, request_run


class Multiplexed:
    """Runs the model that the multiplexer names, of s and m."""

    name, models, first, features = "multiplexed", ("s", "m"), ("s", "m"), ()

    def __call__(self, photo: Evidence) -> Steps:
        (named,) = yield Run(("mux",), "says which model to run")
        (seen,) = yield Run((self.models[named.label],), "it is named")
        return Decision(seen, "it is named")


POLICY = Multiplexed()


@pytest.fixture
def choosing(engines: dict[str, TableEngine], clock: Clock) -> Driver:
    """A driver with a multiplexer that names the first model."""
    mux = ModelQueue("mux", TableEngine("mux", 3.0), chooses=True)
    return Driver({"mux": mux} | {name: ModelQueue(name, engine) for name, engine in engines.items()}, now=clock)


def test_it_is_told_of_and_is_no_escalation(choosing: Driver) -> None:
    request = request_run(POLICY)
    outcome = finish(choosing, request)
    assert isinstance(outcome, Decision)
    assert outcome.seen.model == "s"
    assert [(ran.model, ran.chooses) for ran in request.ran] == [("mux", True), ("s", False)]
    assert choosing.queues["mux"].record.counts() == (1, 0)


def test_time_that_runs_out_after_it_leaves_no_answer(choosing: Driver, clock: Clock) -> None:
    choosing.queues["s"].times_ms.extend([50.0] * 20)
    request = request_run(POLICY, clock.now_s + 0.02)
    assert isinstance(finish(choosing, request), DeadlineError)
    assert [ran.model for ran in request.ran] == ["mux"]


def test_where_the_model_that_it_names_has_died_that_is_the_outcome(
    choosing: Driver, engines: dict[str, TableEngine]
) -> None:
    go_away(engines["s"], returns=False)
    outcome = finish(choosing, request_run(POLICY))
    assert isinstance(outcome, ModelUnavailableError)


def test_it_is_not_counted_in_the_least_time_of_a_policy(choosing: Driver) -> None:
    choosing.queues["mux"].times_ms.extend([0.5])
    choosing.queues["s"].times_ms.extend([2.0])
    assert choosing.floor_ms(POLICY) == (2.0, 0.0)


def test_where_it_is_away_the_policy_hears_of_it(choosing: Driver) -> None:
    choosing.queues["mux"].engine = None
    assert isinstance(finish(choosing, request_run(POLICY)), JetselError)
