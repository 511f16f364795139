"""Check the doubles and the engine host against real TensorRT: `python -m tests.doubles.check`.

Without an option it reads the stored lists (symbols/). `--wheel FILE` lists the bindings in a wheel instead, and
`--installed` those that `--python` imports, as on a board. It says for each version which names the host uses that the
version lacks, whether the host asks for them first, and whether the double offers what the version lacks; it exits
with 1 where something is amiss.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.doubles import extract
from tests.doubles.tables import TABLES, VERSIONS, real_symbols
from tests.doubles.used import Used, read

PYCUDA = Path(__file__).parent / "common" / "pycuda"
HOST = Path(__file__).parents[2] / "jetsel" / "engines" / "host.py"
STORED = ("8.2", "8.5.3.1", "8.6.0", "10.3.0", "10.13.3.9", "11.0.0.114", "11.4.0.106")
# Names that every object of the library has, or that are too common to tell TensorRT's from another's.
_EVERYWHERE = {"name", "value", "shape", "dtype", "code", "file", "line", "log", "reset", "flags", "update"}

Listed = dict[str, Any]


def table(name: str) -> Listed:
    """Return the table of one double."""
    found: Listed = json.loads((TABLES / f"{name}.json").read_text())
    return found


def with_names(listed: Listed) -> Listed:
    """Return the list and, as "names", the attributes of all classes that any double offers."""
    looked_for = {key for name in VERSIONS for key in table(name)["classes"]}
    found = {name for key, names in listed["classes"].items() if key in looked_for for name in names}
    return {**listed, "names": found}


def stored_lists() -> dict[str, Listed]:
    """Return the stored lists of real bindings by version, with their names."""
    return {name: with_names(real_symbols(name)) for name in STORED}


def of_pycuda() -> set[str]:
    """Return what the double of pycuda defines: its module's names and those of its classes."""
    return set().union(*(read(path.read_text()).defined for path in PYCUDA.glob("*.py")))


def strangers(used: Used, stored: dict[str, Listed]) -> set[str]:
    """Return what the host uses on the GPU that no version of TensorRT, not pycuda, the host or Python has."""
    modules = set().union(*(listed["module"] for listed in stored.values()))
    known = of_pycuda().union(modules, known_names(stored))
    return used.strangers(known) | (used.cuda - of_pycuda())


def known_names(stored: dict[str, Listed]) -> set[str]:
    """Return the attributes that any version has."""
    return set().union(*(listed["names"] for listed in stored.values()))


def absent(listed: Listed, used: Used, known: set[str]) -> set[str]:
    """Return what the host uses of TensorRT that this version lacks.

    known: the attributes that some version has; what no version has is not TensorRT's (see `Used.strangers`).
    """
    missing = used.module - set(listed["module"])
    missing |= {name for owner, name in used.members if name not in listed["classes"].get(owner, ())}
    return missing | (used.attributes & known) - listed["names"] - _EVERYWHERE


def unguarded(missing: set[str], used: Used, version: str, stored: dict[str, Listed]) -> set[str]:
    """Return those of `missing` that nothing in the host keeps from being reached under this version.

    A guard keeps a name from being reached if the name itself is asked for, or another name by which this version is
    told from one that has it: then there is a branch of the guard for that one, which this version does not take.
    """
    return {name for name in missing if not any(_tells(guard, name, version, stored) for guard in used.guards)}


def _tells(guard: str, name: str, version: str, stored: dict[str, Listed]) -> bool:
    here = _has(stored[version], guard)
    return guard == name or any(_has(listed, name) and _has(listed, guard) is not here for listed in stored.values())


def _has(listed: Listed, name: str) -> bool:
    return name in listed["module"] or name in listed["names"]


def surplus(offered: Listed, real: Listed) -> set[str]:
    """Return what a double offers that the real version lacks."""
    extra = set(offered["module"]) - set(real["module"])
    for owner, names in offered["classes"].items():
        extra |= {f"{owner}.{name}" for name in set(names) - set(real["classes"].get(owner, ()))}
    return extra


def report(version: str, listed: Listed, used: Used, stored: dict[str, Listed]) -> bool:
    """Print what there is to say about one version; return whether all is well."""
    missing = absent(listed, used, known_names(stored))
    bare = unguarded(missing, used, version, stored)
    print(f"{version}: the host asks before it uses: {_listed(missing - bare)}")
    print(f"{version}: the host uses without asking, and it is not there: {_listed(bare)}")
    well = not bare
    for name, (source, _, _) in VERSIONS.items():
        if source == version:
            extra = surplus(table(name), listed)
            print(f"{version}: the double {name} offers, and it is not there: {_listed(extra)}")
            well = well and not extra
    return well


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


def main() -> None:
    """Check all stored versions, or one that is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", type=Path, default=HOST)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--installed", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that the wheel was built for")
    arguments = parser.parse_args()
    used = read(arguments.host.read_text())
    stored = stored_lists()
    checked = dict(stored)
    if arguments.wheel or arguments.installed:
        listed = (
            extract.extract(arguments.wheel, arguments.python)
            if arguments.wheel
            else extract.installed(arguments.python)
        )
        checked = {listed["version"]: with_names(listed)}
        stored.update(checked)
    unknown = strangers(used, stored)
    print(f"known to no TensorRT, not to pycuda, to the host or to Python: {_listed(unknown)}")
    well = [report(name, listed, used, stored) for name, listed in checked.items()]
    sys.exit(0 if all(well) and not unknown else 1)


if __name__ == "__main__":
    main()
