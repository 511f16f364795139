"""Rules for names of models and folders, comparison of class names, and file names that only programs use."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PATTERN = r"^[a-z0-9][a-z0-9_.-]*\Z"
"""Pattern of model and family names, which appear in file names, settings and URLs."""

MAX_LENGTH = 64  # characters
RULE = f"use small letters a to z, digits, _ . and -, a letter or digit first, at most {MAX_LENGTH}"
_DIGEST = 8  # hexadecimal digits


def is_plain(name: str) -> bool:
    """Return whether the name is valid for a model or family."""
    return len(name) <= MAX_LENGTH and re.match(PATTERN, name) is not None


def plain_name(text: str) -> str | None:
    """Return a valid model or family name made from a text, such as a file's name, None if nothing remains.

    Letters of other alphabets give None too, since dropping them would give different texts the same name.
    """
    decomposed = unicodedata.normalize("NFKD", text)
    ascii_text = "".join(letter for letter in decomposed if not unicodedata.combining(letter)).casefold()
    if any(letter.isalnum() and not letter.isascii() for letter in ascii_text):
        return None
    return re.sub(r"[^a-z0-9_.-]+", "-", ascii_text).strip("-_.")[:MAX_LENGTH] or None


def path_text(path: Path) -> str:
    """Return a path as text for files and messages: bytes of a Linux file name that are not UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def exact(name: str) -> str:
    """Return a class name in the form for exact comparison: Unicode's NFC, without blanks at the ends.

    macOS stores an accent as a character of its own (NFD), other systems do not (NFC).
    """
    return unicodedata.normalize("NFC", name).strip()


def folded(name: str) -> str:
    """Return a class name in the form for tolerant comparison: as `exact`, with small letters and blanks for `_`."""
    return exact(exact(name).replace("_", " ").casefold())


class NumberByName:
    """Finds a class's number by a name of it: one equal by `exact`, otherwise one equal by `folded`."""

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        """pairs: names and class numbers; a class may have several names, and a name several classes."""
        self._exact: defaultdict[str, set[int]] = defaultdict(set)
        self._folded: defaultdict[str, set[int]] = defaultdict(set)
        for name, number in pairs:
            self._exact[exact(name)].add(number)
            self._folded[folded(name)].add(number)

    def get(self, name: str) -> int | None:
        """Return the number of the only class with this name, None if no class or several classes have it."""
        for numbers in (self._exact.get(exact(name)), self._folded.get(folded(name))):
            if numbers is not None:
                return next(iter(numbers)) if len(numbers) == 1 else None
        return None


def folder_name(name: str) -> str:
    """Return a valid Linux folder name for a class name: the class name if it is valid, else its valid part and a hash.

    The hash ensures that different class names get different folders.
    """
    exact_name = exact(name)
    valid_part = re.sub(r"^(?=\.|\Z)", "_", re.sub(r"[/\0]", "_", exact_name))  # a leading dot would hide the folder
    if valid_part == exact_name and len(valid_part.encode()) <= 255:  # bytes, on Linux
        return valid_part
    return f"{valid_part.encode()[: 254 - _DIGEST].decode(errors='ignore')}-{digest_of(exact_name)}"


def digest_of(name: str) -> str:
    """Return the first eight hexadecimal digits of a name's SHA-256."""
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]


SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})
"""Suffixes of files that jetsel.image reads."""

BY_SYSTEMS = ("hidden", "made by a system")  # the kinds that `system_kind` returns

_PARTIAL = r".*\.(part|partial|crdownload|opdownload|download|filepart|aria2|tmp|temp|ffs_tmp|!sync|!ut|!qb|bts)"
_FOLDERS = re.compile(
    r"@(eadir|tmp|recycle|recently-snapshot|sharebin|sharesnap|syno.*|gmt-.*)|[#~]snapshot|#recycle"  # file servers
    r"|__macosx|network trash folder|temporary items|thevolumesettingsfolder"  # macOS, also by AppleShare
    r"|\$recycle\.bin|system volume information|(?-i:RECYCLE[RD])|found\.\d{3}|lost\.dir|lost\+found"  # file systems
    rf"|_gsdata_|_gstmp|__pycache__|.*\.lrdata|{_PARTIAL}",
    re.IGNORECASE,
)
_FILES = re.compile(
    r"(eh)?thumbs(_vista)?\.db(:encryptable)?|desktop\.ini|albumart(small|_\{.*\}_(small|large))\.jpg|~\$.*"  # Windows
    r"|.*[:\uf03a](zone\.identifier|afp_(afpinfo|resource))(:\$data)?"  # streams of NTFS, as files
    r"|icon[\r\uf00d]|picasa\.ini|.*@syno\w+|syno(photo|file)_.*|.*~|#.*#|sync\.ffs_(db|lock)"
    rf"|{_PARTIAL}",
    re.IGNORECASE | re.DOTALL,
)


class LeftOut(NamedTuple):
    """A file or folder that a command leaves out. reason: the kind of reason, then perhaps `: ` and details."""

    path: Path
    reason: str


def system_kind(name: str, *, is_folder: bool) -> str | None:
    """Return the kind of a name that only programs use, as for thumbnails and recycle bins; None for other names."""
    if name.startswith("."):
        return BY_SYSTEMS[0]
    return BY_SYSTEMS[1] if (_FOLDERS if is_folder else _FILES).fullmatch(name) else None


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Return kind -> count of reasons for leaving files out, most frequent first; the kind ends at the first `: `."""
    return dict(Counter(reason.partition(": ")[0] for reason in reasons).most_common())
