"""A calibration as plain values, for printing and comparing: whatever its fields are, and each array by its content."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np

from jetsel.policies.calibration import Calibration


def as_plain(calibration: Calibration) -> dict[str, Any]:
    """Return every field by its name as JSON's kinds; an array as its dtype, its shape and a hash of its values.

    Two calibrations are the same where this is.
    """
    plain: dict[str, Any] = msgspec.to_builtins(calibration, enc_hook=_array)
    return plain


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
        return f"{value.dtype} {value.shape}, sha256 {digest}..."
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a calibration holds a {type(value).__name__}")
