"""Pages, units, the package and examples name only what there is, and puzzle nobody; names say what they are."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
import typer

from jetsel.base.config import SECTIONS, parse
from jetsel.base.sections import decode
from jetsel.cli.app import app
from jetsel.cli.configuration import addon_sections
from jetsel.site.config_file import ADDONS
from jetsel.wire import StatusReply
from tests.layers import read_imports
from tests.names import MOST, long_classes, participles, shared_classes
from tests.unit.hollow import structs_of

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "CONTRIBUTING.md", "docs", "systemd", "deploy", "examples", "calibration")
KINDS = {".md", ".service", ".timer", ".sh", ".toml", ".json", ".yml", ".py", ".conf", ""}
FILES = [
    path
    for place in PLACES
    for path in sorted([ROOT / place] if (ROOT / place).is_file() else (ROOT / place).rglob("*"))
    if path.is_file() and path.suffix in KINDS and path.stat().st_size < 200_000
]
COMMAND = typer.main.get_command(app)
CALLED = re.compile(r"(?:^|`|[$(|&;] *|sudo |bin/)jetsel (?P<words>[a-z-]+[^`|;&#]*)")
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]+`")
EXAMPLES = {key for one in (SECTIONS, *addon_sections()) for key in one.examples}
SETTING = re.compile(
    rf"`\[?(?P<section>{'|'.join({key.partition('.')[0] for key in EXAMPLES})})(?:\] |\.)(?P<key>(?!html)[a-z_]+)`"
)
FIELD = re.compile(rf"`(?P<parent>{'|'.join(StatusReply.__struct_fields__)})\.(?P<field>[a-z_]+)")


@cache
def options(names: tuple[str, ...]) -> frozenset[str] | None:
    """Return the options of a command and of those above it; None if there is no such command."""
    command: Any = COMMAND
    known = {"--help", "--version"}
    for name in names:
        command = getattr(command, "commands", {}).get(name)
        if command is None:
            return None
        known |= {one for parameter in command.params for one in (*parameter.opts, *parameter.secondary_opts)}
    return frozenset(known)


def gone_commands(text: str) -> Iterator[str]:
    """Yield each command and option of `jetsel` in a text that the program does not have."""
    for line in text.replace("\\\n", " ").splitlines():
        for found in CALLED.finditer(line):
            words = found["words"].split()
            names: tuple[str, ...] = ()
            while words and options((*names, words[0])) is not None:
                names = (*names, words.pop(0))
            if not names:
                yield f"jetsel {found['words']}"
            given = [re.match(r"--[a-z][\w-]*", word.strip("[('\"")) for word in words]
            yield from (
                f"jetsel {' '.join(names)} {one[0]}" for one in given if one and one[0] not in (options(names) or ())
            )


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_file_names_a_command_or_an_option_that_is_gone(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    pieces = [found["text"] for found in BLOCK.finditer(text)] if path.suffix == ".md" else []
    spans = SPAN.findall(BLOCK.sub("", text) if path.suffix == ".md" else text)
    units = [
        f"`jetsel {line.partition('@EXECUTABLE@ ')[2]}"
        for line in text.splitlines()
        if line.startswith("Exec") and "@EXECUTABLE@ " in line
    ]
    assert [one for piece in (*pieces, *spans, *units) for one in gone_commands(piece)] == []


PAGES = [path for path in FILES if path.suffix == ".md"]


@pytest.mark.parametrize("path", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])
def test_no_page_names_a_setting_or_a_field_that_is_gone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if block["kind"] == "toml":
            parse(block["text"], ADDONS)
            plain = msgspec.toml.decode(block["text"])
            for sections in addon_sections():
                decode({name: plain[name] for name in sections.kind.__struct_fields__ if name in plain}, sections)
    settings = {f"{found['section']}.{found['key']}" for found in SETTING.finditer(text)}
    fields = {(found["parent"], found["field"]) for found in FIELD.finditer(text)}
    hints = get_type_hints(StatusReply)
    gone = [
        f"{parent}.{field}"
        for parent, field in fields
        if (kinds := list(structs_of(hints[parent])))
        and not any(field in kind.__struct_fields__ for kind in kinds)
        and f"{parent}.{field}" not in EXAMPLES
    ]
    known = {f"{parent}.{field}" for parent, field in fields}
    assert sorted(settings - EXAMPLES - known) + gone == []


PACKAGE = ROOT / "jetsel"
PAGE = ROOT / "docs" / "architecture.md"
MOST_FILES = 12  # from images to an installed calibration


def test_every_file_and_class_of_the_page_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    missing, files = [], 0
    for row in re.findall(r"^\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        folder = PACKAGE
        for name in re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", row):
            files += 1
            path = PACKAGE / name if (PACKAGE / name).exists() else folder / name
            folder = path.parent
            missing += [] if path.exists() else [name]
        names = re.findall(r"`([A-Z][A-Za-z]+)`", row)
        missing += [name for name in names if not re.search(rf"^class {name}\b", source, re.MULTILINE)]
    assert missing == []
    assert files > 60


def test_no_file_on_the_way_of_a_calibration_imports_one_above_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## A calibration:") :].partition("\n## ")[0]
    way = re.findall(r"^\| `([a-z_0-9/]+)\.py` \|", section, re.MULTILINE)
    modules = [name.replace("/", ".") for name in way]
    imports = read_imports(PACKAGE)
    assert 0 < len(way) == section.count("\n| `") <= MOST_FILES
    assert [
        f"{module} imports {above}"
        for place, module in enumerate(modules)
        for above in modules[:place]
        if above in imports[module]
    ] == []


PUZZLING = re.compile(
    r"\b(whoever|so many(th)?|what is no|is told|hung up on|without a word|such a one|likewise"
    r"|(None|null|empty|Error) where)\b",
    re.IGNORECASE,
)


def test_code_and_documents_use_no_phrase_that_puzzles_readers() -> None:
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    paths += [path for kind in ("py", "html", "js") for path in (ROOT / "jetsel").rglob(f"*.{kind}")]
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in paths
        for match in PUZZLING.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_names_are_no_participles_and_no_two_public_classes_share_one() -> None:
    assert shared_classes() == {}
    assert long_classes() == {}
    assert len(participles()) <= MOST
