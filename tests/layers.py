"""Who may import whom inside jetsel: the table, and the check that reads every file against it."""

import ast
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

LEVELS = (
    ("__main__",),
    ("__init__", "addons"),
    ("cli",),
    ("gateway",),
    ("daemon", "calibrate", "train", "client"),
    ("edge",),
    ("runtime",),
    ("site",),
    ("policies",),
    ("artefact",),
    ("features", "premodel", "engines", "power", "zoo"),
    ("errors", "image"),
    ("wire",),
    ("base",),
)
"""What stands directly under jetsel/, from the top down. A part imports itself and the levels below it, no other.

A new file inside a package needs no line here; a new package or top-level file needs its name on its level.
"""

_SHARED = frozenset({"cli.options", "cli.terminal", "cli.gateway", "client", "site", "image", "wire", "base"})

ONLY: Mapping[str, frozenset[str]] = {
    "client": frozenset({"wire", "base"}),  # carries nothing of the daemon
    "gateway": frozenset({"", "client", "wire", "image", "base"}),  # a client of the socket, in a process of its own
    "addons.cameras.review_api": _SHARED | {"gateway", "addons.cameras"},  # a page on the gateway's server
    "addons.cameras.commands.review": _SHARED | {"gateway.settings", "addons.cameras"},
    "addons.cameras": _SHARED | {"gateway.camera_states", "addons.http_client"},  # the file that the gateway reads
    "addons.fleet.agent.canary": _SHARED | {"calibrate.record.photographs", "zoo", "addons.fleet"},
    "addons.fleet.agent.proving": _SHARED | {"calibrate.retiming", "engines", "artefact", "zoo", "addons.fleet"},
    "addons.fleet.manager.status": _SHARED | {"calibrate.report", "calibrate.judge.words", "addons.fleet"},  # the page
    "addons.fleet.commands": _SHARED | {"calibrate.report", "addons.fleet"},  # the form of the page
    "addons.fleet": _SHARED | {"artefact", "zoo", "addons.http_client"},
    "engines.host": frozenset(),  # runs under the board's own Python 3.6, where nothing of ours is installed
}
"""Parts, and single modules, that import less than their level allows: what else each may import. The first holds."""

ONLY_FROM: Mapping[str, frozenset[str]] = {
    "engines.host": frozenset({"engines.hosted"}),
    "daemon": frozenset({"cli.serve"}),  # other commands read jetsel.site, or ask the socket
}
"""Modules with named importers: all who may import each."""

NOT_IN_THE_DAEMON = frozenset(
    {
        "torch",
        "torchvision",
        "sklearn",
        "scipy",
        "skimage",
        "onnx",
        "onnx2torch",
        "torch_pruning",
        "zmq",
        "matplotlib",
        "jinja2",
        "aiohttp",
        "duckdb",
        "fsspec",
    }
)
"""Libraries too heavy for the daemon's memory and start-up: others, such as calibration and clients, may use them."""

NOT_IN_THE_AGENT = frozenset({"duckdb", "fsspec", "scipy"})
"""What the manager of a fleet needs, and no device."""

_LEVEL_OF = {part: level for level, parts in enumerate(LEVELS) for part in parts}


def findings(package: Path) -> list[str]:
    """One line for each import under `package` (the folder jetsel/) that breaks the table, and each unplaced file."""
    imports = read_imports(package)
    unplaced = [
        f"{module}: nobody placed it; give `{_part(module)}` a level in tests/layers.py"
        for module in imports
        if _part(module) not in _LEVEL_OF
    ]
    forbidden = [
        f"{module or '__init__'} imports {target or '__init__'}: {why}"
        for module, targets in imports.items()
        for target in sorted(targets)
        if (why := _forbidden(module, target)) is not None
    ]
    circle = [f"a circle of imports: {' -> '.join(modules)}" for modules in [_circle(imports)] if modules]
    return unplaced + forbidden + circle + _heavy(package, imports)


def read_imports(package: Path) -> dict[str, set[str]]:
    """What each module under `package` imports of the package itself, in functions too: dotted names, "" the root."""
    modules = {_name(package, path): path for path in sorted(package.rglob("*.py"))}
    return {
        module: {
            target
            for name in _imported_names(path, module, package.name)
            if (target := _ours(name, package.name, modules)) is not None
        }
        for module, path in modules.items()
    }


def _forbidden(module: str, target: str) -> str | None:
    """Why `module` may not import `target`, or None where it may."""
    importer, imported = _part(module), _part(target)
    narrow = next((part for part in ONLY if _is_in(module, part)), importer)
    within = _is_in(target, narrow)
    if narrow in ONLY and not within and not any(_is_in(target, part) for part in ONLY[narrow]):
        return f"of ours, {narrow} may import {', '.join(sorted(ONLY[narrow])) or 'nothing'}"
    for part, importers in ONLY_FROM.items():
        if _is_in(target, part) and not _is_in(module, part) and module not in importers:
            return f"only {', '.join(sorted(importers))} may"
    if importer == imported:
        return None
    if importer not in _LEVEL_OF or imported not in _LEVEL_OF:
        return None  # reported as unplaced
    if _LEVEL_OF[importer] == _LEVEL_OF[imported]:
        return f"{importer} and {imported} stand on one level"
    if _LEVEL_OF[importer] > _LEVEL_OF[imported]:
        return f"{imported} stands above {importer}"
    return None


def _circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return modules of which each imports the next, and the last is the first again; empty if there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # it names what is imported first
    return []


def _is_in(module: str, part: str) -> bool:
    """Whether a module is this part, or stands in its folder."""
    return module == part or module.startswith(f"{part}.")


def _heavy(package: Path, imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The heavy libraries imported by a module that daemon or agent reach, each with the path of imports to it."""
    found = []
    reached = [("daemon", NOT_IN_THE_DAEMON, *each) for each in _reached_from("daemon", imports).items()]
    reached += [
        ("addons.fleet.agent", NOT_IN_THE_AGENT, *each) for each in _reached_from("addons.fleet.agent", imports).items()
    ]
    for part, forbidden, module, path in reached:
        if module not in imports:  # a part without a file of its own
            continue
        source = package.joinpath(*module.split(".")) if module else package
        file = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
        names = _imported_names(file, module, package.name)
        roots = {name.split(".")[0] for name in names}
        found += [f"{part} reaches {heavy}: {' -> '.join([*path, heavy])}" for heavy in sorted(roots & forbidden)]
    return found


def _reached_from(part: str, imports: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Every module that `part` imports, directly or not, with a shortest path of modules to it."""
    paths = {module: [module] for module in imports if _is_in(module, part)}
    waiting = deque(paths)
    while waiting:
        module = waiting.popleft()
        for target in sorted(imports.get(module, ())):
            if target not in paths:
                paths[target] = [*paths[module], target or "__init__"]
                waiting.append(target)
    return paths


def _part(module: str) -> str:
    """The part of the package that a module belongs to: the first name under jetsel/."""
    return module.split(".")[0] or "__init__"


def _name(package: Path, path: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported_names(path: Path, module: str, root: str) -> Iterator[str]:
    """Every absolute dotted name that the file imports; `from a import b` gives a.b, which may be a name inside a."""
    here = [root, *module.split(".")] if module else [root]
    if path.name != "__init__.py":
        here.pop()
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*base, node.module] if node.module else base)
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _ours(name: str, root: str, modules: Mapping[str, Path]) -> str | None:
    """The module of ours that holds `name`, the longest that exists; None where the name is another library's.

    The package's own version is no import: it is set before anything else of ours runs.
    """
    first, *rest = name.split(".")
    if first != root or rest == ["__version__"]:
        return None
    held = list(rest)
    while held and ".".join(held) not in modules:
        held.pop()
    return ".".join(held or rest[:-1][:1])  # a part without a file of its own still has its level
