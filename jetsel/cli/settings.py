"""Which configuration file applies, and its values: the only code that reads a jetsel.toml."""

from __future__ import annotations

from pathlib import Path

from jetsel.config import SYSTEM_CONFIG, Config, parse
from jetsel.errors import ConfigError


def locate(given: Path | None) -> Path | None:
    """Return the file to read: the one given, the system's where it exists, else None for the built-in defaults."""
    if given is not None:
        return given
    system = Path(SYSTEM_CONFIG)
    return system if system.exists() else None


def read(path: Path | None) -> Config:
    """Return the file's configuration, or the defaults for None; raises ConfigError that names the file."""
    if path is None:
        return Config()
    try:
        return parse(path.read_text("utf-8"))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; write one with: jetsel config > jetsel.toml") from None
