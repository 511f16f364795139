"""Names: rules for models and folders, comparison of names, and files that only systems and programs make."""

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

MAX_LENGTH = 64
RULE = f"use small letters a to z, digits, _ . and -, a letter or digit first, at most {MAX_LENGTH}"
_DIGEST = 8  # hexadecimal digits


def is_plain(name: str) -> bool:
    """Return whether the name is valid for a model or family."""
    return len(name) <= MAX_LENGTH and re.match(PATTERN, name) is not None


def plain_name(text: str) -> str | None:
    """Return a valid model or family name made from a text, such as a file's name; None if letters would be lost."""
    letters = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()
    if any(letter.isalnum() and not letter.isascii() for letter in bare):
        return None  # different texts would give the same name
    return re.sub(r"[^a-z0-9_.-]+", "-", bare).strip("-_.")[:MAX_LENGTH] or None


def path_text(path: Path) -> str:
    """Return a path as text for files and messages: bytes that are not UTF-8 become escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def exact(name: str) -> str:
    """Return the name's NFC form without outer blanks: macOS stores accents separately (NFD), other systems do not."""
    return unicodedata.normalize("NFC", name).strip()


def folded(name: str) -> str:
    """Return a form that is equal for names that differ only in case, outer blanks, or `_` for a blank."""
    return exact(exact(name).replace("_", " ").casefold())


class NumberByName:
    """Finds the number of a name: by exact match, otherwise by folded match if only one number has it."""

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Store names with their numbers; both may repeat."""
        self._exact: defaultdict[str, set[int]] = defaultdict(set)
        self._folded: defaultdict[str, set[int]] = defaultdict(set)
        for name, number in pairs:
            self._exact[exact(name)].add(number)
            self._folded[folded(name)].add(number)

    def get(self, name: str) -> int | None:
        """Return the number, None if the name is unknown or ambiguous."""
        for numbers in (self._exact.get(exact(name)), self._folded.get(folded(name))):
            if numbers is not None:
                return next(iter(numbers)) if len(numbers) == 1 else None
        return None


def folder_name(name: str) -> str:
    """Return the name of a folder for this name: the name itself if valid, otherwise its valid part and a digest."""
    same = exact(name)
    bare = re.sub(r"^(?=\.|\Z)", "_", re.sub(r"[/\0]", "_", same))  # a leading dot would hide the folder
    if bare == same and len(bare.encode()) <= 255:  # bytes, on Linux
        return bare
    return f"{bare.encode()[: 254 - _DIGEST].decode(errors='ignore')}-{digest_of(same)}"


def digest_of(name: str) -> str:
    """Return eight hexadecimal digits that tell names apart."""
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]


SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})
"""Suffixes of files that jetsel.image reads."""

BY_SYSTEMS = ("hidden", "made by a system")
"""The kinds of files that systems and programs make, not people."""

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
    """A file or folder that is not used. reason: the kind, then `: ` and details."""

    path: Path
    reason: str


def system_kind(name: str, *, is_folder: bool) -> str | None:
    """Return the kind of a file or folder name that systems or programs use, None if people may use the name."""
    if name.startswith("."):
        return BY_SYSTEMS[0]
    return BY_SYSTEMS[1] if (_FOLDERS if is_folder else _FILES).fullmatch(name) else None


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Return the number of reasons of each kind, most frequent first. The kind is the text before the first `: `."""
    return dict(Counter(reason.partition(": ")[0] for reason in reasons).most_common())
