"""How many parts the dotted keys of a TOML text have: its parsers take time squared with them, for each key below."""

from __future__ import annotations

import re

MAX_KEY_PARTS = 16  # the deepest key of ours has 3

_ENDS_KEY = frozenset("=,[]{}\n")
# Strings of four kinds and comments, each to its end, or the line's or text's (so that none is looked through twice),
# and the signs that matter (TOML 1.0.0). Of up to five quotes at the end of a long string the first two are its own.
_TOKEN = re.compile(
    r'"""[^"\\]*(?:(?:\\.|""?(?!"))[^"\\]*)*(?:"{3,5})?'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
    r"|'[^'\n]*'?|#[^\n]*|[.=,\[\]{}\n]",
    re.DOTALL,
)


def line_of_deep_key(text: str) -> int | None:
    """Return the line, from 1, of the first key of over MAX_KEY_PARTS parts; None where there is none.

    Counted are dots between two of the signs that end a key or a value; a number has one. Behind what is no TOML the
    count may be wrong, which no parser comes to.
    """
    dots = 0
    for found in _TOKEN.finditer(text):
        sign = found[0]
        if sign == ".":
            dots += 1
            if dots >= MAX_KEY_PARTS:
                return text.count("\n", 0, found.start()) + 1
        elif sign in _ENDS_KEY:
            dots = 0
    return None
