"""`jetsel config`: the effective configuration, each setting explained, as a jetsel.toml that could be read back."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

import typer

from jetsel.cli.options import ConfigFile

if TYPE_CHECKING:
    from msgspec import Struct

    from jetsel.base.config import Config

WIDTH = 100  # of a comment


def config(config: ConfigFile = None) -> None:
    """Print every setting as TOML, with its meaning, range, default and present value.

    To begin a file of your own: jetsel config > jetsel.toml
    """
    from jetsel.site import config_file

    path = config_file.locate(config)
    values = config_file.read(path)
    typer.echo(f"# {path}" if path else "# Built-in defaults: no configuration file was given or found.")
    typer.echo(as_toml(values), nl=False)


def as_toml(config: Config) -> str:
    """Return the configuration as TOML; what is unset stands as a comment with an example."""
    from jetsel.base.config import calibrations_folder, effective, engines_folder, power_folder
    from jetsel.base.endpoint import user_socket

    automatic = {
        "server.endpoint": f"ipc://{user_socket()}",
        "models.calibrations": calibrations_folder(config.models),
        "host.engines": engines_folder(config.host),
        "power.calibration": power_folder(config.power),
    }
    text = ""
    plain = effective(config)
    cameras = plain.pop("cameras")
    for section, values in plain.items():
        kind = type(getattr(config, section))
        heading, meanings = explained(kind)
        text += f"\n\n{_comment(heading)}[{section}]\n"
        ranges = _ranges(kind)
        for key in sorted(kind.__struct_fields__, key=lambda key: isinstance(values.get(key), dict)):  # tables last
            place = f"{section}.{key}"
            taken = f"default {automatic[place]}" if place in automatic else ranges[key]
            text += "\n" + _comment(f"{meanings[key].removesuffix('.')}{f' ({taken})' if taken else ''}.")
            text += _setting(section, key, values.get(key))
    return text + _cameras(cameras)


def _cameras(cameras: list[dict[str, Any]]) -> str:
    """Return the cameras as TOML, below a comment with an example of all that one may have."""
    import tomli_w

    from jetsel.base.camera_config import Camera
    from jetsel.base.config import EXAMPLES

    heading, meanings = explained(Camera)
    example = "".join(f"{EXAMPLES[f'cameras.{key}']}\n    {meaning}\n" for key, meaning in meanings.items())
    text = f"\n\n{_comment(f'[[cameras]]: {heading}')}" + textwrap.indent(example, "# ")
    return text + "".join("\n" + tomli_w.dumps({"cameras": [camera]}) for camera in cameras)


def explained(kind: type[Struct]) -> tuple[str, dict[str, str]]:
    """Return what a section is about, and what each of its keys means, by its docstring."""
    heading, *lines = inspect.getdoc(kind).splitlines()  # type: ignore[union-attr]
    found = (re.match(r"(\w+): (.*)", line) for line in lines)
    return heading, {one[1]: one[2] for one in found if one}


def _setting(section: str, key: str, value: Any) -> str:
    import tomli_w

    from jetsel.base.config import EXAMPLES

    if value is None or value == {}:
        return f"# {'Unset' if value is None else 'Empty'}. Example: {EXAMPLES[f'{section}.{key}']}\n"
    return tomli_w.dumps({section: {key: value}} if isinstance(value, dict) else {key: value})


def _ranges(kind: type[Struct]) -> dict[str, str]:
    """Return which values each key of a section may have, and its default, as far as its type says."""
    import msgspec

    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    found = {}
    for key, said in schema.items():
        typed = next((one for one in said.get("anyOf", [said]) if one.get("type") != "null"), said)
        least, most, default = typed.get("minimum"), typed.get("maximum"), said.get("default")
        parts = [", ".join(typed.get("enum", []))]
        if most is not None:
            parts.append(f"at most {most:,}" if least is None else f"{least:,} to {most:,}")
        if default not in (None, [], {}):
            parts.append(f"default {msgspec.json.encode(default).decode()}")
        found[key] = "; ".join(part for part in parts if part)
    return found


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2, break_long_words=False))
