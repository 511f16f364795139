"""Everything that is kept on disk: written, flushed, hashed, numbered, swapped and rolled back in one way."""

from jetsel.store.files import flush, locked, open_regular, read_bounded, repair_of, replace, sha256_of, write
from jetsel.store.versions import NONE, Versions, publish, withdraw, working_folder

__all__ = [
    "NONE",
    "Versions",
    "flush",
    "locked",
    "open_regular",
    "publish",
    "read_bounded",
    "repair_of",
    "replace",
    "sha256_of",
    "withdraw",
    "working_folder",
    "write",
]
