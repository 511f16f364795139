"""Whether Triton's client gets the labels of `jetsel classify --json`. `python -m benchmarks.gateway_labels FOLDER`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import tritonclient.http as triton

from benchmarks.conditions import conditions
from benchmarks.servers import Server, fitted_daemon, gateway
from jetsel.zoo import STARTER, scan

AT_ONCE = 16
SUFFIXES = {".jpeg", ".jpg", ".png"}


def main() -> int:
    """Ask for all photographs both ways; return 1 where a label differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway_labels", description=__doc__)
    parser.add_argument("folder", type=Path, help="every photograph below it is sent")
    parser.add_argument("--models", type=Path, default=STARTER, help="a folder with one family (the starter family's)")
    args = parser.parse_args()
    paths = sorted(path for path in args.folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    (family,) = scan([args.models]).families
    print("# The gateway and the command line, photograph by photograph\n")
    print("\n".join(conditions()), flush=True)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as place, fitted_daemon(Path(place), args.models) as served:
        with gateway(Path(place), served) as opened:
            over_http = _labels(opened, family, paths)
        over_socket = _printed(served, paths)
    differing = [path for path, ours, theirs in zip(paths, over_http, over_socket, strict=True) if ours != theirs]
    print("\n".join(f"- {path}" for path in differing))
    print(f"{len(paths)} photographs, {AT_ONCE} at a time: {len(differing)} labels differ")
    return int(bool(differing))


def _labels(opened: Server, family: str, paths: list[Path]) -> list[str]:
    """Return what Triton's client is told, a batch of AT_ONCE photographs after the other."""
    found: list[str] = []
    with triton.InferenceServerClient(urlsplit(opened.address).netloc) as client:
        for first in range(0, len(paths), AT_ONCE):
            photographs = [path.read_bytes() for path in paths[first : first + AT_ONCE]]
            tensor = triton.InferInput("image", [len(photographs)], "BYTES")
            tensor.set_data_from_numpy(np.array(photographs, dtype=object))
            found += [label.decode() for label in client.infer(family, [tensor]).as_numpy("label")]
    return found


def _printed(served: Server, paths: list[Path]) -> list[str]:
    command = [sys.executable, "-m", "jetsel", "classify", "--json", "--endpoint", served.address, *map(str, paths)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line)["label"] for line in ended.stdout.splitlines()]


if __name__ == "__main__":
    raise SystemExit(main())
