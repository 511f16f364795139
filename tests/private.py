"""What keeps the machine's own models, calibrations and settings out of tests and benchmarks: set before any starts."""

import os

NOWHERE = "/nonexistent"
FOLDERS = {"STATE_DIRECTORY": NOWHERE, "XDG_CONFIG_HOME": NOWHERE}


def leave_the_machines_folders() -> None:
    """Have this process and all that it starts find only what it is given, and the starter family."""
    os.environ.update(FOLDERS)
    for name in ("JETSEL_CONFIG", "JETSEL_ENDPOINT", "JETSEL_SOURCE"):
        os.environ.pop(name, None)
