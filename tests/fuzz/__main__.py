"""Fuzz one target: python -m tests.fuzz TARGET --runs N --seconds S; needs the extra `fuzz` (x86-64, Python 3.11 on).

Inputs that led to a finding are written to --findings, each beside its traceback; with one, the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.catalogue import CORPUS, TARGETS, target
from tests.fuzz.outcome import Outcome, outcome_of

FINDINGS = Path(tempfile.gettempdir(), "jetsel-fuzz-findings")
MOST_DEATHS = 20  # of the fuzzer's process: by then something is to be repaired first
HANG_S = 60  # after which a run is given up; what takes over a second without hanging is a finding of `watch`


def main() -> int:
    """Run one target, or minimise its corpus, and print what came of it."""
    asked = _arguments()
    if importlib.util.find_spec("atheris") is None:
        sys.exit("the fuzzer is not installed: pip install 'jetsel[fuzz]' (x86-64, Python 3.11 or later)")
    asked.findings.mkdir(parents=True, exist_ok=True)
    seeds = asked.corpus / asked.target
    with tempfile.TemporaryDirectory(prefix="jetsel-fuzz-") as place:
        work = Path(place, "corpus")
        work.mkdir()
        for number, data in enumerate(target(asked.target).seeds()):
            (work / f"seed-{number}").write_bytes(data)
        if asked.minimise:
            return _minimised(asked, work, seeds, Path(place))
        outcome = _fuzzed(asked, work, seeds, Path(place))
        if asked.keep is not None:
            _copy(work, asked.keep / asked.target)
    print(outcome.line(asked.target), flush=True)
    return 1 if outcome.findings else 0


def _fuzzed(asked: argparse.Namespace, work: Path, seeds: Path, place: Path) -> Outcome:
    """Run until the executions or the time are used up; a process that dies is a finding, and the next goes on."""
    words = place / "words"
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in target(asked.target).WORDS)
    words.write_text("".join(f'"{line}"\n' for line in lines))
    folders = [str(work), *([str(seeds)] if seeds.is_dir() else [])]
    ends_s, outcome = time.monotonic() + asked.seconds, Outcome()
    for _ in range(MOST_DEATHS):
        left_s = ends_s - time.monotonic()
        if outcome.runs >= asked.runs or left_s < 1:
            break
        options = [f"-runs={asked.runs - outcome.runs}", f"-max_total_time={left_s:.0f}", f"-dict={words}"]
        outcome += _worker(asked, [*options, f"-seed={asked.seed}", f"-timeout={HANG_S}"], folders, place)
        asked.seed += 1
    return outcome


def _worker(asked: argparse.Namespace, options: list[str], folders: list[str], place: Path) -> Outcome:
    again = place / "again"
    start = f'"{sys.executable}" -m tests.fuzz.worker "{again}" {asked.target} "{asked.findings}"'
    again.write_text(f'#!/bin/sh\nexec {start} "$@"\n')
    again.chmod(0o700)
    artefacts = f"-artifact_prefix={asked.findings}/{asked.target}-"
    log = place / "log"
    with log.open("wb") as said:
        status = subprocess.run([again, *options, artefacts, "-rss_limit_mb=0", *folders], stderr=said, check=False)
    return outcome_of(log.read_text(errors="replace"), status.returncode)


def _minimised(asked: argparse.Namespace, work: Path, seeds: Path, place: Path) -> int:
    """Replace the corpus by the fewest and smallest files, of it, of the seeds and of --from, that cover the same."""
    kept = place / "kept"
    kept.mkdir()
    others = [str(folder / asked.target) for folder in asked.minimise]
    _worker(asked, ["-merge=1"], [str(kept), str(work), *([str(seeds)] if seeds.is_dir() else []), *others], place)
    if not any(kept.iterdir()):
        sys.exit(f"{asked.target}: nothing was kept, so its corpus stays: {(place / 'log').read_text()[-600:]}")
    for old in seeds.glob("*") if seeds.is_dir() else ():
        old.unlink()
    _copy(kept, seeds)
    print(f"{asked.target}: {len(list(seeds.iterdir()))} files")
    return 0


def _copy(source: Path, destination: Path) -> None:
    destination.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        (destination / path.name[:16]).write_bytes(path.read_bytes())  # libFuzzer names a file by its SHA-1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions (default: 1,000,000)")
    parser.add_argument("--seconds", type=float, default=600, help="at most (default: 600)")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer's random numbers (default: 1)")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help=f"(default: {FINDINGS})")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder of each target's first files")
    parser.add_argument("--keep", type=Path, help="folder that gets every file that reached new code")
    parser.add_argument(
        "--minimise", type=Path, action="append", help="do not fuzz: fold what --keep left there into the corpus"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
