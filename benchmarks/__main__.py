"""The daemon beside a bare loop and mosec, in one run, as Markdown. `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.bare import BareLoop
from benchmarks.conditions import conditions
from benchmarks.load import Generator, generator
from benchmarks.photographs import Photographs, photographs
from benchmarks.report import report
from benchmarks.rounds import Measured, Plan, measure
from benchmarks.servers import daemon, has_mosec, mosec, naive
from jetsel.zoo import STARTER, Family, Model, scan

NO_MOSEC = "mosec is not installed, so it is left out: pip install 'jetsel[bench]', or run `make bench`"


def main() -> None:
    """Measure and print."""
    (family,) = scan([STARTER]).families.values()
    args = _arguments([model.manifest.name for model in family.models])
    plan = Plan(args.requests, args.rounds, sorted(set(args.clients)), args.threads)
    shown = photographs(args.photos)
    print("# The daemon beside a bare loop and mosec\n")
    for line in (*conditions(), f"- photographs: {shown}", *_told(plan)):
        print(line)
    if not has_mosec():
        print(f"\n{NO_MOSEC}")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="jetsel-") as folder, generator(shown.files, Path(folder)) as asking:
        for model in family.models:
            if model.manifest.name in args.models:
                found = _measured(model, family, shown, plan, asking, Path(folder), args.beside)
                print("\n".join(report(found, plan)), flush=True)


def _measured(
    model: Model, family: Family, shown: Photographs, plan: Plan, asking: Generator, folder: Path, beside: str | None
) -> Measured:
    """Measure one model with all servers up: an idle one costs next to nothing, and rounds can take turns.

    beside: the interpreter of another version of jetsel, whose daemon takes part.
    """
    name = model.manifest.name
    bare = BareLoop(model, family.decode_px, shown.files, plan.threads)
    with ExitStack() as running:
        running.callback(bare.close)
        servers = {"daemon": running.enter_context(daemon(folder)), "naive": running.enter_context(naive(folder, name))}
        if beside is not None:
            servers["other"] = running.enter_context(daemon(folder / "other", python=beside))
        if has_mosec():
            workers = len(os.sched_getaffinity(0))
            servers["mosec"] = running.enter_context(mosec(folder, name, workers, shown.files[0]))
        return measure(name, plan, bare, servers, asking)


def _told(plan: Plan) -> list[str]:
    return [
        f"- each window: {plan.requests} requests after a warm-up; {plan.rounds} rounds in which bare loop, daemon, "
        "naive and mosec take turns",
        "- the daemon has its defaults and the model is pinned; naive is a ROUTER in one thread that decodes, infers "
        "and sends a fixed reply; mosec has a worker for each core and no batches; all are asked by one process that "
        "keeps one request outstanding on each client's own connection",
        "- CPU: user and system time of that side's threads and processes over the window, as getrusage counts it",
    ]


def _arguments(models: list[str]) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        unknown = set(text.split(",")) - set(models)
        if unknown:
            raise argparse.ArgumentTypeError(f"no model {', '.join(sorted(unknown))}; there are {', '.join(models)}")
        return text.split(",")

    def counts(text: str) -> list[int]:
        return [positive(number) for number in text.split(",")]

    def positive(text: str) -> int:
        if int(text) < 1:
            raise argparse.ArgumentTypeError("1 or more is needed")
        return int(text)

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--photos", type=Path, help="a folder or tar archive of JPEG files to send as they are")
    parser.add_argument("--models", type=names, default=models, help="such as xs,xl; default: all of the family")
    parser.add_argument("--clients", type=counts, default=[1, 4, 16], help="outstanding requests; default: 1,4,16")
    parser.add_argument("--requests", type=positive, default=400, help="in each window; default: 400")
    parser.add_argument("--rounds", type=positive, default=5, help="default: 5")
    parser.add_argument("--beside", metavar="PYTHON", help="the interpreter of another version, to be compared with")
    parser.add_argument("--threads", type=positive, default=2, help="of the bare loop beside one; default: 2")
    return parser.parse_args()


if __name__ == "__main__":
    main()
