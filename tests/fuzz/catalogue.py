"""The fuzzer's targets by name, and where the files lie that each begins with."""

import importlib
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from jetsel.base.errors import JetselError

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
TARGETS = tuple(sorted(path.stem for path in (FOLDER / "targets").glob("*.py")))


def target(name: str) -> ModuleType:
    """Return the target's module: `run`, MAX_BYTES, WORDS to try, and perhaps its own `mutation`."""
    return importlib.import_module(f"tests.fuzz.targets.{name}")


def corpus(name: str) -> Iterator[Path]:
    """Yield the files that were kept because each reaches code that no other does."""
    yield from sorted((CORPUS / name).iterdir())


LONGEST_S = 1.0  # of processor time: the machine may be busy with something else
MOST_MB = 300.0  # that the process grows by in one run

Target = Callable[[bytes], None]


def watched(target: Target) -> Target:
    """Return the target as a function that raises nothing but findings."""

    def run(data: bytes) -> None:
        began_s, peak_kb = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            target(data)
        except JetselError as error:
            str(error).encode()  # what cannot be sent is no message
        took_s = time.thread_time() - began_s
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb) / 1024
        assert grown_mb <= MOST_MB, f"{grown_mb:.0f} MB for {len(data)} bytes"
        assert took_s <= LONGEST_S, f"{took_s:.1f} s for {len(data)} bytes"

    return run
