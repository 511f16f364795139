"""Z85 (ZeroMQ RFC 32): base 85 as Python's `base64` has it, five letters for four bytes, in letters of its own.

pyzmq has it too, and loads libzmq, which the daemon does without. Python's own `base64.z85encode` came with 3.13.
"""

from __future__ import annotations

import base64
import string

LETTERS = (string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#").encode()
_PYTHONS = (string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~").encode()
_TO_PYTHONS, _FROM_PYTHONS = bytes.maketrans(LETTERS, _PYTHONS), bytes.maketrans(_PYTHONS, LETTERS)


def encode(data: bytes) -> str:
    """Return the letters of so many times four bytes; raises ValueError for any other number."""
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes are not a multiple of four")
    return base64.b85encode(data).translate(_FROM_PYTHONS).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes; raises ValueError where these are no letters of Z85, no groups of five, or past 32 bits."""
    letters = text.encode("ascii")
    if len(letters) % 5 or not set(letters) <= set(LETTERS):
        raise ValueError("no text in Z85")
    return base64.b85decode(letters.translate(_TO_PYTHONS))
