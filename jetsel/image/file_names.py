"""How files of images are named, which names only systems and programs give, and the record of a file left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})
"""How the names of files end that jetsel.image reads."""

BY_SYSTEMS = ("hidden", "made by a system")
"""The kinds of what systems and programs make, and no person."""

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
    """A file or folder that is not used. reason: the kind, then `: ` and the particulars."""

    path: Path
    reason: str


def system_kind(name: str, *, is_folder: bool) -> str | None:
    """Return which kind of a system's or program's own file or folder has this name, None if a person may have it."""
    if name.startswith("."):
        return BY_SYSTEMS[0]
    return BY_SYSTEMS[1] if (_FOLDERS if is_folder else _FILES).fullmatch(name) else None


def count_reasons(reasons: Iterable[str]) -> dict[str, int]:
    """Return how often each kind of reason stands there, most frequent first: the words before the first `: `."""
    return dict(Counter(reason.partition(": ")[0] for reason in reasons).most_common())
