"""The fuzzer's targets by name, and where the files lie that each begins with."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
TARGETS = tuple(sorted(path.stem for path in (FOLDER / "targets").glob("*.py")))


def target(name: str) -> ModuleType:
    """Return the target's module: `run`, MAX_BYTES, WORDS to try, and perhaps its own `mutation`."""
    return importlib.import_module(f"tests.fuzz.targets.{name}")


def corpus(name: str) -> Iterator[Path]:
    """Yield the files that were kept because each reaches code that no other does."""
    yield from sorted((CORPUS / name).iterdir())
