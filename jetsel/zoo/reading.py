"""Read a file whole, once it is known to be one and no larger than it may be: folders of models may hold anything."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from jetsel.errors import ManifestError


def read_bounded(path: Path, at_most_bytes: int, what: str) -> bytes:
    """Return the file's bytes; what: what it should hold, for the message.

    Raises ManifestError where it is larger, and OSError where it cannot be read or is no file: a pipe would never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe would wait for a writer
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            code = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
            raise OSError(code, "it is no file", str(path))
        if found.st_size > at_most_bytes:
            raise ManifestError(
                f"{path}: larger than the {at_most_bytes} bytes that {what} may have; put the right file there"
            )
        return file.read(found.st_size + 1)  # one that grows meanwhile is damaged, and never read without end
