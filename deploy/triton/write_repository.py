"""Writes a model repository for NVIDIA Triton: `python deploy/triton/write_repository.py OUT --family imagenet`.

It holds models of a family and their configurations; printed are the lines that name them in the device's jetsel.toml.
Layout and ModelConfig: Triton's "Model Repository" and "Model Configuration". The TensorRT accelerator builds its
engines on the edge's own GPU, when a model is first asked, and keeps them there.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tomli_w
import typer

from jetsel.base.errors import ConfigError, JetselError
from jetsel.base.files import repair_of
from jetsel.base.weights import Head
from jetsel.site.site import read_site
from jetsel.zoo import Labels, Model, verify
from jetsel.zoo.onnx_model import inputs_of, model_in

if TYPE_CHECKING:
    from onnx import ModelProto

Kind = Literal["onnx", "tensorrt", "python"]

MOST_BATCH = 8  # what is pending goes out together, up to here; nothing waits for more
_PLATFORM = {
    "onnx": 'platform: "onnxruntime_onnx"',
    "tensorrt": 'platform: "onnxruntime_onnx"',
    "python": 'backend: "python"',
}
_TENSORRT = """
optimization {
  execution_accelerators {
    gpu_execution_accelerator {
      name: "tensorrt"
      parameters { key: "precision_mode" value: "FP16" }
      parameters { key: "trt_engine_cache_enable" value: "true" }
      parameters { key: "trt_engine_cache_path" value: "/tmp" }
    }
  }
}
"""


def main(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; it must not exist.")],
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model family (default: the configured one).")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Model to write; repeatable (default: all of the family).")
    ] = None,
    kind: Annotated[
        Kind, typer.Option(help="Backend of Triton: its ONNX Runtime, the same with TensorRT, or Python.")
    ] = "onnx",
) -> None:
    """Write a model repository for NVIDIA Triton, and print what to add to the device's jetsel.toml."""
    try:
        site = read_site(None)
        found = site.family(family)
        models = [site.zoo.find(name, found.name)[1] for name in model] if model else found.models
        mapped = write(out, found.labels, models, kind)
    except JetselError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    where = f'url = "http://HOST:8000" and family = "{found.name}"'
    typer.echo(f"# add to jetsel.toml, if [edge] has {where}:\n{mapped}", nl=False)


def write(out: Path, labels: Labels, models: Iterable[Model], kind: Kind) -> str:
    """Write the repository, and return the TOML that maps its models; raises ConfigError and ManifestError.

    out: a folder that is not there, or empty. kind: which of Triton's backends runs them: ONNX Runtime's, the same with
    TensorRT on the edge's GPU, or Python's, whose Python must have numpy and onnxruntime.
    """
    mapped = {}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".jetsel-") as scratch:
            work = Path(scratch, "models")
            for model in models:
                name = f"{model.manifest.family}.{model.manifest.name}"
                _write_model(work / name, labels, model, kind)
                mapped[model.manifest.name] = {"remote": name, "input": "tensor", "output": "logits"}
            work.rename(out)  # an empty folder is replaced
    except OSError as error:
        repair = "name a folder that is not there yet" if out.exists() else repair_of(error)
        raise ConfigError(f"{out}: {error.strerror}: {repair}") from None
    return tomli_w.dumps({"edge": {"models": mapped}})


def _write_model(folder: Path, labels: Labels, model: Model, kind: Kind) -> None:
    manifest, content = model.manifest, verify(model)
    onnx, output = model_in(content, str(model.path)), "logits"
    if manifest.head is not None:
        content, output = _with_head(onnx, Head.read(model.directory / manifest.head.file))
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(content)
    if kind == "python":
        (version / "model.py").write_bytes(Path(__file__).with_name("model.py").read_bytes())
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in labels.names), "utf-8")
    batch, spec, first = _batch_of(onnx), manifest.input, inputs_of(onnx)[0].name
    sides, classes = [3, spec.height_px, spec.width_px], [len(labels.names)]
    (folder / "config.pbtxt").write_text(
        f"""name: {json.dumps(folder.name)}
{_PLATFORM[kind]}
max_batch_size: {MOST_BATCH if batch is None else 0}
input {{ name: {json.dumps(first)} data_type: TYPE_FP32 dims: {sides if batch is None else [batch, *sides]} }}
output {{
  name: "{output}"
  data_type: TYPE_FP32
  dims: {classes if batch is None else [batch, *classes]}
  label_filename: "labels.txt"
}}
{"dynamic_batching { }" if batch is None else ""}
{_TENSORRT if kind == "tensorrt" else ""}""",
        "utf-8",
    )


def _batch_of(model: ModelProto) -> int | None:
    """Return how many images a run takes, None for any number."""
    first = inputs_of(model)[0]
    sides = first.type.tensor_type.shape.dim
    return int(sides[0].dim_value) if sides[0].HasField("dim_value") else None


def _with_head(model: ModelProto, head: Head) -> tuple[bytes, str]:
    """Return a file of the backbone with the head as its last layer, and the name of the output that this is."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    changed = ModelProto()
    changed.CopyFrom(model)
    for name, numbers in (("head_weights", head.weights), ("head_bias", head.bias)):
        changed.graph.initializer.append(numpy_helper.from_array(numbers, name))
    changed.graph.node.append(helper.make_node("Gemm", ["embedding", "head_weights", "head_bias"], ["head_logits"]))
    changed.graph.output.append(helper.make_tensor_value_info("head_logits", TensorProto.FLOAT, ["n", "classes"]))
    content: bytes = changed.SerializeToString()
    return content, "head_logits"


if __name__ == "__main__":
    typer.run(main)
