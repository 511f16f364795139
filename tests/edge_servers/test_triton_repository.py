"""What deploy/triton writes, against Triton's own schema of model configurations."""

from pathlib import Path

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as schema

from deploy.triton.write_repository import Kind, write
from jetsel.zoo import STARTER, scan


@pytest.mark.parametrize("kind", ["onnx", "tensorrt", "python"])
def test_every_configuration_is_of_triton_s_schema(kind: Kind, tmp_path: Path) -> None:
    starter = scan([STARTER]).families["starter"]
    write(tmp_path / "out", starter.labels, starter.models, kind)
    for name in ("xs", "s", "s-night", "m", "m-night", "l", "xl"):
        folder = tmp_path / "out" / f"starter.{name}"
        config = text_format.Parse((folder / "config.pbtxt").read_text(), schema.ModelConfig())
        (taken,), (answered,) = config.input, config.output
        assert (config.name, config.max_batch_size > 1, config.HasField("dynamic_batching")) == (
            folder.name,
            True,
            True,
        )
        assert (taken.name, taken.data_type, list(taken.dims)) == ("image", schema.TYPE_FP32, [3, 64, 64])
        assert (answered.name, answered.data_type, list(answered.dims)) == ("logits", schema.TYPE_FP32, [100])
        assert len((folder / answered.label_filename).read_text().splitlines()) == 100
        assert (folder / "1/model.onnx").is_file()
        assert (folder / "1/model.py").is_file() == (config.backend == "python")
        accelerators = config.optimization.execution_accelerators.gpu_execution_accelerator
        assert [one.name for one in accelerators] == (["tensorrt"] if kind == "tensorrt" else [])
        assert config.platform == ("" if config.backend else "onnxruntime_onnx")
