"""The daemon's own driver, admission and pace on a virtual clock: what they do under load, to the millisecond."""

import numpy as np

from benchmarks.arrivals import stepped
from benchmarks.simulated import Device, Request, Simulation, Times
from benchmarks.step import steps
from jetsel.policies.front import Front, Point
from jetsel.policies.single import Single

MODELS_MS = {"l": 10.0, "m": 5.0, "s": 2.0}
ACCURACY = {"l": 0.8, "m": 0.75, "s": 0.7}
FRONT = Front(
    tuple(Point(Single(name), ACCURACY[name], ms, {name: 1.0}, 0.0, None) for name, ms in MODELS_MS.items()), 2
)
DEVICE = Device({name: np.zeros((1, 2), np.float32) for name in MODELS_MS}, {}, Times(0.2, 1.5, MODELS_MS), workers=2)
BEST_HZ = 2 / 0.0117  # of l on two workers
TARGET_MS = 100.0


def answered(loads: list[float], each_s: float) -> list[Request]:
    due_s = stepped([load * BEST_HZ for load in loads], each_s, np.random.default_rng(1))
    found = Simulation(DEVICE, FRONT, TARGET_MS, 1).answer(due_s.tolist(), [0] * len(due_s))
    return [request for request in found if request.decision is not None]


def cost_ms(request: Request) -> float:
    return MODELS_MS[request.policy.models[0]]


def test_with_more_load_answers_get_cheaper_and_not_later() -> None:
    means_ms, late = [], []
    for load in (0.5, 1.5, 3.0, 5.0):
        found = answered([load], 5.0)
        means_ms.append(np.mean([cost_ms(request) for request in found]))
        took_ms = [(request.ended_s - request.due_s) * 1e3 for request in found]
        late.append(np.percentile(took_ms, 99))
    assert means_ms[0] > 9.9
    assert means_ms == sorted(means_ms, reverse=True)
    assert max(late) < 1.5 * TARGET_MS


def test_a_step_is_followed_within_a_second_and_without_swings() -> None:
    found = answered([0.5, 3.0, 0.5], 4.0)
    up, down = steps([request.due_s for request in found], [cost_ms(request) for request in found], 4.0, 3)
    assert max(up.settled_s, down.settled_s) <= 1.0
    assert max(up.turns, down.turns) <= 1
