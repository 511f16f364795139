"""The program against trying everything: the same value, on instances drawn by a seed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jetsel.fleet.manager.solving import TIE, Options, Room, solve

FAMILIES = 2


def drawn(seed: int) -> tuple[list[Options], Room]:
    """Two families of three models that share a backbone, and limits that some of the choices keep."""
    draw = np.random.default_rng(seed)
    families = []
    for family in range(FAMILIES):
        names = [f"m{number}" for number in range(3)]
        models = [c for count in (1, 2, 3) for c in itertools.combinations(names, count)]
        n = len(models)
        bytes_of = {f"{family}-{name}": int(size) for name, size in zip(names, draw.integers(1, 100, 3), strict=True)}
        families.append(
            Options(
                share=(0.7, 0.3)[family],
                rate_hz=float(draw.uniform(1, 100)),
                models=models,
                accuracy=draw.uniform(0.3, 0.9, n),
                ms=draw.uniform(1, 20, n),
                mj=draw.uniform(1, 20, n),
                memory_mb=draw.uniform(1, 20, n),
                files=[
                    {f"{family}-{name}": bytes_of[f"{family}-{name}"] for name in c} | {"backbone": 50} for c in models
                ],
                always={f"table-{family}": 5},
            )
        )
    room = Room(float(draw.integers(80, 300)), float(draw.uniform(8, 30)), float(draw.uniform(0.1, 2)), 1.0)
    return families, room


def value(families: list[Options], room: Room, rows: tuple[int, ...]) -> float | None:
    """What a choice is worth, None where it keeps the limits not: time goes first to whom it is worth most."""
    chosen = list(zip(families, rows, strict=True))
    files = {sha: size for one, row in chosen for held in (one.always, one.files[row]) for sha, size in held.items()}
    watts = sum(one.rate_hz * one.mj[row] / 1e3 for one, row in chosen)
    if sum(files.values()) > room.storage_bytes or sum(one.memory_mb[row] for one, row in chosen) > room.memory_mb:
        return None
    if watts > room.watts:
        return None
    left, right = room.busy, 0.0
    for one, row in sorted(
        chosen, key=lambda each: -each[0].share * each[0].accuracy[each[1]] / (each[0].rate_hz * each[0].ms[each[1]])
    ):
        served = min(1.0, left / (one.rate_hz * one.ms[row] / 1e3))
        left -= served * one.rate_hz * one.ms[row] / 1e3
        right += one.share * one.accuracy[row] * served
    return float(right)


@pytest.mark.parametrize("first", [0, 40])
def test_nothing_is_worth_more_than_what_is_chosen(first: int) -> None:
    outcomes = set()
    for seed in range(first, first + 40):
        families, room = drawn(seed)
        tried = [
            value(families, room, rows) for rows in itertools.product(*(range(len(one.models)) for one in families))
        ]
        known = [one for one in tried if one is not None]
        chosen = solve(families, room)
        outcomes.add(chosen is None)
        if chosen is None:
            assert not known
        else:
            assert (
                chosen.accuracy
                == value(families, room, chosen.rows)
                == pytest.approx(max(known), abs=3 * FAMILIES * TIE)
            )
    assert outcomes == {True, False}


def test_of_equal_choices_the_smaller_and_faster_is_taken() -> None:
    options = Options(
        share=1.0,
        rate_hz=None,
        models=[("large",), ("small",)],
        accuracy=np.array([0.5, 0.5]),
        ms=np.array([2.0, 1.0]),
        mj=None,
        memory_mb=np.array([1.0, 1.0]),
        files=[{"a": 200}, {"b": 100}],
        always={},
    )
    for room in (Room(), Room(storage_bytes=150.0)):
        chosen = solve([options], room)
        assert chosen is not None
        assert chosen.rows == (1,)
