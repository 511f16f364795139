"""What multiplexers say of photographs that they have not seen, beside one that learned from them: cross-fitting.

Whatever is fitted or judged by a multiplexer's word on a photograph that it learned from would believe it too much.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import ManifestError
from jetsel.store import read_bounded
from jetsel.store.arrays import MAX_BYTES, pack, unpack
from jetsel.zoo.store import TRAIN, Model


def held_out_file(said: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Return the content of a multiplexer's `held_out` file.

    said: by the SHA-256 of a photograph's file, in hexadecimal, the logits (N + 1,) of one that had not seen it.
    """
    photographs = np.frombuffer(bytes.fromhex("".join(said)), np.uint8).reshape(len(said), 32)
    return pack({"photographs": photographs, "logits": np.stack(list(said.values())).astype(np.float32)})


def read_held_out(multiplexer: Model) -> dict[str, NDArray[np.float32]]:
    """Return what `held_out_file` was given. Raises ManifestError where it is not the manifest's, or cannot be read."""
    mux = multiplexer.manifest.multiplexes
    assert mux is not None
    path = multiplexer.directory / mux.held_out
    try:
        content = read_bounded(path, MAX_BYTES)
        if hashlib.sha256(content).hexdigest() != mux.held_out_sha256:
            raise ValueError("its sha256 is not that of its manifest")
        arrays = unpack(content)
        photographs, logits = arrays["photographs"], arrays["logits"]
        if photographs.dtype != np.uint8 or photographs.shape != (len(logits), 32):
            raise ValueError(f"photographs are {photographs.dtype} {photographs.shape}")
        if logits.dtype != np.float32 or logits.shape != (len(photographs), len(mux.models) + 1):
            raise ValueError(f"logits are {logits.dtype} {logits.shape}")
    except (OSError, ValueError, LookupError) as error:
        raise ManifestError(f"{path}: cannot be used: {error}: {TRAIN} again") from error
    return {row.tobytes().hex(): logits[place] for place, row in enumerate(photographs)}
