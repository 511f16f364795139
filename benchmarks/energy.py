"""How far energies are from the truth: computed, on the simulator, beside zeus. `python -m benchmarks.energy`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.activity import activity
from benchmarks.conditions import conditions
from benchmarks.energy_live import beside_zeus, live
from benchmarks.energy_score import Score, by_kind, lines, long_enough, scored
from benchmarks.power_model import (
    BUSY_W,
    IDLE_W,
    RESOLUTION_W,
    Chip,
    Deducted,
    Signal,
    constant,
    quantised,
    sampled,
    square,
)
from jetsel.power.integration import integrate

WINDOWS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.3, 3.0)
PERIODS_S = (0.002, 0.005, 0.007, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0)
RATES_HZ = (100.0, 350.0, 1000.0)
LENGTH_S = 8.0  # of each run
GOAL_S, GOAL_HZ = 0.05, 1000.0
CHIPS = {
    "140 us, all three channels: 0.84 ms": Chip(140e-6),
    "1.1 ms, as after power-on: 6.6 ms": Chip(1.1e-3),
    "140 us, 512 of them averaged: 430 ms": Chip(140e-6, averages=512),
}


def main() -> None:
    """Measure and print Markdown."""
    args = _arguments()
    draw = np.random.default_rng(args.seed)
    print("# Energy beside the truth\n")
    print("\n".join(conditions()), flush=True)
    recorded = activity(LENGTH_S, draw)
    signals = [constant(BUSY_W, LENGTH_S), *(square(period_s, LENGTH_S) for period_s in PERIODS_S), recorded]
    if "computed" in args.parts:
        for name, chip in CHIPS.items():
            print(f"\n## Computed, conversions of {name}")
            rates_hz = RATES_HZ if chip.cycle_s < 0.001 else (GOAL_HZ,)
            _print(_computed(signals, chip, rates_hz, args.runs, draw), args.every)
    if "live" in args.parts:
        print("\n## Live: simulator and sampler, processes of their own, real time")
        _print(live(recorded, RATES_HZ, WINDOWS_S, args.windows), args.every)
    if "zeus" in args.parts:
        print("\n## Beside zeus on the same simulated board")
        print("\n".join(beside_zeus(args.zeus, args.windows)), flush=True)


def _computed(
    signals: Sequence[Signal], chip: Chip, rates_hz: Sequence[float], runs: int, draw: np.random.Generator
) -> dict[tuple[str, float, float], Score]:
    """Return the scores of windows at random times; in each run the phases of chip, sampler and signal are new."""
    idle = _idle()
    scores: dict[tuple[str, float, float], Score] = {}
    for signal in signals:
        for rate_hz in rates_hz:
            for _ in range(runs):
                samples = sampled(signal, chip, rate_hz, draw)
                for length_s in WINDOWS_S:
                    score = scores.setdefault((signal.name, rate_hz, length_s), scored(length_s))
                    for begin_s in draw.uniform(0.5, LENGTH_S - 0.5 - length_s, 20):
                        begin_ns, end_ns = round(begin_s * 1e9), round((begin_s + length_s) * 1e9)
                        taken_j = np.diff(signal.energy_j(np.array([begin_ns, end_ns]) * 1e-9))[0]
                        truth_mj = 1e3 * (float(taken_j) - IDLE_W * length_s)
                        score.add(integrate(samples, begin_ns, end_ns, idle), truth_mj)
    return scores


def _idle() -> Deducted:
    """Return the idle power as the chip shows it: a constant, off by up to half a step."""
    return Deducted(float(quantised(np.array([IDLE_W]))[0]), RESOLUTION_W / 2)


def _print(scores: dict[tuple[str, float, float], Score], every: bool) -> None:
    for line in (*lines(scores if every else by_kind(scores)), *_goal(scores)):
        print(line)
    sys.stdout.flush()


def _goal(scores: dict[tuple[str, float, float], Score]) -> Iterator[str]:
    score = long_enough(scores, GOAL_HZ, GOAL_S)
    if score.truths_mj:
        yield (
            f"\nAll signals, windows of {GOAL_S * 1e3:g} ms and more, {GOAL_HZ:g} samples a second: median size of the "
            f"error {score.row()[3]} (goal: at most 2 %)."
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.energy", description=__doc__)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=["computed", "live"], help="also: zeus")
    parser.add_argument("--runs", type=int, default=30, help="of each signal and rate, 20 windows each; default: 30")
    parser.add_argument("--windows", type=int, default=20, help="live ones of each length; default: 20")
    parser.add_argument("--every", action="store_true", help="a row for each signal, not for each kind of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zeus", type=Path, help="a Python that has zeus 0.16.0: python -m venv, pip install zeus")
    args = parser.parse_args()
    if "zeus" in args.parts and args.zeus is None:
        parser.error("name a Python that has zeus: --zeus /path/to/venv/bin/python")
    return args


if __name__ == "__main__":
    main()
