"""Table I: how many images stay on the device at the edge's accuracy, and what a mean image takes then."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.papers.multiplexer.edge import Margin, Taught, fit_margin, fit_most, fitted
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.multiplexer import NAME, table_inputs

PAPER = 68.0
REFITS, SEED = 200, 2020
LOST = 0.005  # of right answers: what a threshold may lose beside the edge's model


def chances_of(learned: Taught, test: Recording) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """Return what the multiplexer says of the images that it was fitted on, held out, and of others: (n, m) each."""
    mux = learned.policies[NAME]
    return mux.held_out, mux.readout.chances(table_inputs(test.table(learned.temperatures)))


def local(learned: Taught, test: Recording) -> list[str]:
    """Return rows for each model here, the most expensive being the edge's: what stays here, and is right.

    Thresholds are fitted on the images of `learned`. Beside the multiplexer, by both orderings and by the one that
    folds choose, stands the model's own confidence, for which it runs on every image.
    """
    rows, fit = [], learned.train
    known, due = chances_of(learned, test)
    confident = [one.confidences(learned.temperatures).astype(np.float64) for one in (fit, test)]
    for place, name in enumerate(fit.models[:-1]):
        ours, theirs = (fit.right[:, one] for one in (place, -1))
        margins = {
            "the edge's chance less the one here": Margin(1, fit_most(known[:, -1] - known[:, place], ours, theirs)),
            "the chance here alone": Margin(0, fit_most(-known[:, place], ours, theirs)),
        }
        chosen, _ = fit_margin(known[:, place], known[:, -1], ours, theirs)
        for words, margin in margins.items():
            mark = ", which folds choose" if margin.weight == chosen.weight else ""
            rows.append(_row(name, f"{words}{mark}", margin.stays(due[:, place], due[:, -1]), test, place))
        most = fit_most(-confident[0][:, place], ours, theirs)
        rows.append(_row(name, "its own confidence, once it ran", -confident[1][:, place] <= most, test, place))
    return rows


def refits(learned: Taught) -> list[str]:
    """Return two rows for each model here: what stays if the threshold is fitted on half of the images, 200 times.

    The other half judges. The network stays the same: what it says of its own images is held out.
    """
    fit, known = learned.train, learned.policies[NAME].held_out
    confident, draw = fit.confidences(learned.temperatures).astype(np.float64), np.random.default_rng(SEED)
    halves = [draw.permutation(len(known)) < len(known) // 2 for _ in range(REFITS)]
    rows = []
    for place, name in enumerate(fit.models[:-1]):
        here, edge = fit.right[:, place], fit.right[:, -1]
        stays: dict[str, list[tuple[float, float]]] = {
            "the chance here, as folds choose": [],
            "its own confidence, once it ran": [],
        }
        for half in halves:
            margin, _ = fit_margin(known[half, place], known[half, -1], here[half], edge[half])
            most = fit_most(-confident[half, place], here[half], edge[half])
            kept = margin.stays(known[:, place], known[:, -1]), -confident[:, place] <= most
            for found, one in zip(stays.values(), kept, strict=True):
                gain = (one & ~half) * (here.astype(float) - edge)
                found.append((one[~half].mean(), gain.sum() / (~half).sum()))
        for words, draws in stays.items():
            shares, gains = np.array(draws).T
            low, high = np.quantile(shares, (0.05, 0.95))
            rows.append(
                f"{name} | {words} | {100 * shares.mean():.0f} % ({100 * low:.0f} to {100 * high:.0f}) | "
                f"{100 * gains.mean():+.2f} | {100 * (gains < -LOST).mean():.0f} %"
            )
    return rows


def replayed(learned: Taught, test: Recording) -> list[str]:
    """Return a row for the policy that may answer by any model here, replayed as a daemon would run it."""
    policy = fitted(learned)
    run = replay_all(policy, test, range(len(test.classes)), learned.temperatures, policy.here[-1])
    stays, right = ~run.ran[:, -1], run.answered == test.classes
    return [f"{', '.join(policy.here)} | {_shares(stays, right, test)}"]


def _row(name: str, reader: str, stays: NDArray[np.bool_], test: Recording, place: int) -> str:
    here, edge = (test.right[:, one] for one in (place, -1))
    return f"{name} | {reader} | {_shares(stays, np.where(stays, here, edge), test)}"


def _shares(stays: NDArray[np.bool_], right: NDArray[np.bool_], test: Recording) -> str:
    gain, low, high = bootstrap(right.astype(float) - test.right[:, -1])
    share, share_low, share_high = bootstrap(stays.astype(float))
    return (
        f"{share:.1f} % ({share_low:.1f} to {share_high:.1f}) | {100 * right.mean():.2f} | "
        f"{gain:+.2f} ({low:+.2f} to {high:+.2f})"
    )


def tables_i_and_ii(learned: Taught, test: Recording, operations: Mapping[str, int]) -> list[str]:
    """Return rows of what a mean image takes, in G multiply-accumulates and ms, as Tables I and II have it.

    operations: multiply-accumulates of each model. The cheapest model, which the multiplexer reads, runs on every image
    and is counted once.
    """
    rows, names = [], test.models
    known, due = chances_of(learned, test)
    units = np.array([[operations[name] / 1e9 for name in names], test.costs("time")])
    right = learned.train.right
    for place, name in list(enumerate(names[:-1]))[1:]:
        margin, _ = fit_margin(known[:, place], known[:, -1], right[:, place], right[:, -1])
        share = float(margin.stays(due[:, place], due[:, -1]).mean())
        mean = units[:, 0] + share * units[:, place] + (1 - share) * units[:, -1]
        rows.append(_mean(f"I: {name} here, {names[-1]} at the edge | {100 * share:.1f} %", mean, units[:, -1]))
    called = np.bincount(due.argmax(axis=1), minlength=len(names)) / len(due)
    mean = units[:, 0] + called[1:] @ units[:, 1:].T
    words = ", ".join(f"{name} {100 * share:.1f} %" for name, share in zip(names, called, strict=True))
    rows.append(_mean(f"II: the argmax calls {words} | ", mean, units[:, -1]))
    return rows


def _mean(words: str, mean: NDArray[np.float64], largest: NDArray[np.float64]) -> str:
    return f"{words} | {mean[0]:.3f} | {mean[0] / largest[0]:.2f} | {mean[1]:.2f} | {mean[1] / largest[1]:.2f}"


def figure_1(test: Recording) -> list[str]:
    """Return the matrix of Figure 1: the percentage that a row's model gets right and a column's does not."""
    right = test.right
    return [
        f"{name} | " + " | ".join(f"{100 * (right[:, a] & ~right[:, b]).mean():.1f}" for b in range(len(test.models)))
        for a, name in enumerate(test.models)
    ]
