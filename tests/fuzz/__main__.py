"""Fuzz one target: python -m tests.fuzz TARGET [OPTION OF LIBFUZZER...].

It needs the extra `fuzz` (x86-64, Python 3.11 on). libFuzzer prints the executions, the edges and the files that
reached new code. Inputs that led to a finding are written to FINDINGS, each beside its traceback.
"""

import contextlib
import hashlib
import logging
import sys
import tempfile
import traceback
from pathlib import Path

import atheris

from tests.fuzz.catalogue import CORPUS, TARGETS, Target, corpus, target, watched

FINDINGS = Path(tempfile.gettempdir(), "jetsel-fuzz")
USUAL = ("-runs=1000000", "-max_total_time=600")
HANG_S = 60  # after which a run is given up; what takes over a second without hanging is a finding of `watched`


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    name, *options = sys.argv[1:] or [""]
    if name not in TARGETS:
        sys.exit(f"name one of {', '.join(TARGETS)}")
    logging.disable()  # nobody reads it, and to write it takes longer than a run
    with atheris.instrument_imports(include=["jetsel", "tomllib", "zipfile"], enable_loader_override=False):
        chosen = target(name)
        checked = watched(chosen.run)
        with contextlib.suppress(Exception):  # the fuzzer runs it again: here it is to import what it imports late
            for path in corpus(name):
                checked(path.read_bytes())
    folder = FINDINGS / name
    (folder / "new").mkdir(parents=True, exist_ok=True)
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in chosen.WORDS)
    (folder / "words").write_text("".join(f'"{line}"\n' for line in lines))
    given = [f"-max_len={chosen.MAX_BYTES}", f"-dict={folder}/words", f"-artifact_prefix={folder}/"]
    given += [f"-timeout={HANG_S}", "-rss_limit_mb=0", str(folder / "new"), str(CORPUS / name)]
    mutation = getattr(chosen, "mutation", None)
    own = {} if mutation is None else {"custom_mutator": mutation(_of_bytes)}
    atheris.Setup([sys.argv[0], *(options or USUAL), *given], _collecting(checked, folder), **own)
    atheris.Fuzz()


def _of_bytes(data: bytes, max_bytes: int) -> bytes:
    """Change some bytes; looked up at each call, since the function is another once the fuzzer runs."""
    return atheris.Mutate(data, max_bytes)


def _collecting(checked: Target, folder: Path) -> Target:
    """Return a target that keeps each finding of a new kind, and goes on: an end of the process would hide others."""
    seen: set[str] = set()

    def one(data: bytes) -> None:
        try:
            checked(data)
        except Exception as error:  # whatever it is, it is the finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            if kind in seen:
                return
            seen.add(kind)
            path = folder / hashlib.sha256(data).hexdigest()[:16]
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(traceback.format_exc(), errors="replace")
            print(f"FINDING {kind}: {str(error)[:200]!r}, see {path}", file=sys.stderr, flush=True)

    return one


if __name__ == "__main__":
    main()
