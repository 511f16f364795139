"""Fetch a file over the network, whole: what its hash does not begin with is refused."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path

from jetsel.errors import ManifestError

TIMEOUT_S = 60.0  # without a byte
_CHUNK_BYTES = 1 << 20


def download(url: str, path: Path, sha256_begins: str) -> None:
    """Write to `path` what stands at `url`; raises ManifestError where it cannot be had.

    sha256_begins: the first digits of its hash, in hexadecimal.
    """
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply, path.open("wb") as file:
            while chunk := reply.read(_CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
    except urllib.error.HTTPError as error:
        error.close()  # it is the connection too
        raise _refused(url, f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _refused(url, str(error.reason)) from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise _refused(url, str(error) or type(error).__name__) from error
    found = digest.hexdigest()
    if not found.startswith(sha256_begins):
        raise _refused(url, f"sha256 begins {found[: len(sha256_begins)]} where {sha256_begins} was published")


def _refused(url: str, reason: str) -> ManifestError:
    return ManifestError(f"{url}: {reason}; try again, or name another place of the same file with --from URL")
