"""The simulated board and its faults, from the environment variable JETSEL_DOUBLE.

The variable holds a JSON object or the path of a file with one; a file is read again when it changes, so a test can
cause a fault in a process that is running. Its keys, all optional:

profile: "tx2" (the default), "orin" or "discrete"; any key of PROFILES may be given to change one value of it.
engine_bytes: what one deserialised engine takes of the GPU's memory, where it is not the size of its ONNX file.
scratch_bytes: an engine's device_memory_size, where it is not four times its largest inputs and outputs.
used_bytes: GPU memory that others hold.
build_ms: how long a build takes that its timing cache does not know (0).
unsupported_operator: an ONNX operator that the parser refuses.
faults: {name: true, or a value, or {"times": M}: at the first M chances}.

Faults: cuda_initialization (CUDA and builds cannot begin), deserialize_none, context_none, enqueue_false, enqueue_error
(a CUDA error, which every later call repeats), nan_outputs, mem_alloc_memory (out of memory), build_none, build_signal
(the number of the signal that ends the process).
"""

import json
import os
from pathlib import Path

PROFILES = {
    "tx2": {
        "gpu": "NVIDIA Tegra X2",
        "compute_capability": "6.2",
        "integrated": True,
        "fast_fp16": True,
        "fast_int8": False,
        "total_bytes": 8235577344,
        "cuda": [10, 2, 0],
    },
    "orin": {
        "gpu": "Orin",
        "compute_capability": "8.7",
        "integrated": True,
        "fast_fp16": True,
        "fast_int8": True,
        "total_bytes": 32895782912,
        "cuda": [12, 6, 0],
    },
    "discrete": {
        "gpu": "NVIDIA GeForce RTX 3060",
        "compute_capability": "8.6",
        "integrated": False,
        "fast_fp16": True,
        "fast_int8": True,
        "total_bytes": 12636192768,
        "cuda": [12, 6, 0],
    },
}
VARIABLE = "JETSEL_DOUBLE"

RULES = {}  # what this version of TensorRT wants, from its table; filled by `offer`

_chances = {}  # how often each fault could have happened so far
_read = {"stamp": None, "settings": {}}


def settings():
    """Return the whole JSON object."""
    text = os.environ.get(VARIABLE, "").strip() or "{}"
    if text.startswith("{"):
        stamp = text
    else:
        found = Path(text).stat()
        stamp = (text, found.st_mtime_ns, found.st_size, found.st_ino)
    if stamp != _read["stamp"]:
        if not text.startswith("{"):
            text = Path(text).read_text()
        _read.update(stamp=stamp, settings=json.loads(text))
    return _read["settings"]


def board(key):
    """Return one value of the board: the setting itself, else its profile's; None where neither has it."""
    found = settings()
    return found.get(key, PROFILES[found.get("profile", "tx2")].get(key))


def fault(name):
    """Count one chance for this fault; return its value where it happens now, else None."""
    wanted = settings().get("faults", {}).get(name)
    if wanted is None or wanted is False:
        return None
    if not isinstance(wanted, dict):
        return wanted
    _chances[name] = _chances.get(name, 0) + 1
    return _chances[name] <= wanted["times"] or None


def capability():
    """Return the GPU's compute capability, (major, minor)."""
    return tuple(int(part) for part in board("compute_capability").split("."))
