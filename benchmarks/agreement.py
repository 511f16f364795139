"""Whether the daemon answers as its parts do without it, file by file. `python -m benchmarks.agreement FOLDER`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.conditions import conditions
from benchmarks.in_process import InProcess, Said
from benchmarks.servers import ROOT, daemon
from jetsel.base.errors import JetselError
from jetsel.zoo import STARTER, scan

MOST_DIFFERENT = 0.001
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".webp"}
FILES_PER_COMMAND = 5000  # the kernel bounds a command line


def main() -> int:
    """List the differences and their share; return 1 where it is over 0.1 %."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("folder", type=Path, help="every image file below it is classified both ways")
    parser.add_argument("--policy", help="such as cascade, chain or single:xs; default: the family's")
    args = parser.parse_args()
    paths = sorted(path.absolute() for path in args.folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        parser.error(f"no image file below {args.folder}")
    print("# The daemon and its parts, file by file\n")
    print("\n".join(conditions()), flush=True)
    differences = differing(paths, through_the_socket(paths, args.policy), without_a_daemon(paths, args.policy))
    text, status = verdict(len(paths), differences)
    print(text)
    return status


def differing(paths: Sequence[Path], ours: Iterable[Said | str], theirs: Iterable[Said | str]) -> list[str]:
    """Return a line for each file of which the daemon (ours) said another thing than its parts (theirs)."""
    return [
        f"- {path}: the daemon {over_socket}; in process {in_process}"
        for path, over_socket, in_process in zip(paths, ours, theirs, strict=True)
        if over_socket != in_process
    ]


def verdict(files: int, differences: list[str]) -> tuple[str, int]:
    """Return the differences and their share in words, and the exit status."""
    share = len(differences) / files
    summary = f"\n{files} files, {len(differences)} different: {share:.2%} (at most {MOST_DIFFERENT:.1%})"
    return "\n".join([*differences, summary]), int(share > MOST_DIFFERENT)


def through_the_socket(paths: Sequence[Path], policy: str | None) -> Iterator[Said | str]:
    """Yield what `jetsel classify --json` prints for each file, asked of a daemon with its defaults; or its error."""
    with tempfile.TemporaryDirectory(prefix="jetsel-") as folder, daemon(Path(folder)) as server:
        command = [sys.executable, "-m", "jetsel", "classify", "--json", "--endpoint", server.address]
        command += ["--policy", policy] if policy else []
        for first in range(0, len(paths), FILES_PER_COMMAND):
            some = paths[first : first + FILES_PER_COMMAND]
            ended = subprocess.run([*command, *map(str, some)], capture_output=True, text=True, cwd=ROOT, check=False)
            lines = ended.stdout.splitlines()
            if len(lines) != len(some):
                raise SystemExit(f"{len(lines)} lines for {len(some)} files: {ended.stderr}")
            for path, line in zip(some, map(json.loads, lines), strict=True):
                assert line["path"] == str(path), line
                if "error" in line:
                    yield line["error"]["code"]
                else:
                    yield Said(line["wnid"], tuple(run["model"] for run in line["ran"]))


def without_a_daemon(paths: Sequence[Path], policy: str | None) -> Iterator[Said | str]:
    """Yield what the same generator says of each file when it is driven in this process; or its error's code."""
    (family,) = scan([STARTER]).families.values()
    alone = InProcess(family, policy)
    yield from (_said(alone, path) for path in paths)


def _said(alone: InProcess, path: Path) -> Said | str:
    try:
        return alone.classify(path.read_bytes())
    except JetselError as error:
        return error.code


if __name__ == "__main__":
    raise SystemExit(main())
