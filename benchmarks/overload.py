"""Goodput at more load than the default policy can serve. `python -m benchmarks.overload FOLDER --models DIR`.

Requests come in an open loop, at multiples of what the default policy serves in a closed one. Goodput counts answers
that are right and within the target, from the moment that the request was due. Simulated: the same arrivals in
`benchmarks.simulated`. The oracle knows them all, and the cheapest model that is right about each image.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.arrivals import bursts, poisson, stepped
from benchmarks.conditions import conditions
from benchmarks.load import Generator, Job, generator
from benchmarks.measured_device import CLIENTS, CLOSED_REQUESTS, SEED, WORKERS, measured_device
from benchmarks.open_loop import OpenJob, OpenWindow, Outcome
from benchmarks.oracle import most_in_time
from benchmarks.photographs import brought_to
from benchmarks.report import table
from benchmarks.servers import Server, fitted_daemon, has_mosec, mosec
from benchmarks.simulated import Device, Request, Simulation
from benchmarks.step import steps
from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.record.photographs import find_images
from jetsel.policies import Policy
from jetsel.policies.front import Front
from jetsel.site import config_file
from jetsel.site.configured import ConfiguredFamily, configure_family
from jetsel.zoo import scan

PATTERNS = {"poisson": poisson, "bursts": bursts}
CLOSED_ROUNDS = 5
AROUND_MS = 3.0  # of a request besides its model, about; for how many mosec lets in


@dataclass(frozen=True)
class Contender:
    """A server and what it is asked for. simulated: the policy or front that it answers by, None if it is not ours."""

    server: Server
    policy: str | None = None
    deadline_ms: float | None = None
    simulated: Policy | Front | None = None


@dataclass(frozen=True)
class Seen:
    """What came of one window, or of several put together."""

    goodput_hz: float
    accuracy: float
    p50_ms: float
    p99_ms: float
    refused: float
    cpu_ms: float  # of each request that was sent


@dataclass(frozen=True)
class Setting:
    """What every contender meets."""

    args: argparse.Namespace
    files: list[bytes]
    truth: list[str]  # of each image, its class
    family: ConfiguredFamily
    default: str

    @property
    def calibration(self) -> Calibration:
        """That of the family, which is fitted to this machine."""
        assert self.family.in_use.calibration is not None
        return self.family.in_use.calibration


def seen(windows: Sequence[OpenWindow], due: Sequence[Sequence[str]], length_s: float, target_ms: float) -> Seen:
    """Put windows together. due: the true class of each request of each window."""
    pairs = [
        pair for window, truth in zip(windows, due, strict=True) for pair in zip(window.outcomes, truth, strict=True)
    ]
    answered = [(one, truth) for one, truth in pairs if one.code == "ok"]
    right = [one for one, truth in answered if one.wnid == truth]
    latencies = [one.latency_ms or np.inf for one, _ in answered] or [np.nan]
    good = sum((one.latency_ms or np.inf) <= target_ms for one in right)
    return Seen(
        goodput_hz=good / (length_s * len(windows)),
        accuracy=len(right) / max(1, len(answered)),
        p50_ms=float(np.percentile(latencies, 50)),
        p99_ms=float(np.percentile(latencies, 99)),
        refused=1 - len(answered) / len(pairs),
        cpu_ms=1e3 * sum(window.server_cpu_s for window in windows) / len(pairs),
    )


def main() -> None:
    """Ask all contenders by turns at each load, and print a table for each pattern."""
    args = _arguments()
    (family,) = scan([args.models]).families.values()
    found = list(find_images(args.folder, family.labels, None, need_labels=True).photographs)
    random.Random(SEED).shuffle(found)
    files = [brought_to(one.path.read_bytes(), (500, 375)) for one in found[: args.most]]
    truth = [family.labels.wnids[one.class_number or 0] for one in found[: args.most]]
    print(f"# Overload\n\n{len(files)} images of {args.folder.name} at 500 x 375, target {args.target:g} ms\n")
    print("\n".join(conditions()), flush=True)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as temporary, ExitStack() as running:
        folder = Path(temporary)
        served = running.enter_context(fitted_daemon(folder / "now", args.models))
        target = f"[policy]\nlatency_target_ms = {args.target:g}\n"
        paced = running.enter_context(fitted_daemon(folder / "paced", args.models, target, folder / "now"))
        config = config_file.read(folder / "paced" / "jetsel.toml")
        known = configure_family(family, config, is_default=True)
        setting = Setting(args, files, truth, known, known.defaults.policy)
        asking = running.enter_context(generator(files, folder))
        best_hz = _closed(setting, folder, served, asking)
        opened = running.enter_context(generator(files, folder, "benchmarks.open_loop"))
        device = measured_device(known, files, args.target, served, asking, opened) if args.simulate else None
        contenders = _contenders(setting, folder, served, paced, running)
        for pattern in PATTERNS:
            _open(setting, pattern, contenders, best_hz, opened, device)
        _steps(setting, contenders["latency target"], best_hz, opened)


def _contenders(
    setting: Setting, folder: Path, served: Server, paced: Server, running: ExitStack
) -> dict[str, Contender]:
    """Start the other servers, and return all: what the others are compared with first."""
    args, family, default = setting.args, setting.family, setting.default
    policies, front = family.in_use.policies, family.front
    found = {
        "default, pinned": Contender(served, default, args.target, policies[default]),
        "latency target": Contender(paced, simulated=front),
        "deadline": Contender(served, None, args.target),
    }
    if has_mosec():
        costs_ms = setting.calibration.costs_ms
        for words, model in (("best", _as_accurate(setting)), ("cheapest", min(costs_ms, key=costs_ms.__getitem__))):
            lets_in = WORKERS * round(args.target / (AROUND_MS + costs_ms[model]))
            options = ("--timeout", f"{args.target:.0f}", "--capacity", str(lets_in))
            server = mosec(folder, model, WORKERS, setting.files[0], *options, models=args.models)
            found[f"mosec, {words}: {model}"] = Contender(running.enter_context(server))
    return found


def _as_accurate(setting: Setting) -> str:
    """Return the cheapest model that is at least as accurate as the default policy, else the most accurate."""
    figures = setting.calibration.figures
    accuracy = {
        name: figures[f"single:{name}"]["top1"] for name in setting.family.models if f"single:{name}" in figures
    }
    enough = [name for name, known in accuracy.items() if known >= figures[setting.default]["top1"]]
    return enough[0] if enough else max(accuracy, key=accuracy.__getitem__)


def _closed(setting: Setting, folder: Path, served: Server, asking: Generator) -> float:
    """Print what the default policy and mosec serve in a closed loop; return the requests/s of the default policy."""
    rows, best_hz = [], 0.0
    with ExitStack() as running:
        asked = {setting.default: (served, setting.default)}
        if has_mosec():
            model = _as_accurate(setting)
            server = mosec(folder, model, WORKERS, setting.files[0], models=setting.args.models)
            asked[f"mosec, {model}"] = running.enter_context(server), None
        for clients in (4, CLIENTS):
            rates: dict[str, list[float]] = {name: [] for name in asked}
            for _ in range(CLOSED_ROUNDS):
                for name, (server, policy) in asked.items():
                    job = Job(server.address, "", clients, CLOSED_REQUESTS, 50, server.pids, policy)
                    rates[name].append(asking.measure(job).requests_per_s)
            best_hz = float(np.median(rates[setting.default]))
            for name, known in rates.items():
                ratio = float(np.median(np.array(rates[setting.default]) / np.array(known)))
                rows.append([str(clients), name, f"{np.median(known):.0f}", f"{ratio:.2f}"])
    print("\n## Closed loop\n")
    print("\n".join(table(("clients", "who", "requests/s", "the default has times as many"), rows)), flush=True)
    return best_hz


def _open(
    setting: Setting,
    pattern: str,
    contenders: Mapping[str, Contender],
    best_hz: float,
    asking: Generator,
    device: Device | None,
) -> None:
    args, truth = setting.args, setting.truth
    print(f"\n## Arrivals: {pattern}, {args.rounds} rounds of {args.length:g} s by turns\n")
    rows = []
    for load in args.loads:
        windows: dict[str, list[OpenWindow]] = {name: [] for name in contenders}
        due: list[list[str]] = []
        best = 0
        for round_number in range(args.rounds):
            chance = np.random.default_rng([SEED, round_number])
            times_s = PATTERNS[pattern](load * best_hz, args.length, chance).tolist()
            images = chance.integers(0, len(truth), len(times_s)).tolist()
            due.append([truth[image] for image in images])
            for name, one in contenders.items():
                job = OpenJob(one.server.address, one.server.pids, times_s, images, one.policy, one.deadline_ms)
                windows[name].append(asking.result(job, OpenWindow))
            if device is not None:
                best += _of_oracle(setting, device, times_s, images)
                for name, one in contenders.items():
                    if one.simulated is not None:
                        simulation = Simulation(device, one.simulated, args.target, round_number)
                        answered = simulation.answer(times_s, images)
                        outcomes = [_outcome(setting, request) for request in answered]
                        windows.setdefault(f"{name}, simulated", []).append(OpenWindow(outcomes, np.nan, np.nan, 0.0))
        first = seen(windows["default, pinned"], due, args.length, args.target)
        for name in windows:
            got = seen(windows[name], due, args.length, args.target)
            rows.append(
                [
                    f"{load:g}",
                    name,
                    f"{got.goodput_hz:.1f}",
                    f"{got.goodput_hz / first.goodput_hz:.2f}",
                    f"{100 * got.accuracy:.1f}",
                    f"{got.p50_ms:.0f}",
                    f"{got.p99_ms:.0f}",
                    f"{100 * got.refused:.1f}",
                    f"{got.cpu_ms:.2f}",
                ]
            )
        if device is not None:
            best_of_all_hz = best / (args.length * args.rounds)
            ratio = f"{best_of_all_hz / first.goodput_hz:.2f}"
            rows.append([f"{load:g}", "oracle", f"{best_of_all_hz:.1f}", ratio, *[""] * 5])
    headings = ("load", "who", "goodput/s", "ratio", "right %", "p50 ms", "p99 ms", "refused %", "CPU ms")
    print("\n".join(table(headings, rows)), flush=True)


STEPS, STEP_S = (0.5, 3.0, 0.5), 6.0  # multiples of what the default policy serves, and how long each lasts


def _steps(setting: Setting, ours: Contender, best_hz: float, asking: Generator) -> None:
    """Print how the operating points follow when the load rises and falls."""
    front = setting.family.front
    assert front is not None
    cost_ms = {point.policy.name: point.known_ms for point in front.points}
    rows = []
    for number in range(setting.args.rounds):
        chance = np.random.default_rng([SEED, number])
        due_s = stepped([load * best_hz for load in STEPS], STEP_S, chance).tolist()
        images = chance.integers(0, len(setting.truth), len(due_s)).tolist()
        job = OpenJob(ours.server.address, ours.server.pids, due_s, images)
        outcomes = asking.result(job, OpenWindow).outcomes
        known = [(at_s, cost_ms[one.point]) for at_s, one in zip(due_s, outcomes, strict=True) if one.point in cost_ms]
        found = steps([at_s for at_s, _ in known], [ms for _, ms in known], STEP_S, len(STEPS))
        rows.append([str(number + 1), *(word for one in found for word in (f"{one.settled_s:.2f}", str(one.turns)))])
    words = " to ".join(f"{load:g}" for load in STEPS)
    print(f"\n## Steps: {words} times, {STEP_S:g} s each\n")
    print("\n".join(table(("round", "up: there after s", "turns", "down: there after s", "turns"), rows)), flush=True)


def _outcome(setting: Setting, request: Request) -> Outcome:
    """Return what became of a simulated request, as the open loop would say it."""
    decision = request.decision
    if decision is None:
        return Outcome("refused", None)
    wnid = setting.family.family.labels.wnids[int(decision.prediction.probabilities.argmax())]
    return Outcome("ok", (request.ended_s - request.due_s) * 1e3, wnid)


def _of_oracle(setting: Setting, device: Device, times_s: Sequence[float], images: Sequence[int]) -> int:
    """Return how many an oracle would answer right and in time, each by the cheapest model that is right."""
    wnids, times = setting.family.family.labels.wnids, device.times
    takes_ms = np.full(len(setting.truth), np.inf)
    for model, logits in device.logits.items():
        right = np.array([wnids[place] for place in logits.argmax(axis=1)]) == np.array(setting.truth)
        took_ms = times.message_ms + times.around_ms + times.models_ms[model]
        takes_ms = np.where(right, np.minimum(takes_ms, took_ms), takes_ms)
    return most_in_time(times_s, (takes_ms[images] / 1e3).tolist(), setting.args.target / 1e3, device.workers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__)
    parser.add_argument("folder", type=Path, help="labelled images: a folder for each class")
    parser.add_argument("--models", type=Path, required=True, help="folder with one family")
    parser.add_argument("--target", type=float, default=100.0, help="latency target in ms (default: 100)")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.5, 1, 1.5, 2, 3, 5])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=float, default=11.25, help="of a window in seconds: the bursts once")
    parser.add_argument("--most", type=int, default=400, help="images, drawn at random")
    parser.add_argument("--simulate", action="store_true", help="simulate the same arrivals, too, and the oracle")
    return parser.parse_args()


if __name__ == "__main__":
    main()
