"""`jetsel config`: print the effective configuration as a jetsel.toml with every setting explained."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from jetsel.cli.options import ConfigFile

if TYPE_CHECKING:
    from msgspec import Struct

    from jetsel.base.sections import Sections

WIDTH = 100  # columns of a comment


def config(
    config: ConfigFile = None,
    check: Annotated[bool, typer.Option("--check", help="Check the file, sections of add-ons included.")] = False,
) -> None:
    """Print every setting as TOML, with its meaning, range, default and present value.

    To begin a file of your own: jetsel config > jetsel.toml
    """
    from jetsel.base.config import SECTIONS
    from jetsel.site import config_file

    path = config_file.locate(config)
    core = config_file.read(path)
    all_sections = [(core, SECTIONS), *((config_file.read_sections(path, one), one) for one in addon_sections())]
    if check:
        typer.echo(f"{path}: jetsel can use every setting" if path else "no configuration file was given or found")
        return
    typer.echo(f"# {path}" if path else "# Built-in defaults: no configuration file was given or found.")
    automatic = automatic_values(core)
    typer.echo("".join(as_toml(values, sections, automatic) for values, sections in all_sections), nl=False)


def addon_sections() -> Iterator[Sections[Any]]:
    """Yield the sections that each add-on decodes."""
    from jetsel.site.config_file import ADDONS

    for module in dict.fromkeys(ADDONS.values()):
        yield importlib.import_module(module).SECTIONS


def automatic_values(core: Any) -> dict[str, object]:
    """Return the defaults that depend on the machine or on other settings, by `section.key`. core: a Config."""
    from jetsel.base.config import calibrations_folder, power_folder
    from jetsel.base.endpoint import user_socket

    return {
        "server.endpoint": f"ipc://{user_socket()}",
        "models.calibrations": calibrations_folder(core.models),
        "host.engines": core.host.folder,
        "power.calibration": power_folder(core.power),
    }


def as_toml(values: Struct, sections: Sections[Any], automatic: Mapping[str, object]) -> str:
    """Return sections as TOML, each key below its meaning, unset keys as comments. automatic: of automatic_values."""
    from jetsel.base.sections import settings_in_effect

    text = ""
    for section, plain in settings_in_effect(values).items():
        if isinstance(plain, list):
            text += _array(section, plain, sections)
            continue
        kind = type(getattr(values, section))
        heading, meanings = heading_and_meanings(kind)
        text += f"\n\n{_comment(heading)}[{section}]\n"
        ranges = _value_ranges(kind)
        for key in sorted(kind.__struct_fields__, key=lambda key: isinstance(plain.get(key), dict)):  # tables last
            setting = f"{section}.{key}"
            value_note = f"default {automatic[setting]}" if setting in automatic else ranges[key]
            text += "\n" + _comment(f"{meanings[key].removesuffix('.')}{f' ({value_note})' if value_note else ''}.")
            text += _setting(section, key, plain.get(key), sections.examples[setting])
    return text


def _array(section: str, tables: list[dict[str, Any]], sections: Sections[Any]) -> str:
    """Return an array of tables (sections that may be repeated) as TOML, below a commented example of every key."""
    import tomli_w

    (kind,) = get_args(get_args(get_type_hints(sections.kind, include_extras=True)[section])[0])
    heading, meanings = heading_and_meanings(kind)
    example = "".join(f"{sections.examples[f'{section}.{key}']}\n    {meaning}\n" for key, meaning in meanings.items())
    text = f"\n\n{_comment(f'[[{section}]]: {heading}')}" + textwrap.indent(example, "# ")
    return text + "".join("\n" + tomli_w.dumps({section: [table]}) for table in tables)


def heading_and_meanings(kind: type[Struct]) -> tuple[str, dict[str, str]]:
    """Return a section's heading and each key's meaning: the first line of a docstring, and its lines `KEY: TEXT`."""
    heading, *lines = inspect.getdoc(kind).splitlines()  # type: ignore[union-attr]
    matches = (re.match(r"(\w+): (.*)", line) for line in lines)
    return heading, {match[1]: match[2] for match in matches if match}


def _setting(section: str, key: str, value: Any, example: str) -> str:
    """Return one key and its value as TOML; if it is None or empty, a comment with an example."""
    import tomli_w

    if value is None or value == {}:
        return f"# {'Unset' if value is None else 'Empty'}. Example: {example}\n"
    return tomli_w.dumps({section: {key: value}} if isinstance(value, dict) else {key: value})


def _value_ranges(kind: type[Struct]) -> dict[str, str]:
    """Return the range and default of each key of a section, as far as its type gives them."""
    import msgspec

    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    ranges = {}
    for key, rule in schema.items():
        typed = next((option for option in rule.get("anyOf", [rule]) if option.get("type") != "null"), rule)
        minimum, maximum, default = typed.get("minimum"), typed.get("maximum"), rule.get("default")
        parts = [", ".join(typed.get("enum", []))]
        if maximum is not None:
            parts.append(f"at most {maximum:,}" if minimum is None else f"{minimum:,} to {maximum:,}")
        if default not in (None, [], {}):
            parts.append(f"default {msgspec.json.encode(default).decode()}")
        ranges[key] = "; ".join(part for part in parts if part)
    return ranges


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2, break_long_words=False))
