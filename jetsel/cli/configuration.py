"""`jetsel config`: the effective configuration, as a jetsel.toml that could be read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from jetsel.cli.options import ConfigFile

if TYPE_CHECKING:
    from jetsel.config import Config


TABLES = ("models.backends", "power.labels")  # keys that hold a table of their own


def config(config: ConfigFile = None) -> None:
    """Print the effective configuration as TOML: the file's values, and the defaults of all that it leaves out.

    To begin a file of your own: jetsel config > jetsel.toml
    """
    from jetsel.cli import settings

    path = settings.locate(config)
    values = settings.read(path)
    typer.echo(f"# {path}" if path else "# Built-in defaults: no configuration file was given or found.")
    typer.echo(as_toml(values), nl=False)


def as_toml(config: Config) -> str:
    """Return the configuration as TOML; keys that are left to jetsel stand as comments with an example."""
    import tomli_w

    from jetsel.config import EXAMPLES, calibrations_folder, effective, engines_folder, power_folder
    from jetsel.endpoint import user_socket

    taken = {
        "server.endpoint": f"ipc://{user_socket()}",
        "models.calibrations": calibrations_folder(config.models),
        "host.engines": engines_folder(config.host),
        "power.calibration": power_folder(config.power),
    }
    text = ""
    for section, values in effective(config).items():
        tables = {key: values[key] for key in values if f"{section}.{key}" in TABLES}
        plain = {key: value for key, value in values.items() if key not in tables}
        text += "\n" + tomli_w.dumps({section: plain})
        for key in getattr(config, section).__struct_fields__:
            place = f"{section}.{key}"
            if key not in values:
                chosen = f", which takes {taken[place]}" if place in taken else ""
                text += f"# {key} is left to jetsel{chosen}; example: {EXAMPLES[place]}\n"
        for key, table in tables.items():  # last: what follows its head would belong to it
            empty = f"# {key} is empty; example: {EXAMPLES[f'{section}.{key}']}\n"
            text += tomli_w.dumps({section: {key: table}}) if table else empty
    return text
