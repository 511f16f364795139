"""Admission by requests, bytes, pixels and deadlines, of all clients and of each; and the pace that it allows."""

import logging
import os

import pytest

from jetsel.base.config import ServerSettings
from jetsel.base.errors import BusyError, DeadlineError, ImageTooLargeError, OverLimitError
from jetsel.daemon.admission import FORGET_S, Admission, Load, Work
from jetsel.daemon.pace import ALERT_S, PointsUsed, allowed_ms
from tests.unit.runtime.driving import Clock


def admission(workers: int = 2, **limits: float) -> Admission:
    return Admission(ServerSettings(**limits), workers)  # type: ignore[arg-type]


def took(models_ms: float = 1.0, limit_share: float | None = None) -> Work:
    return Work(models_ms, models_ms, limit_share)


def load(size_bytes: int = 0, pixels: int = 0, client: str = "uid 0") -> Load:
    return Load(client, size_bytes, pixels)


def counts(found: Admission) -> tuple[int, int]:
    return found.in_queue, found.queued_bytes


@pytest.mark.parametrize(
    ("limits", "each", "words"),
    [
        ({"queue_requests": 3}, load(10), r"3 requests, 0\.0 MB.*server\.queue_requests"),
        ({"queue_mb": 30.0}, load(10_000_000), r"30\.0 MB.*server\.queue_mb"),
        ({"queue_megapixels": 9.0}, load(10, 3_000_000), r"9\.0 megapixels.*server\.queue_megapixels"),
    ],
    ids=["requests", "bytes", "pixels"],
)
def test_requests_are_admitted_up_to_each_limit_and_again_when_one_has_left(
    limits: dict[str, float], each: Load, words: str
) -> None:
    found = admission(**limits)
    for _ in range(3):
        found.admit(each, None, 0.0)
    with pytest.raises(BusyError, match=words):
        found.admit(each, None, 0.0)
    found.release(each, took())
    found.admit(each, None, 0.0)
    assert (*counts(found), found.queued_pixels) == (3, 3 * each.size_bytes, 3 * each.pixels)


def test_the_waiting_ahead_counts_against_a_deadline() -> None:
    found = admission(workers=2)
    found.admit(load(0), None, 0.0)
    found.release(load(0), took(10.0))  # a request keeps a worker 10 ms
    for _ in range(5):
        found.admit(load(0), None, 0.0)
    # Five are ahead on two workers: four of them before one is free, so 20 ms, and 3 ms of inference after it.
    with pytest.raises(DeadlineError, match=r"queue 20\.0 ms"):
        found.admit(load(0), 22.9, 3.0)
    found.admit(load(0), 23.0, 3.0)
    with pytest.raises(DeadlineError, match=r"queue 25\.0 ms"):  # now six are
        found.admit(load(0), 27.9, 3.0)
    assert found.in_queue == 6


def test_the_time_of_a_request_follows_slowly_and_failures_do_not_move_it() -> None:
    found = admission(workers=1)
    for work in (took(10.0), took(30.0), None):  # the first counts whole, then a twentieth of the difference: 11 ms
        found.admit(load(0), None, 0.0)
        found.release(load(0), work)
    found.admit(load(0), None, 0.0)
    with pytest.raises(DeadlineError, match=r"queue 11\.0 ms"):
        found.admit(load(0), 10.9, 0.0)
    found.admit(load(0), 11.1, 0.0)


def test_a_target_is_kept_by_refusals_where_even_the_cheapest_would_come_late() -> None:
    found = admission(workers=1)
    for _ in range(4):
        found.admit(load(0), None, 0.0)
    found.release(load(0), took(10.0))
    # Three are ahead, 10 ms each as they come, and 2 ms each at the cheapest operating point.
    with pytest.raises(BusyError, match=r"latency target of 20 ms .*queue 30\.0 ms.*least_accuracy"):
        found.admit(load(0), None, 2.0, target_ms=20.0)
    found.admit(load(0), None, 2.0, target_ms=20.0, adapts=True)
    with pytest.raises(DeadlineError, match="within 5 ms"):
        found.admit(load(0), 5.0, 2.0, target_ms=20.0, adapts=True)


def test_what_a_worker_does_beside_the_models_is_what_passes_between_answers_while_it_always_has_work() -> None:
    now = Clock()
    found = Admission(ServerSettings(queue_requests=200), 1, now)
    for _ in range(200):
        found.admit(load(0), None, 0.0)
    for _ in range(199):
        now.now_s += 0.010
        found.release(load(0), Work(5.0, 4.0))
    assert found.overhead_ms == pytest.approx(6.0, rel=0.01), "1 ms is in the stages, 5 ms are not"
    found.release(load(0), None)
    now.now_s += 60.0
    found.admit(load(0), None, 0.0)
    found.release(load(0), Work(5.0, 4.0))
    assert found.overhead_ms < 6.0, "a pause is nobody's work"


@pytest.mark.parametrize(("late", "is_kept_free"), [(0.0, False), (0.08, False), (0.25, True)])
def test_more_of_a_limit_is_kept_free_while_more_than_one_answer_in_ten_comes_late(
    late: float, is_kept_free: bool
) -> None:
    found = admission(workers=1)
    for number in range(1000):
        found.admit(load(0), None, 0.0)
        is_late = int(number * late) != int((number + 1) * late)
        found.release(load(0), took(1.0, limit_share=1.05 if is_late else 0.5))
    found.admit(load(0), None, 0.0)  # is ahead, and takes 1 ms
    if is_kept_free:
        with pytest.raises(DeadlineError, match=r"inference 30\.0 ms, margin as answers came late"):
            found.admit(load(0), 100.0, 30.0)
        found.admit(load(0), 100.0, 28.0)
    else:
        found.admit(load(0), 100.0, 90.0)


def late_answers() -> tuple[Admission, Clock]:
    """An admission after 40 requests that took 35 ms each, 10 of them for models, and were answered late."""
    now = Clock()
    found = Admission(ServerSettings(), 2, now)
    for _ in range(40):
        found.admit(load(0), None, 0.0)
        now.now_s += 0.035
        found.release(load(0), Work(35.0, 10.0, limit_share=0.95))
    return found, now


@pytest.mark.parametrize("waits_s", [0.0, 86_400.0])
def test_a_free_worker_takes_a_request_whose_inference_fits_whatever_earlier_answers_took(waits_s: float) -> None:
    found, now = late_answers()
    now.now_s += waits_s
    with pytest.raises(BusyError, match=r"100 ms \(expected: inference 100\.1 ms\)"):
        found.admit(load(0), None, 100.1, target_ms=100.0, adapts=True)
    for _ in range(2):
        found.admit(load(0), None, 10.0, target_ms=100.0, adapts=True)
    assert found.in_queue == 2


def test_the_margin_is_forgotten_while_no_answer_has_a_limit_and_the_refusal_says_what_it_is() -> None:
    found, now = late_answers()
    for _ in range(2):
        found.admit(load(0), None, 0.0)  # without a limit: both workers are never free
    # One of the two must end before a worker is free: (25 + 10) / 2 = 17.5 ms; then 25 + 10 ms, and 70 of 100 are free.
    with pytest.raises(BusyError, match=r"queue 17\.5 ms, inference 10\.0 ms, other work 25\.0 ms, margin .* 70\.0 ms"):
        found.admit(load(0), None, 10.0, target_ms=100.0, adapts=True)
    now.now_s += FORGET_S  # 25.8 ms of the margin are left
    found.admit(load(0), None, 10.0, target_ms=100.0, adapts=True)


def test_what_no_queue_can_hold_is_not_to_be_sent_again() -> None:
    found = admission(queue_megapixels=10.0, queue_mb=1.0)
    for too_large in (load(pixels=10_000_001), load(1_000_001)):
        with pytest.raises(ImageTooLargeError, match=r"fewer boxes .*server\.queue_megapixels") as caught:
            found.admit(too_large, None, 0.0)
        assert not caught.value.retry
    found.admit(load(1_000_000, 10_000_000), None, 0.0)


def test_a_box_that_follows_counts_nothing_and_its_wait_so_far_is_part_of_its_limit() -> None:
    found = admission(workers=1, queue_requests=1)
    found.admit(load(10, 100), 50.0, 5.0)
    found.admit(None, 50.0, 5.0, waited_ms=45.0)
    with pytest.raises(DeadlineError, match=r"within 50 ms \(expected: queue 45\.1 ms, inference 5\.0 ms\)"):
        found.admit(None, 50.0, 5.0, waited_ms=45.1)
    found.release(None, took())
    assert counts(found) == (1, 10)
    found.release(load(10, 100), took())
    assert (counts(found), found.queued_pixels) == ((0, 0), 0)


@pytest.mark.parametrize(
    ("limits", "most"),
    [({"queue_requests": 8, "client_requests": 2}, 2), ({"queue_requests": 10}, 5)],
    ids=["as configured", "half of the queue"],
)
def test_a_client_at_its_limit_is_refused_and_the_next_client_is_not(limits: dict[str, float], most: int) -> None:
    found = admission(**limits)
    for _ in range(most):
        found.admit(load(client="uid 1"), None, 0.0)
    with pytest.raises(OverLimitError, match=rf"uid 1 has {most} requests.*limit is {most} .*server\.client_requests"):
        found.admit(load(client="uid 1"), None, 0.0)
    found.admit(load(client="uid 2"), None, 0.0)
    assert found.in_queue == most + 1
    found.release(load(client="uid 1"), None)
    found.admit(load(client="uid 1"), None, 0.0)


@pytest.mark.parametrize("who", ["uid 0", f"uid {os.getuid()}"])
def test_root_and_the_daemons_own_user_may_fill_the_queue_unless_a_limit_is_configured(who: str) -> None:
    found, limited = admission(queue_requests=10), admission(client_requests=1)
    for _ in range(10):
        found.admit(load(client=who), None, 0.0)
    limited.admit(load(client=who), None, 0.0)
    with pytest.raises(OverLimitError):
        limited.check(load(client=who))


def test_half_of_the_target_is_shared_among_all_that_wait_less_what_is_done_around_the_models() -> None:
    assert allowed_ms(100.0, 1, 1, 3.0) == pytest.approx(47.0)
    assert allowed_ms(100.0, 10, 2, 3.0) == pytest.approx(7.0)
    assert allowed_ms(100.0, 1000, 2, 3.0) < 0


def used(points: PointsUsed, begin_s: int, end_s: int, *, cheapest: bool = True) -> None:
    for now_s in range(begin_s, end_s):
        points.count_answer("cascade:9" if cheapest else "cascade", is_cheapest=cheapest, now_s=float(now_s))


def test_five_minutes_at_the_cheapest_point_are_told_once_and_again_after_a_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    points, alert_s = PointsUsed("cats"), int(ALERT_S)
    used(points, 0, alert_s)
    assert caplog.messages == []
    used(points, alert_s, 2 * alert_s)
    assert len(caplog.messages) == 1
    assert "cats has been at its cheapest operating point" in caplog.messages[0]
    assert points.cheapest_s(2.0 * alert_s) == 2 * alert_s
    used(points, 2 * alert_s, 2 * alert_s + 60, cheapest=False)
    assert points.cheapest_s(2.0 * alert_s + 60) == 0.0
    used(points, 2 * alert_s + 60, 3 * alert_s + 62)
    assert len(caplog.messages) == 2
    assert points.answers() == {"cascade:9": 3 * alert_s + 2, "cascade": 60}
