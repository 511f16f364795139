"""Chooses the cascades of one device: a mixed-integer program, solved to the optimum by HiGHS (scipy's `milp`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

TIE = 1e-6
"""Cost of all files and of the slowest cascade, in shares of right answers, so that of equal plans the smaller wins."""

_SCALE = 1e3  # HiGHS stops within 1e-6 of the optimum
_NOTHING = 1e-9  # replaces a limit of zero or less


@dataclass(frozen=True, eq=False)
class CascadeOptions:
    """The c cascades that a family offers to one device.

    share: of the device's answers. rate_hz: of its requests, None if unknown. models: of each cascade. accuracy: (c,)
    share of answers that are right and in time. ms: (c,) mean time of an answer. mj: (c,) mean energy above idle power,
    None if unknown. memory_mb: (c,). files: sizes by SHA-256 of each cascade's models. always: of the files for every
    device.
    """

    share: float
    rate_hz: float | None
    models: Sequence[tuple[str, ...]]
    accuracy: NDArray[np.float64]
    ms: NDArray[np.float64]
    mj: NDArray[np.float64] | None
    memory_mb: NDArray[np.float64]
    files: Sequence[Mapping[str, int]]
    always: Mapping[str, int]

    def with_rows(self, rows: NDArray[np.int64]) -> CascadeOptions:
        """Return the options with only these rows."""
        return replace(
            self,
            models=[self.models[row] for row in rows],
            accuracy=self.accuracy[rows],
            ms=self.ms[rows],
            mj=None if self.mj is None else self.mj[rows],
            memory_mb=self.memory_mb[rows],
            files=[self.files[row] for row in rows],
        )


@dataclass(frozen=True)
class Capacity:
    """What a device has for all families together; None: no limit. watts: above idle. busy: share of its time."""

    storage_bytes: float | None = None
    memory_mb: float | None = None
    watts: float | None = None
    busy: float | None = None


@dataclass(frozen=True)
class Selection:
    """The chosen cascade of each family, in the order of the families that `solve` receives."""

    rows: tuple[int, ...]  # indices of the cascades in CascadeOptions.models
    served: tuple[float, ...]  # share of the family's requests that is served
    accuracy: float  # share of all requests that get a right answer in time


def solve(families: Sequence[CascadeOptions], room: Capacity) -> Selection | None:
    """Return the choice with the most answers that are right and in time; None if nothing fits.

    Variables: x_c is 1 for the chosen cascade c of a family; y_f is 1 for each file f of a chosen cascade, so that
    shared files count once; z_c <= x_c is the share of requests that are served. Objective: the largest sum of share *
    accuracy_c * z_c, minus TIE. Limits: sum of bytes_f * y_f <= storage, of memory_c * x_c <= memory, of rate *
    energy_c * x_c <= watts, and of rate * time_c * z_c <= time, since one request is served at a time. Requests without
    time left count as wrong.
    """
    if not all(len(one.models) for one in families):
        return None
    problem = _Problem(families, room)
    rows = problem.best_without_sharing()
    if rows is None:
        return None
    if problem.keeps_limits(rows):
        return problem.selection(rows, np.ones(len(rows)))
    solution = problem.solve_program()
    return None if solution is None else problem.selection(*solution)


class _Problem:
    """The program as arrays over n cascades of all families and f files; its columns are x (n), z (n) and y (f).

    (n,): _family, its index; _value, share * accuracy; _slow, its cost among equal values; _fits, whether it keeps each
    limit alone. _uses: (n, f) 1 if the cascade needs the file. (f,): _file_bytes; _always, 1 if every device needs it.
    _limits: pairs of each column's use of a limit, as a share of it, and the block (0: x, 1: z, 2: y) of the columns.
    """

    def __init__(self, families: Sequence[CascadeOptions], room: Capacity) -> None:
        sizes = [len(one.models) for one in families]
        self._family = np.repeat(range(len(families)), sizes)
        self._begins = np.cumsum([0, *sizes[:-1]])
        files: dict[str, int] = {}
        for one in families:
            for held in (one.always, *one.files):
                files |= held
        self._file_bytes = np.array([*files.values()], float)
        self._uses = np.array([[sha in held for sha in files] for one in families for held in one.files], float)
        self._always = np.array([any(sha in one.always for one in families) for sha in files], float)
        ms = np.concatenate([one.ms for one in families])
        rate = np.repeat([one.rate_hz or 0.0 for one in families], sizes)
        mj = np.concatenate([np.zeros(len(one.models)) if one.mj is None else one.mj for one in families])
        self._value = np.concatenate([one.share * one.accuracy for one in families])
        self._slow = TIE * ms / ms.max()
        limits = (
            (np.concatenate([one.memory_mb for one in families]), 0, room.memory_mb),
            (rate * mj / 1e3, 0, room.watts),
            (rate * ms / 1e3, 1, room.busy),
            (self._file_bytes, 2, room.storage_bytes),
        )
        self._limits = [(sums / max(most, _NOTHING), block) for sums, block, most in limits if most is not None]
        self._fits = np.ones(len(self._value), bool)  # cascades that keep each limit if all other families are empty
        for sums, block in self._limits:
            if block != 1:
                self._fits &= (sums if block == 0 else np.maximum(self._uses, self._always) @ sums) <= 1.0

    def best_without_sharing(self) -> NDArray[np.int64] | None:
        """Return the best row of each family as if it had the device to itself; None if nothing of a family fits."""
        parts = np.split(np.where(self._fits, self._value - self._slow, -np.inf), self._begins[1:])
        if any(np.isneginf(part).all() for part in parts):
            return None
        return np.array([begin + part.argmax() for begin, part in zip(self._begins, parts, strict=True)])

    def keeps_limits(self, rows: NDArray[np.int64]) -> bool:
        x = np.isin(range(len(self._value)), rows)
        taken = (x, x, np.maximum(self._always, self._uses[rows].max(axis=0)))
        return all(sums @ taken[block] <= 1.0 for sums, block in self._limits)

    def selection(self, rows: NDArray[np.int64], served: NDArray[np.float64]) -> Selection:
        indices = tuple(int(index) for index in rows - self._begins)
        return Selection(indices, tuple(map(float, served)), float(self._value[rows] @ served))

    def solve_program(self) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the chosen rows and their z by HiGHS, None if nothing keeps the limits."""
        (n, f), families = self._uses.shape, np.unique(self._family)
        eye = np.eye(n)

        def rows_for(*blocks: NDArray[np.float64] | None) -> NDArray[np.float64]:
            """Return rows with these coefficients for x, z and y."""
            height = max(len(block) for block in blocks if block is not None)
            return np.hstack(
                [
                    np.zeros((height, width)) if block is None else block
                    for block, width in zip(blocks, (n, n, f), strict=True)
                ]
            )

        one_each = rows_for(np.equal(self._family, families[:, None]).astype(float), None, None)
        limits = [rows_for(*(sums[None] if i == block else None for i in range(3))) for sums, block in self._limits]
        held = [rows_for((self._uses * (self._family == family)[:, None]).T, None, -np.eye(f)) for family in families]
        volume = TIE * self._file_bytes / max(1.0, self._file_bytes.sum())
        result = milp(
            _SCALE * np.concatenate([self._slow, -self._value, volume]),
            integrality=np.repeat([1, 0], [n, n + f]),
            bounds=Bounds(
                np.concatenate([np.zeros(2 * n), self._always]), np.repeat([*self._fits, 1.0], [1] * n + [n + f])
            ),
            constraints=[
                LinearConstraint(one_each, 1.0, 1.0),
                LinearConstraint(np.vstack([rows_for(-eye, eye, None), *held]), -np.inf, 0.0),
                LinearConstraint(np.vstack(limits), -np.inf, 1.0),
            ],
            options={"mip_rel_gap": 0.0},
        )
        if result.x is None:
            return None
        rows = np.flatnonzero(result.x[:n] > 0.5)
        return rows, np.minimum(1.0, result.x[n + rows])
