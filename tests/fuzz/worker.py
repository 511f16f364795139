"""The process that the fuzzer runs in: python -m tests.fuzz.worker TARGET FINDINGS [options and folders]."""

import contextlib
import hashlib
import logging
import sys
import traceback
from pathlib import Path

import atheris

from tests.fuzz.catalogue import Target, corpus, target, watched


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    program, name, findings, *options = sys.argv
    logging.disable()  # nobody reads it, and to write it takes longer than a run
    with atheris.instrument_imports(include=["jetsel", "tomllib", "zipfile"], enable_loader_override=False):
        chosen = target(name)
        checked = watched(chosen.run)
        with contextlib.suppress(Exception):  # the fuzzer runs it again: here it is to import what it imports late
            for path in corpus(name):
                checked(path.read_bytes())
    mutation = getattr(chosen, "mutation", None)
    own = {} if mutation is None else {"custom_mutator": mutation(_of_bytes)}
    limit = f"-max_len={chosen.MAX_BYTES}"
    atheris.Setup([program, limit, *options], _collecting(chosen.run, Path(findings), name), **own)
    atheris.Fuzz()


def _of_bytes(data: bytes, max_bytes: int) -> bytes:
    """Change some bytes; looked up at each call, since the function is another once the fuzzer runs."""
    return atheris.Mutate(data, max_bytes)


def _collecting(run: Target, folder: Path, name: str) -> Target:
    """Return a target that keeps each finding of a new kind, and goes on: an end of the process would hide others."""
    seen: set[str] = set()
    checked = watched(run)

    def one(data: bytes) -> None:
        try:
            checked(data)
        except Exception as error:  # whatever it is, it is the finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            if kind in seen:
                return
            seen.add(kind)
            path = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(traceback.format_exc(), errors="replace")
            print(f"FINDING {kind}: {str(error)[:200]!r}, see {path}", file=sys.stderr, flush=True)

    return one


if __name__ == "__main__":
    main()
