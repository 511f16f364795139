"""Write each double's table: `python -m tests.doubles.tables`.

A table lists what the doubles implement and the real bindings of that version have (symbols/), and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.doubles.extract import OPERATORS, SYMBOLS, write

HERE = Path(__file__).parent
TABLES = HERE / "tables"
COMMAND = "python -m tests.doubles.tables"

# The double's name -> (the list of symbols that it is cut to, the version it says it is, what that version wants).
# 8.2.1.8 came with JetPack 4.6.1 and 4.6.2.
VERSIONS: dict[str, tuple[str, str, dict[str, bool]]] = {
    "8.2": (
        "8.2",
        "8.2.1.8",
        {"explicit_batch_wanted": True, "device_memory_is_capsule": True, "nptype_wants_numpy_bool": True},
    ),
    "8.6": ("8.6.0", "8.6.0", {"explicit_batch_wanted": True}),
    "10": ("10.3.0", "10.3.0", {"may_strongly_type": True}),
    "11": ("11.0.0.114", "11.0.0.114", {"strongly_typed": True}),
}


def real_symbols(name: str) -> dict[str, Any]:
    """Return the stored list of one version of the real bindings."""
    found: dict[str, Any] = json.loads((SYMBOLS / f"{name}.json").read_text())
    return found


def implemented() -> dict[str, Any]:
    """Return the module's names that the doubles implement, with their values; in a process that offered none."""
    sys.path.insert(0, str(HERE / "common"))
    from trt_double.offer import implemented as found  # type: ignore[import-not-found]

    names: dict[str, Any] = found()
    return names


def attributes(cls: type) -> list[str]:
    """Return what a caller may use of a class: its public names, and the operators that it defines itself."""
    public = [name for name in dir(cls) if not name.startswith("_")]
    return public + [name for name in OPERATORS if getattr(cls, name, None) is not getattr(object, name, None)]


def table(name: str) -> dict[str, Any]:
    """Return the table of one double."""
    source, version, rules = VERSIONS[name]
    real, ours = real_symbols(source), implemented()
    classes = {key: value for key, value in ours.items() if isinstance(value, type) and key in real["classes"]}
    classes["ILogger.Severity"] = ours["ILogger"].Severity
    return {
        "version": version,
        "rules": rules,
        "made_by": f"{COMMAND} (what is implemented, and is in symbols/{source}.json)",
        "module": sorted(set(ours) & set(real["module"])),
        "classes": {
            key: [attribute for attribute in attributes(value) if attribute in real["classes"][key]]
            for key, value in sorted(classes.items())
        },
    }


def main() -> None:
    """Write all tables; with --check, only compare them with what is stored, and exit with 1 where they differ."""
    stale = []
    for name in VERSIONS:
        path, found = TABLES / f"{name}.json", table(name)
        if sys.argv[1:] != ["--check"]:
            write(found, path)
        elif json.loads(path.read_text()) != found:
            stale.append(path.name)
    sys.exit(f"stale: {', '.join(stale)}: run {COMMAND}" if stale else 0)


if __name__ == "__main__":
    main()
