"""Build the starter family with the command that owners use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jetsel.base.host_settings import HostSettings
from jetsel.zoo import STARTER, scan

LIMIT_S = 4 * 3600  # a slow board builds for minutes; what hangs is ended by the command's own limits
MODELS = {model.manifest.name: model.weights(100) for model in scan([STARTER]).families["starter"].models}


def build_starter(settings: HostSettings, precision: str, folder: Path) -> Mapping[str, Any]:
    """Run `jetsel models build`, and return what it says of each model by name; fails with what it printed."""
    config = folder / "jetsel.toml"
    config.write_text(
        f"[host]\ninterpreter = {json.dumps(settings.interpreter)}\nengines = {json.dumps(str(settings.folder))}\n"
    )
    command = [sys.executable, "-m", "jetsel", "models", "build", *MODELS, "--family", "starter", "--json"]
    command += ["--precision", precision, "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.stdout, done.stderr
    return {model["name"]: model for model in json.loads(done.stdout)["models"]}
