"""Fuzz one target: python -m tests.fuzz TARGET --runs N --seconds S; needs the extra `fuzz` (x86-64, Python 3.11 on).

Inputs that led to a finding are written to --findings, each beside its traceback; with one, the exit status is 1.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.catalogue import CORPUS, TARGETS, target

FINDINGS = Path(tempfile.gettempdir(), "jetsel-fuzz-findings")
HANG_S = 60  # after which a run is given up; what takes over a second without hanging is a finding of `watch`


def main() -> int:
    """Run one target; libFuzzer prints the executions, the edges and the files that reached new code."""
    asked = _arguments()
    if importlib.util.find_spec("atheris") is None:
        sys.exit("the fuzzer is not installed: pip install 'jetsel[fuzz]' (x86-64, Python 3.11 or later)")
    asked.findings.mkdir(parents=True, exist_ok=True)
    before = set(asked.findings.iterdir())
    with tempfile.TemporaryDirectory(prefix="jetsel-fuzz-") as place:
        status = _fuzzed(asked, Path(place))
    found = sorted(set(asked.findings.iterdir()) - before)
    print(f"{asked.target}: the fuzzer ended with status {status}; new findings: {[path.name for path in found]}")
    return 1 if status or found else 0


def _fuzzed(asked: argparse.Namespace, place: Path) -> int:
    work, words = asked.keep or place / "corpus", place / "words"
    work.mkdir(parents=True, exist_ok=True)
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in target(asked.target).WORDS)
    words.write_text("".join(f'"{line}"\n' for line in lines))
    command = [sys.executable, "-m", "tests.fuzz.worker", asked.target, str(asked.findings), str(work)]
    command += [str(CORPUS / asked.target), f"-dict={words}", f"-artifact_prefix={asked.findings}/{asked.target}-"]
    command += [f"-runs={asked.runs}", f"-max_total_time={asked.seconds}", f"-seed={asked.seed}"]
    return subprocess.run([*command, f"-timeout={HANG_S}", "-rss_limit_mb=0"], check=False).returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=1_000_000, help="executions (default: 1,000,000)")
    parser.add_argument("--seconds", type=int, default=600, help="at most (default: 600)")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer's random numbers (default: 1)")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help=f"(default: {FINDINGS})")
    parser.add_argument("--keep", type=Path, help="folder that gets every file that reached new code")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
