"""Algorithm 1 on a pool of checkpoints: `python -m calibration.starter.pool --help`.

NAME is a recipe's, or a recipe's with a suffix (`xl-13=build/starter/xl-13.pt`): a network of that shape, whatever its
epoch; or an ONNX file with its manifest beside it. Each becomes a model of a family of its own in --out; every
photograph is recorded under each of them, and the steps of Algorithm 1 are printed as Markdown.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from calibration.papers.taylor.algorithm1 import select_models
from calibration.starter.export import Trained, manifest_of, put_labels, store_half, to_onnx
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.photographs import find_images
from jetsel.calibrate.record.recorder import loaded_models, record
from jetsel.zoo import Labels, Manifest, scan

FAMILY = "starter-pool"


def add(name: str, checkpoint: Path, data: Path, out: Path) -> None:
    """Export one checkpoint as a model of the pool; a published model, an ONNX file beside its manifest, as it is."""
    if checkpoint.suffix == ".onnx":
        published = msgspec.json.decode(checkpoint.with_suffix(".json").read_bytes(), type=Manifest)
        put_in(msgspec.structs.replace(published, name=name, family=FAMILY, file=f"{name}.onnx"), out)
        (out / f"{name}.onnx").write_bytes(checkpoint.read_bytes())
        return
    classes = len(Labels.read(data / "tiny100-classes.tsv").wnids)
    trained = Trained.read(name.split("-")[0], checkpoint, classes)
    with tempfile.TemporaryDirectory() as folder:
        model = to_onnx(trained.net, Path(folder) / "whole.onnx")
    weights = out / f"{name}.onnx"
    weights.write_bytes(store_half(model).SerializeToString(deterministic=True))
    parameters = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)
    manifest = manifest_of(trained, "1.0.0", weights, parameters, f"a checkpoint after {trained.epoch} epochs")
    put_in(msgspec.structs.replace(manifest, name=name, family=FAMILY), out)


def put_in(manifest: Manifest, out: Path) -> None:
    """Write the manifest beside its weights."""
    (out / f"{manifest.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Export, record, select, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="NAME=CHECKPOINT")
    parser.add_argument("--data", type=Path, required=True, help="folder with tiny100-classes.tsv")
    parser.add_argument("--photos", type=Path, required=True, help="labelled photographs, a folder for each class")
    parser.add_argument("--out", type=Path, default=Path("build/pool"), help="models and recording (%(default)s)")
    parser.add_argument("--theta", type=float, default=0.5, help="points (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    put_labels(options.data / "tiny100-classes.tsv", options.out)
    for given in options.models:
        name, _, checkpoint = given.partition("=")
        add(name, Path(checkpoint), options.data, options.out)
    family = scan([options.out]).families[FAMILY]
    found = find_images(options.photos, family.labels, None, need_labels=True)
    path = options.out / "pool.sqlite"
    with loaded_models(family) as engines:
        record(path, family, engines, found)
    seen = load(path, family).recording
    for first in (1, 5):
        right, costs = seen.is_among_best(first), seen.costs()
        chosen, steps = select_models(right, costs, seen.models, options.theta)
        print(f"\ntop-{first}, {len(seen.classes)} photographs, {len(seen.models)} candidates: {', '.join(chosen)}\n")
        print("| model | right % | ms |\n|---|---|---|")
        for i, model in enumerate(seen.models):
            print(f"| {model} | {100 * right[:, i].mean():.2f} | {costs[i]:.3f} |")
        print(
            "\n| step | adds | looked at | best there % | gain, points | right so far % | kept |\n" + "|---" * 7 + "|"
        )
        for number, step in enumerate(steps, 1):
            print(
                f"| {number} | {step.added} | {step.failing} | {100 * step.accuracy[step.added]:.2f} "
                f"| {step.gain_points:.2f} | {100 * step.total:.2f} | {'yes' if step.kept else 'no'} |"
            )


if __name__ == "__main__":
    main()
