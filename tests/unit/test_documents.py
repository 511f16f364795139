"""Pages, units and examples name only what there is, link to it and puzzle nobody; names say what they are."""

import os
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


DOCUMENTS = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
]


def anchors(path: Path) -> set[str]:
    """The names by which a document's headings are linked to: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS)
def test_extras_are_installed_beside_the_jetsel_that_is_there(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    known = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]["optional-dependencies"]
    for installed in re.findall(r"^pip install (.*?)(?:  +#.*)?$", text, re.MULTILINE):
        if installed == ".":  # in a clone
            continue
        extras = re.fullmatch(r"'jetsel\[([a-z,]+)\]'", installed)
        assert extras is not None, installed
        assert set(extras[1].split(",")) <= set(known), installed


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != "CHANGELOG.md"])
def test_every_target_of_make_in_the_documents_exists(document: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / document).read_text(encoding="utf-8")
    assert set(re.findall(r"(?:^|`)make (?:[A-Z]\S* )*([a-z-]+)", text, re.MULTILINE)) <= set(targets)


def test_every_page_is_reached_from_the_readme_in_two_clicks() -> None:
    def linked(document: str) -> set[str]:
        path = ROOT / document
        links = re.findall(r"\]\(([^)#:]+\.md)[^)]*\)", path.read_text(encoding="utf-8"))
        return {os.path.relpath((path.parent / link).resolve(), ROOT) for link in links}

    first = linked("README.md")
    reached = first.union(*(linked(document) for document in first))
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert pages <= reached


def test_the_documents_are_no_longer_than_their_readers_have_patience() -> None:
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "docs").glob("*.md")}
    lengths = {name: count for name, count in lines.items() if count > (250 if name == "protocol.md" else 200)}
    assert lengths == {}
    assert sum(lines.values()) <= 3050
