"""One CURVE key as a text: the certificate files that pyzmq and CZMQ write, which both read back.

The format is ZPL (ZeroMQ RFC 4): comments from #, sections, and lines `name = "value"`. Keys are 40 letters of Z85
(RFC 32). `zmq.auth.load_certificate` reads the keys alone, from a path; we need the metadata too, and to read from a
descriptor whose owner and mode were looked at first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from jetsel.errors import ConfigError
from jetsel.keys import z85

KEY_LETTERS = 40  # 32 bytes in Z85, which has 5 letters for 4 bytes (RFC 32)
KEY_BYTES = 32  # Curve25519
_PRIME, _A24 = 2**255 - 19, 121665  # its field, and (486662 - 2) / 4 of its equation (RFC 7748, 4.1 and 5)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LINE = re.compile(r"""([A-Za-z0-9._-]+)\s*=\s*(["']?)(.*)\2""")


@dataclass(frozen=True)
class Certificate:
    """A key pair, or its public half alone. Keys are Z85 text; whoever has the secret one is its owner."""

    public: str
    secret: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict)


def generate() -> Certificate:
    """Return a new key pair."""
    from nacl.bindings import crypto_box_keypair  # libsodium, which clients without keys need not load

    public, secret = crypto_box_keypair()
    return Certificate(z85.encode(public), z85.encode(secret))


def check_name(name: str) -> str:
    """Return the name of a key, which is also a file's; raises ConfigError where it may not be one."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name for a key: 1 to 64 letters, digits and . _ @ -, the first a letter or digit; "
            "example: camera-1"
        )
    return name


def is_name(name: str) -> bool:
    """Whether a key may be called so."""
    return _NAME.fullmatch(name) is not None


def parse(text: str, where: str) -> Certificate:
    """Read a certificate; raises ConfigError, beginning with `where`, if it holds no public key or halves of two."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        found = None if line.lstrip().startswith("#") else _LINE.fullmatch(line.strip())
        if found is not None:
            values.setdefault(found[1], found[3])
    public, secret = values.pop("public-key", ""), values.pop("secret-key", None)
    if not is_key(public) or (secret is not None and not is_key(secret)):
        raise ConfigError(f"{where} holds no CURVE key: make one with: jetsel keys new")
    if secret is not None and _public_of(secret) != public:
        raise ConfigError(f"{where}: its public and its secret key belong to two pairs: make one with: jetsel keys new")
    return Certificate(public, secret, values)


def _public_of(secret: str) -> str:
    from nacl.bindings import crypto_scalarmult_base

    return z85.encode(crypto_scalarmult_base(z85.decode(secret)))


def write(certificate: Certificate, title: str) -> str:
    """Return the file's text. Metadata must be plain words: quotes and line ends have no escape in this format."""
    metadata = "".join(f'    {name} = "{value}"\n' for name, value in certificate.metadata.items())
    secret = f'    secret-key = "{certificate.secret}"\n' if certificate.secret is not None else ""
    return f'#   {title}\n\nmetadata\n{metadata}curve\n    public-key = "{certificate.public}"\n{secret}'


def is_key(text: str) -> bool:
    """Whether this is one key in Z85 of the right length, and one that somebody's secret key can belong to."""
    if len(text) != KEY_LETTERS:
        return False
    try:
        key = z85.decode(text)
    except ValueError:
        return False
    return len(key) == KEY_BYTES and not _is_of_small_order(key)


def _is_of_small_order(key: bytes) -> bool:
    """Whether it is one of the points, 0 among them, with which every secret key has a shared secret all know.

    Curve25519 has cofactor 8, so doubled three times they, and no others, are at infinity (RFC 7748: decoding the
    u-coordinate and doubling in section 5, the all-zero secret in 6.1).
    """
    x, z = int.from_bytes(key, "little") % 2**255 % _PRIME, 1
    for _ in range(3):
        larger, smaller = (x + z) ** 2 % _PRIME, (x - z) ** 2 % _PRIME
        between = larger - smaller
        x, z = larger * smaller % _PRIME, between * (larger + _A24 * between) % _PRIME
    return z == 0
