"""What a request costs whose model is unloaded, beside one whose model is loaded. `python -m benchmarks.loading`."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.conditions import conditions
from benchmarks.memory import memory_mb
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import daemon
from jetsel.client import Client
from jetsel.wire.status import ModelStatus
from jetsel.zoo import STARTER
from tests.waiting import until

COLUMNS = (
    "model",
    "load ms",
    "run ms",
    "load / run",
    "request, unloaded, ms",
    "the next one, ms",
    "held when loaded, MB",
)


def main() -> None:
    """Let the daemon unload everything, then ask each model twice; again and again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="each unloads every model once; default: 9")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family; default: the starter's")
    parser.add_argument("--photos", type=Path, help="a folder or tar archive of JPEG files to send")
    args = parser.parse_args()
    shown = photographs(args.photos).files[0]
    print("# Loads and runs\n")
    print("\n".join(conditions()), flush=True)
    own = "" if args.models == STARTER else f'starter = false\npaths = ["{args.models.resolve()}"]\n'
    with (
        tempfile.TemporaryDirectory(prefix="jetsel-") as name,
        daemon(Path(name), f"[models]\nidle_unload_s = 0.5\n{own}") as server,
        Client(server.address) as client,
    ):
        found = _measured(client, server.pids[0], shown, args.rounds)
    print(f"- medians of {args.rounds} rounds, over the socket; a load reads, checks and prepares the file\n")
    print("\n".join(table(COLUMNS, [_row(name, rounds) for name, rounds in found.items()])))


def _models(client: Client) -> list[ModelStatus]:
    return client.status().families[0].models


def _measured(client: Client, pid: int, shown: bytes, rounds: int) -> dict[str, list[list[float]]]:
    """Return, by model, the figures of each round, as _row takes them."""
    found: dict[str, list[list[float]]] = {model.name: [] for model in _models(client)}
    for _ in range(rounds):
        for name, figures in found.items():
            until(lambda: all(model.state == "unloaded" for model in _models(client)))
            unloaded_mb = memory_mb(pid)["VmRSS"]
            first, following = (client.classify(shown, model=name) for _ in range(2))
            held_mb = memory_mb(pid)["VmRSS"] - unloaded_mb
            (load_ms,) = [model.load_ms for model in _models(client) if model.name == name]
            assert load_ms is not None
            run_ms, total_ms = following.ran[0].latency_ms, following.stages_ms.total
            figures.append([load_ms, run_ms, load_ms / run_ms, first.stages_ms.total, total_ms, held_mb])
    return found


def _row(name: str, rounds: list[list[float]]) -> list[str]:
    load_ms, run_ms, ratio, first_ms, next_ms, held_mb = map(statistics.median, zip(*rounds, strict=True))
    return [name, *(f"{figure:.1f}" for figure in (load_ms, run_ms, ratio, first_ms, next_ms)), f"{held_mb:.0f}"]


if __name__ == "__main__":
    main()
