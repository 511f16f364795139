"""Admission by requests, bytes and deadlines."""

from __future__ import annotations

import threading

import pytest

from jetsel.config import Server
from jetsel.daemon.admission import Admission
from jetsel.errors import BusyError, DeadlineError


def admission(workers: int = 2, **limits: float) -> Admission:
    return Admission(Server(**limits), workers)  # type: ignore[arg-type]


def counts(found: Admission) -> tuple[int, int]:
    return found.in_queue, found.queued_bytes


def test_requests_are_admitted_up_to_the_limit_and_again_when_one_has_left() -> None:
    found = admission(queue_requests=3)
    for _ in range(3):
        found.admit(10, None, 0.0)
    with pytest.raises(BusyError, match=r"3 requests, 0\.0 MB.*server\.queue_requests"):
        found.admit(10, None, 0.0)
    assert counts(found) == (3, 30)
    found.release(10, 1.0)
    found.admit(10, None, 0.0)
    assert counts(found) == (3, 30)


def test_bytes_are_admitted_up_to_the_limit() -> None:
    found = admission(queue_mb=1.0)
    found.admit(600_000, None, 0.0)
    found.admit(400_000, None, 0.0)
    with pytest.raises(BusyError, match=r"1\.0 MB"):
        found.admit(1, None, 0.0)
    found.admit(0, None, 0.0)
    assert counts(found) == (3, 1_000_000)


def test_who_is_refused_takes_no_room() -> None:
    found = admission(queue_mb=1.0)
    with pytest.raises(BusyError):
        found.admit(1_000_001, None, 0.0)
    with pytest.raises(DeadlineError):
        found.admit(10, 5.0, 5.1)
    assert counts(found) == (0, 0)


def test_a_deadline_below_the_least_inference_is_refused_and_one_at_it_is_not() -> None:
    found = admission()
    with pytest.raises(DeadlineError, match=r"within 5 ms: 0\.0 ms of waiting and at least 5\.1 ms of inference"):
        found.admit(10, 5.0, 5.1)
    found.admit(10, 5.0, 5.0)
    assert counts(found) == (1, 10)


def test_the_waiting_ahead_counts_against_a_deadline() -> None:
    found = admission(workers=2)
    found.admit(0, None, 0.0)
    found.release(0, 10.0)  # a request keeps a worker 10 ms
    for _ in range(5):
        found.admit(0, None, 0.0)
    # Five are ahead on two workers: two rounds, so 20 ms of waiting, and 3 ms of inference after it.
    with pytest.raises(DeadlineError, match=r"20\.0 ms of waiting"):
        found.admit(0, 22.9, 3.0)
    found.admit(0, 23.0, 3.0)
    # Now six are ahead: three rounds.
    with pytest.raises(DeadlineError, match=r"30\.0 ms of waiting"):
        found.admit(0, 32.9, 3.0)
    assert found.in_queue == 6


def test_with_nobody_ahead_nothing_is_waited_for() -> None:
    found = admission(workers=1)
    found.admit(0, None, 0.0)
    found.release(0, 1000.0)
    found.admit(0, 1.0, 0.5)


def test_the_time_of_a_request_follows_slowly_and_failures_do_not_move_it() -> None:
    found = admission(workers=1)
    for work_ms in (10.0, 30.0, None):  # the first counts whole, then a twentieth of the difference: 11 ms
        found.admit(0, None, 0.0)
        found.release(0, work_ms)
    found.admit(0, None, 0.0)
    with pytest.raises(DeadlineError, match=r"11\.0 ms of waiting"):
        found.admit(0, 10.9, 0.0)
    found.admit(0, 11.1, 0.0)


def test_busy_comes_before_deadline() -> None:
    found = admission(queue_requests=1)
    found.admit(0, None, 0.0)
    with pytest.raises(BusyError):
        found.admit(0, 1.0, 5.0)


def test_many_threads_leave_nothing_behind_and_never_pass_the_limit() -> None:
    found = admission(queue_requests=3)
    most: list[int] = []
    refused: list[str] = []

    def ask() -> None:
        try:
            found.admit(7, None, 0.0)
        except BusyError as error:
            refused.append(error.code)
        else:
            most.append(found.in_queue)
            found.release(7, 0.1)

    def work() -> None:
        for _ in range(500):
            ask()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(found) == (0, 0)
    assert max(most) <= 3
    assert len(most) + len(refused) == 3000
    assert set(refused) <= {"busy"}
