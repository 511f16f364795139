"""Publish one trained model: `python -m calibration.starter.export NAME` writes the ONNX file and its manifest."""

from __future__ import annotations

import argparse
import hashlib
import json
import tarfile
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from calibration.starter.data import HELD_OUT_PER_CLASS, MEAN, SIDE_PX, STD
from calibration.starter.measure import (
    TRAINED,
    Photographs,
    inputs_of,
    latencies_ms,
    read_photographs,
)
from calibration.starter.nets import SHAPES, Net, multiply_accumulates
from calibration.starter.train import RECIPES
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import InputSpec
from jetsel.zoo import STARTER, Labels, Manifest
from jetsel.zoo.manifest import Provenance

OPSET = 13  # ONNX Runtime 1.10, the last for Python 3.6, loads it; so does TensorRT 8.2
TOLERANCE = 1e-4  # of a logit, between torch and ONNX Runtime on the same float32 weights
FAMILY = "starter"
NOTICE = (
    "Weights trained on photographs that are for research only (a selection of ImageNet by way of Tiny ImageNet): "
    "use them for research and to try jetsel out, and train on photographs of your own for anything else."
)
SPEC = InputSpec(
    width_px=SIDE_PX,
    height_px=SIDE_PX,
    resize="shorter-side",
    interpolation="area",
    crop="center",
    channels="rgb",
    mean=MEAN,
    std=STD,
)


@dataclass(frozen=True)
class Trained:
    """One checkpoint: the averaged network, ready to run, and how it came about."""

    name: str
    net: Net
    epoch: int
    seconds: float
    log: list[dict[str, float]]

    @property
    def finished(self) -> bool:
        """Whether the recipe has no epochs left."""
        return self.epoch >= RECIPES[self.name].epochs

    @classmethod
    def read(cls, name: str, path: Path, classes: int) -> Trained:
        """Read what `train` wrote; raises SystemExit that names the command where there is nothing."""
        if not path.exists():
            raise SystemExit(f"{path}: no checkpoint; run python -m calibration.starter.train {name}")
        state: Mapping[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
        net = Net(SHAPES[name], classes)
        net.load_state_dict(state["average"])
        return cls(name, net.eval(), state["epoch"], state["seconds"], state["log"])


def to_onnx(net: Net, path: Path) -> ModelProto:
    """Write the network as ONNX with float32 weights, batch normalisation folded in, any batch size."""
    example = torch.zeros(1, 3, SPEC.height_px, SPEC.width_px)
    batch = {0: "n"}
    with warnings.catch_warnings():
        # torch deprecates this exporter; the one it prefers now stays at opset 18, whatever is asked.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            net.eval(),
            (example,),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=["image"],
            output_names=["logits", "embedding"],
            dynamic_axes={"image": batch, "logits": batch, "embedding": batch},
        )
    model = onnx.load(str(path))
    if any(node.op_type == "BatchNormalization" for node in model.graph.node):
        raise SystemExit(f"{path.name}: a batch normalisation was not folded into its convolution")
    return model


def store_half(model: ModelProto) -> ModelProto:
    """Return the model with its matrices and kernels as float16, each cast to float32 before use.

    Halves the file and costs nothing when running: ONNX Runtime casts once, when it loads. Vectors (biases) stay.
    """
    small = ModelProto()
    small.CopyFrom(model)
    casts = []
    for tensor in small.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) < 2:
            continue
        half = numpy_helper.to_array(tensor).astype(np.float16)
        if not np.isfinite(half).all():
            raise SystemExit(f"{tensor.name}: a weight is too large for float16")
        name, stored = tensor.name, f"{tensor.name}_half"
        tensor.CopyFrom(numpy_helper.from_array(half, stored))
        casts.append(helper.make_node("Cast", [stored], [name], name=f"{name}_cast", to=TensorProto.FLOAT))
    nodes = [*casts, *small.graph.node]
    del small.graph.node[:]
    small.graph.node.extend(nodes)
    return small


def casts_after_load(path: Path, scratch: Path) -> int:
    """How many casts ONNX Runtime would carry out at each run: those left in the graph that it makes at load."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(scratch / "optimised.onnx")
    options.log_severity_level = 3  # it warns that the file suits this machine alone
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return sum(node.op_type == "Cast" for node in onnx.load(options.optimized_model_filepath).graph.node)


def outputs_of(path: Path, inputs: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits and embeddings by ONNX Runtime, as the daemon runs it."""
    engine = OnnxEngine(path.name, path, concurrency=1, threads=1)
    found = [engine.infer(inputs[i : i + 100]) for i in range(0, len(inputs), 100)]
    return np.concatenate([f.logits for f in found]), np.concatenate(
        [f.embedding for f in found if f.embedding is not None]
    )


def check(net: Net, whole: Path, half: Path, photographs: Photographs, scratch: Path) -> None:
    """Compare torch with both files on the photographs, and print what storing float16 costs; raises SystemExit."""
    inputs = inputs_of(photographs, SPEC, SIDE_PX)
    with torch.no_grad():
        expected = [net(torch.from_numpy(inputs[i : i + 100])) for i in range(0, len(inputs), 100)]
    torch_outputs = [torch.cat(outputs).numpy() for outputs in zip(*expected, strict=True)]
    apart = max(float(np.abs(a - b).max()) for a, b in zip(torch_outputs, outputs_of(whole, inputs), strict=True))
    if apart > TOLERANCE:
        raise SystemExit(f"ONNX Runtime and torch differ by {apart:.1e} on the same weights, more than {TOLERANCE:.0e}")
    onnx.checker.check_model(str(half), full_check=True)
    left = casts_after_load(half, scratch)
    if left:
        raise SystemExit(f"ONNX Runtime would carry out {left} casts at each run: they were not folded at load")
    logits, _ = outputs_of(half, inputs)
    difference = float(np.abs(logits - torch_outputs[0]).max())
    agree = float((logits.argmax(1) == torch_outputs[0].argmax(1)).mean())
    engines = [OnnxEngine(path.name, path, concurrency=1, threads=1) for path in (half, whole)]
    medians = np.median(latencies_ms(engines, [inputs, inputs], rounds=30), axis=2)
    right = float((logits.argmax(1) == photographs.classes).mean())
    print(
        f"float32 in ONNX Runtime and torch: {apart:.1e} apart. Stored as float16: logits at most {difference:.4f} "
        f"apart, {100 * agree:.2f} % of {len(inputs)} answers the same, held-out top-1 {100 * right:.2f} %, "
        f"file {half.stat().st_size / whole.stat().st_size:.2f} times as large, "
        f"latency {np.median(medians[0] / medians[1]):.3f} times as long"
    )


def source_of(trained: Trained, photographs: int, classes: int) -> str:
    """One sentence on where the weights came from."""
    recipe = RECIPES[trained.name]
    taught = f", distilled from {' and '.join(recipe.teachers)}" if recipe.teachers else ""
    if recipe.tuned is not None:
        return (
            f"{recipe.tuned} fine-tuned by the jetsel project for images of the night: {photographs} photographs of "
            f"{classes} classes, darkened by calibration/starter/night.py, taught by what {recipe.teachers[0]} says of "
            f"them by day: {trained.epoch} epochs, seed {recipe.seed}, recipe {trained.name} in calibration/starter."
        )
    epochs = f"{trained.epoch} epochs" if trained.finished else f"{trained.epoch} of {recipe.epochs} epochs"
    return (
        f"Trained from scratch by the jetsel project on {photographs} photographs of {classes} classes{taught}: "
        f"{epochs}, seed {recipe.seed}, recipe {trained.name} in calibration/starter."
    )


def manifest_of(trained: Trained, version: str, weights: Path, parameters: int, source: str) -> Manifest:
    """The manifest of the weights, with what is counted and hashed filled in."""
    return Manifest(
        name=trained.name,
        version=version if trained.finished else f"{version}-unfinished.{trained.epoch}",
        family=FAMILY,
        file=weights.name,
        sha256=hashlib.sha256(weights.read_bytes()).hexdigest(),
        labels="labels.tsv",
        input=SPEC,
        embedding_width=trained.net.head.in_features,
        multiply_accumulates=multiply_accumulates(trained.net, SPEC.height_px, SPEC.width_px),
        parameters=parameters,
        provenance=Provenance(source=source, notice=NOTICE),
    )


def put_labels(source: Path, folder: Path) -> None:
    """Put the labels beside the manifests; raises SystemExit where others are: another family's folder."""
    target = folder / "labels.tsv"
    if target.exists() and target.read_bytes() != source.read_bytes():
        raise SystemExit(f"{target} differs from {source}: a family has one set of labels; publish into another folder")
    if not target.exists():
        target.write_bytes(source.read_bytes())


def put(content: bytes, path: Path) -> None:
    """Write under a temporary name and rename, so that no reader meets half a file."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.rename(path)


def publish(trained: Trained, version: str, data: Path, out: Path, records: Path) -> None:
    """Export, check, and write weights, manifest, labels and the record of the training."""
    tar = data / "tiny100-train.tar"
    labels = Labels.read(data / "tiny100-classes.tsv")
    held_out = read_photographs(tar, labels.wnids, HELD_OUT_PER_CLASS)
    with tarfile.open(tar) as archive:
        photographs = sum(member.isfile() for member in archive) - len(held_out.encoded)
    out.mkdir(parents=True, exist_ok=True)
    records.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        whole, half = Path(folder) / "whole.onnx", Path(folder) / f"{trained.name}.onnx"
        model = to_onnx(trained.net, whole)
        half.write_bytes(store_half(model).SerializeToString(deterministic=True))
        check(trained.net, whole, half, held_out, Path(folder))
        parameters = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)
        source = source_of(trained, photographs, len(labels.wnids))
        manifest = manifest_of(trained, version, half, parameters, source)
        put_labels(data / "tiny100-classes.tsv", out)
        put(half.read_bytes(), out / half.name)
    put(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n", out / f"{trained.name}.json")
    record = {"name": trained.name, "sha256": manifest.sha256, "seconds": trained.seconds, "log": trained.log}
    put(json.dumps(record, indent=1).encode() + b"\n", records / f"{trained.name}.json")
    print(
        f"{manifest.name} {manifest.version} in {out}: {manifest.multiply_accumulates / 1e6:.1f} million "
        f"multiply-accumulates, {(out / manifest.file).stat().st_size / 1e6:.2f} MB"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Publish the named model from its checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with tiny100-train.tar and tiny100-classes.tsv"
    )
    parser.add_argument("--work", type=Path, default=Path("build/starter"), help="checkpoints (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=STARTER, help="where to publish (default: the starter family)")
    parser.add_argument("--trained", type=Path, default=TRAINED, help="records of the trainings (default: %(default)s)")
    parser.add_argument("--version", default="1.0.0", help="of this model (default: %(default)s)")
    parser.add_argument("--unfinished", action="store_true", help="publish although the training has epochs left")
    options = parser.parse_args(arguments)
    classes = len(Labels.read(options.data / "tiny100-classes.tsv").wnids)
    trained = Trained.read(options.name, options.work / f"{options.name}.pt", classes)
    if not trained.finished and not options.unfinished:
        raise SystemExit(
            f"{options.name} has trained {trained.epoch} of {RECIPES[options.name].epochs} epochs: "
            "run the training again to go on, or export it with --unfinished"
        )
    publish(trained, options.version, options.data, options.out, options.trained)


if __name__ == "__main__":
    main()
