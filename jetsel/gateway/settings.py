"""What `jetsel gateway` is told: where it listens, whom it lets in, and what it accepts."""

from __future__ import annotations

import hmac
import ipaddress
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ConfigError

MOST_TOKEN_BYTES = 4096
FEWEST_TOKEN_CHARACTERS = 16


@dataclass(frozen=True)
class Settings:
    """endpoint: the daemon's, None as clients find it. token: what a request must bear, None for none.

    max_body_mb: of one request. concurrency: requests at once. thumbnails: how many pictures that went
    through the gateway are kept small, in memory, for the page.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    endpoint: str | None = None
    token: str | None = None
    max_body_mb: float = 64.0
    concurrency: int = 256
    timeout_ms: float = 30_000.0
    thumbnails: int = 0
    behind_proxy: bool = False


def address(listen: str) -> tuple[str, int]:
    """Read HOST:PORT, [HOST]:PORT for IPv6; raises ConfigError with an example."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise ConfigError(f"--listen {listen}: it is HOST:PORT, as in 127.0.0.1:8000 or [::1]:8000")
    return host, int(port)


def check_reach(host: str, *, token: str | None, behind_proxy: bool) -> None:
    """Raise ConfigError where others could reach the gateway, and nothing says who they are."""
    if token is None and not behind_proxy and not _is_loopback(host):
        raise ConfigError(
            f"--listen {host}: others could ask from afar: give --token-file with a secret that they must send, or "
            "--behind-proxy where a reverse proxy asks who they are (docs/deploy.md has examples)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """Return the secret in a file; raises ConfigError where it cannot be read, is short, or is for all to read."""
    try:
        mode = path.stat().st_mode
        with path.open(encoding="ascii") as file:
            token = file.read(MOST_TOKEN_BYTES).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--token-file {path}: cannot be read: {error}") from None
    if stat.S_IMODE(mode) & 0o007 and os.name == "posix":
        raise ConfigError(f"--token-file {path}: everybody may read it: chmod o-rwx {path}")
    if len(token) < FEWEST_TOKEN_CHARACTERS or not token.isprintable() or " " in token:
        raise ConfigError(
            f"--token-file {path}: it holds no secret of {FEWEST_TOKEN_CHARACTERS} characters or more: "
            f"(umask 077; openssl rand -hex 32 > {path})"
        )
    return token


def bears(header: str | None, token: str) -> bool:
    """Whether an Authorization header bears the token (RFC 6750, section 2.1)."""
    scheme, _, given = (header or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
