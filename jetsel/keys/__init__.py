"""CURVE keys in files: what the daemon, its clients and `jetsel keys` share of reading, checking and writing them."""

from jetsel.keys.certificate import Certificate, check_name, generate
from jetsel.keys.folder import AllowedKey, AllowedKeys, KeyFolder

__all__ = [
    "AllowedKey",
    "AllowedKeys",
    "Certificate",
    "KeyFolder",
    "check_name",
    "generate",
]
