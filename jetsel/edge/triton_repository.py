"""A model repository for NVIDIA Triton: models of a family, their configurations, and how jetsel.toml names them.

Layout and ModelConfig: Triton's "Model Repository" and "Model Configuration". The TensorRT accelerator builds its
engines on the edge's own GPU, when a model is first asked, and keeps them there.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import tomli_w

from jetsel.base.errors import ConfigError
from jetsel.base.files import repair_of
from jetsel.base.weights import Head
from jetsel.zoo import Labels, Model, verify
from jetsel.zoo.onnx_model import batch_of, input_of, model_in, with_head

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
        content, output = with_head(onnx, Head.read(model.directory / manifest.head.file))
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(content)
    if kind == "python":
        (version / "model.py").write_bytes(Path(__file__).with_name("triton_model.py").read_bytes())
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in labels.names), "utf-8")
    batch, spec = batch_of(onnx), manifest.input
    sides, classes = [3, spec.height_px, spec.width_px], [len(labels.names)]
    (folder / "config.pbtxt").write_text(
        f"""name: {json.dumps(folder.name)}
{_PLATFORM[kind]}
max_batch_size: {MOST_BATCH if batch is None else 0}
input {{ name: {json.dumps(input_of(onnx))} data_type: TYPE_FP32 dims: {sides if batch is None else [batch, *sides]} }}
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
