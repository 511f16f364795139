"""Finds and reads the configuration file: the only code that reads a jetsel.toml."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from jetsel.base.config import SYSTEM_CONFIG, Config, parse
from jetsel.base.errors import ConfigError
from jetsel.base.sections import S, Sections, decode, parse_toml

VARIABLE = "JETSEL_CONFIG"

ADDONS = {
    "cameras": "jetsel.addons.cameras.config",
    "mqtt": "jetsel.addons.cameras.config",
    "fleet": "jetsel.addons.fleet.config",
}
"""By section that an add-on decodes: the module with the add-on's SECTIONS. The daemon ignores these sections."""


def locate(given: Path | None) -> Path | None:
    """Return the first of `given`, $JETSEL_CONFIG, and the user's and the system's file if they exist; or None."""
    given_path = given or os.environ.get(VARIABLE)
    if given_path:
        return Path(given_path)
    base = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '')}/.config"
    own = Path(base, "jetsel/jetsel.toml")
    return next((path for path in (own, Path(SYSTEM_CONFIG)) if path.exists()), None)


def locate_and_read(given: Path | None) -> Config:
    """Return the configuration that applies. given: the command line's file, None to locate it. Raises ConfigError."""
    return read(locate(given))


def endpoint_of(given: str | None, config: Path | None) -> str | None:
    """Return the daemon's address for a command: `given`, or server.endpoint in the file `config`.

    None if neither is set; a client then uses $JETSEL_ENDPOINT or the default addresses.
    """
    return given if given is not None or config is None else read(config).server.endpoint


def read(path: Path | None) -> Config:
    """Return the file's configuration, the defaults for None. Raises ConfigError that names the file.

    Sections of add-ons are accepted and not decoded.
    """
    return Config() if path is None else _read_file(path, lambda text: parse(text, ADDONS))


def read_sections(path: Path | None, sections: Sections[S]) -> S:
    """Return an add-on's sections of the file, their defaults for None. Raises ConfigError that names the file."""
    if path is None:
        return sections.kind()

    def decode_own(text: str) -> S:  # without the sections of jetsel and of other add-ons
        plain = parse_toml(text)
        return decode({name: plain[name] for name in sections.kind.__struct_fields__ if name in plain}, sections)

    return _read_file(path, decode_own)


def _read_file(path: Path, decode_text: Callable[[str], S]) -> S:
    try:
        content = path.read_bytes()
        if b"\0" in content:
            raise ConfigError("UTF-16, or not text: save it as UTF-8")
        return decode_text(content.decode("utf-8-sig"))  # editors on Windows write a byte order mark first
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; write one with: jetsel config > jetsel.toml") from None
