"""Print every text that users see, with file and line, for those who edit them: `python -m tests.texts [KIND ...]`.

Kinds: help (of commands and options), error (what is raised), log (lines of the log), printed (by commands), page (the
page of the gateway and the report), package (descriptions of units and of the package), and text (any other string of
three words or more: reasons, verdicts, settings). Names in braces are replaced when the program runs.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[1]
KINDS = ("help", "error", "log", "printed", "page", "package", "text")
LEAST_WORDS = 3  # of a string that no call marks as one for people

_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception"})
_PRINTING = frozenset({"echo", "print", "step", "say", "secho"})
_WORD = re.compile(r"[A-Za-z][a-z']+")
_SCRIPT_STRING = re.compile(r"""(?P<quote>["'`])(?P<text>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)""")


@dataclass(frozen=True)
class Text:
    """One text; line: where it begins."""

    path: Path
    line: int
    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.words}"


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Yield the texts of jetsel/, examples/, the systemd units and the package, file by file."""
    for path in sorted([*root.glob("jetsel/**/*.py"), *root.glob("examples/**/*.py")]):
        of_file = _of_python(path.relative_to(root), path.read_text(encoding="utf-8"))
        yield from sorted(of_file, key=lambda one: one.line)
    for path in sorted([*root.glob("jetsel/**/*.html"), *root.glob("jetsel/**/*.js")]):
        yield from _of_page(path.relative_to(root), path.read_text(encoding="utf-8"))
    for path in sorted([*root.glob("systemd/**/*"), root / "pyproject.toml"]):
        if path.is_file() and path.suffix != ".json":
            yield from _of_package(path.relative_to(root), path.read_text(encoding="utf-8"))


def _of_python(path: Path, source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    is_command_line = path.parts[:2] == ("jetsel", "cli")
    hidden = set[ast.expr]()  # docstrings, and the parts of texts that were yielded
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(node.value)
        if is_command_line and _is_command(node) and (words := ast.get_docstring(node)):
            yield Text(path, node.body[0].lineno, "help", _flat(words))
    for node in ast.walk(tree):
        kind = _kind(node)
        if kind is not None and isinstance(node, ast.Call):
            for part in [*node.args, *(word.value for word in node.keywords if word.arg == "help" or kind != "help")]:
                yield from _strings(path, part, kind, hidden, least_words=1)
    yield from _strings(path, tree, "text", hidden, least_words=LEAST_WORDS)


def _is_command(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Whether it is a public function whose parameters say how they look on the command line."""
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
        return False
    names = {getattr(one.annotation, "id", "") for one in [*node.args.args, *node.args.kwonlyargs]}
    return bool(names & {"Json", "ConfigFile", "Endpoint"}) or "typer." in ast.unparse(node.args)


def _kind(node: ast.AST) -> str | None:
    """What a call makes of its strings, None if it does not say."""
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if name.endswith(("Error", "Exit", "BadParameter", "Failure")):
        return "error"
    if name in _LEVELS and owner.rpartition(".")[2] in ("log", "logger"):
        return "log"
    if name in ("Option", "Argument", "Typer", "command"):
        return "help"
    return "printed" if name in _PRINTING else None


def _strings(path: Path, node: ast.AST, kind: str, hidden: set[ast.expr], *, least_words: int) -> Iterator[Text]:
    """Yield the strings in this part of a file that are not hidden, and hide them."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        if node in hidden:
            return
        hidden.add(node)
        words = _flat(_drawn(node))
        if len(_WORD.findall(re.sub(r"\{[^}]*\}", "", words))) >= least_words and not _is_code(words):
            yield Text(path, node.lineno, kind, words)
        for part in ast.walk(node) if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.Constant):
                hidden.add(part)
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Call) and kind == "text" and (own := _kind(part)) in ("error", "log", "printed"):
            yield from _strings(path, part, own or kind, hidden, least_words=1)
        else:
            yield from _strings(path, part, kind, hidden, least_words=least_words)


def _drawn(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = (
        part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(getattr(part, 'value', part))}}}"
        for part in node.values
    )
    return "".join(map(str, parts))


def _is_code(words: str) -> bool:
    """Whether it looks like a query, a path, a pattern or a name, and not like a sentence."""
    return words.startswith(("SELECT", "CREATE", "INSERT", "WITH ", "from ", "import ", "/", "http")) or (
        " " not in words and not words.endswith((".", "!", "?"))
    )


def _flat(words: str) -> str:
    return " ".join(words.split())


class _Nodes(HTMLParser):
    """Collects what a page shows: its text, and the attributes that are read aloud or shown as hints."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._skips = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skips += tag in ("script", "style")
        shown = ("title", "alt", "placeholder", "aria-label")
        self.found += [(self.getpos()[0], value) for name, value in attrs if name in shown and value]

    def handle_endtag(self, tag: str) -> None:
        self._skips -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skips and _WORD.search(data):
            self.found.append((self.getpos()[0], data))


def _of_page(path: Path, source: str) -> Iterator[Text]:
    if path.suffix == ".html":
        parser = _Nodes()
        parser.feed(re.sub(r"\{[%#].*?[%#]\}", "", source, flags=re.S))
        yield from (Text(path, line, "page", _flat(words)) for line, words in parser.found)
        return
    for number, line in enumerate(source.splitlines(), 1):
        code = line.split("//")[0] if "://" not in line else line
        for match in _SCRIPT_STRING.finditer(code):
            if len(_WORD.findall(match["text"])) > 1 and not match["text"].startswith(("use ", "/", ".", "#")):
                yield Text(path, number, "page", _flat(match["text"]))


def _of_package(path: Path, source: str) -> Iterator[Text]:
    for number, line in enumerate(source.splitlines(), 1):
        name, _, value = line.partition(":" if path.suffix == "" else "=")
        if name.strip().lower() in ("description", "title"):
            yield Text(path, number, "package", value.strip().strip('"'))


def main() -> None:
    """Print the texts of these kinds, or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    wanted = parser.parse_args().kinds or KINDS
    for one in texts():
        if one.kind in wanted:
            print(one)


if __name__ == "__main__":
    main()
