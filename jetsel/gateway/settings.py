"""The settings of `jetsel gateway`: its address, which clients it admits, and what it accepts."""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from jetsel.base.errors import ConfigError
from jetsel.base.files import read_secret

FEWEST_TOKEN_CHARACTERS = 16


@dataclass(frozen=True)
class GatewaySettings:
    """Settings of one gateway. endpoint: the daemon's address, None for the default one.

    token: the secret that each request must send, None if requests need none. max_body_mb: largest body of a request.
    concurrency: most requests at a time. timeout_ms: time limit of one request to the daemon. thumbnails: number of
    recent images of which the page can show thumbnails. behind_proxy: whether a reverse proxy authenticates clients.
    """

    endpoint: str | None = None
    token: str | None = None
    max_body_mb: float = 64.0
    concurrency: int = 256
    timeout_ms: float = 30_000.0
    thumbnails: int = 0
    behind_proxy: bool = False


def parse_address(listen: str) -> tuple[str, int]:
    """Return host and port from --listen: HOST:PORT, or [HOST]:PORT for IPv6; raises ConfigError with an example."""
    host, colon, port = listen.rpartition(":")
    is_bad = "/" in host or (":" in host) != (host[:1] + host[-1:] == "[]")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or is_bad or not port.isascii() or not port.isdecimal() or not 0 <= int(port) <= 65_535:
        raise ConfigError(f"--listen {listen}: use HOST:PORT, as in 127.0.0.1:8000 or [::1]:8000")
    return host, int(port)


def require_authentication(host: str, *, token: str | None, behind_proxy: bool) -> None:
    """Raise ConfigError if other machines could reach the gateway and nothing authenticates them."""
    ip = ip_address(host)
    is_loopback = host == "localhost" if ip is None else ip.is_loopback
    if token is None and not behind_proxy and not is_loopback:
        raise ConfigError(
            f"--listen {host}: other machines could send requests: use --token-file with a secret for them, "
            "or --behind-proxy if a reverse proxy authenticates them (docs/remote-access.md has examples)"
        )


def ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address in a text such as 127.0.0.1 or ::1, None if it is none."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def read_token(path: Path) -> str:
    """Return the token in a file; raises ConfigError if others may read the file, or it is short or not ASCII."""
    token = read_secret(path, "--token-file").strip()
    if not token.isascii() or len(token) < FEWEST_TOKEN_CHARACTERS or not token.isprintable() or " " in token:
        raise ConfigError(
            f"--token-file {path}: it holds no secret of {FEWEST_TOKEN_CHARACTERS} characters or more: "
            f"(umask 077; openssl rand -hex 32 > {path})"
        )
    return token


def has_token(header: str | None, token: str) -> bool:
    """Whether an Authorization header, None if none was sent, holds the token (RFC 6750, section 2.1)."""
    scheme, _, sent = (header or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), token.encode())
