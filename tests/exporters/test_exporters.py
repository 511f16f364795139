"""What real exporters write is added, without options where they say what is needed, and answers as they do.

All weights are random. Ultralytics is called as a program, and is no part of jetsel.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from tests.exporters.conftest import NAMES

PX = 64
Check = Callable[..., None]


@pytest.fixture(scope="module")
def net() -> torch.nn.Module:
    """A network whose logits differ from image to image."""
    from torchvision.models import resnet18

    torch.manual_seed(1)
    made = resnet18(num_classes=len(NAMES))
    torch.nn.init.normal_(made.fc.weight)
    return made.eval()


def say(path: Path, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    """Write into a file what its exporter could not know, as docs/own-models.md says."""
    model = onnx.load(path, load_external_data=False)
    onnx.helper.set_model_props(model, {"labels": str(NAMES), "mean": str(mean), "std": str(std)})
    onnx.save(model, path)


def answered(net: Any, batch: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        answer: np.ndarray = net(batch)[0].numpy()
    return answer


@pytest.mark.parametrize("dynamo", [False, True], ids=["by_tracing", "by_torch_export"])
def test_torch(check: Check, tmp_path: Path, images: list[Path], net: torch.nn.Module, dynamo: bool) -> None:
    from torchvision import transforms as T  # noqa: N812  # as its pages write it

    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    prepare = T.Compose([T.Resize(PX), T.CenterCrop(PX), T.ToTensor(), T.Normalize(mean, std)])
    path = tmp_path / "pets.onnx"
    torch.onnx.export(net, (torch.zeros(1, 3, PX, PX),), str(path), dynamo=dynamo)
    say(path, mean, std)
    check(path, lambda image: answered(net, prepare(Image.open(image))[None]), images)


def test_torchvision(check: Check, tmp_path: Path, images: list[Path], net: torch.nn.Module) -> None:
    from torchvision.transforms._presets import ImageClassification

    path = tmp_path / "pets.onnx"
    torch.onnx.export(net, (torch.zeros(1, 3, 224, 224),), str(path), dynamo=False)
    (tmp_path / "labels.txt").write_text("\n".join(NAMES))
    prepare = ImageClassification(crop_size=224)
    check(path, lambda image: answered(net, prepare(Image.open(image))[None]), images, "--like", "torchvision")


def test_ultralytics(check: Check, tmp_path: Path, images: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    from ultralytics import YOLO

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(2)
    model = YOLO("yolo11n-cls.yaml")
    model.model.model[-1].linear = torch.nn.Linear(1280, len(NAMES))
    torch.nn.init.normal_(model.model.model[-1].linear.weight)
    model.model.names = dict(enumerate(NAMES))
    path = Path(model.export(format="onnx", imgsz=PX))
    own = YOLO(path, task="classify")
    check(path, lambda image: np.log(own(str(image), imgsz=PX)[0].probs.data.numpy()), images)


def test_timm(check: Check, tmp_path: Path, images: list[Path]) -> None:
    import timm
    from timm.utils.onnx import onnx_export

    torch.manual_seed(3)
    net = timm.create_model("mobilenetv3_small_050", num_classes=len(NAMES)).eval()
    torch.nn.init.normal_(net.classifier.weight)
    timm.models.save_for_hf(net, tmp_path / "pets", model_config={"label_names": NAMES})
    onnx_export(net, str(tmp_path / "pets" / "model.onnx"))
    prepare = timm.data.create_transform(**timm.data.resolve_model_data_config(net))
    check(tmp_path / "pets", lambda image: answered(net, prepare(Image.open(image))[None]), images)


def test_optimum(check: Check, tmp_path: Path, images: list[Path]) -> None:
    from optimum.exporters.onnx import main_export
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(4)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    labels = {"id2label": dict(enumerate(NAMES)), "label2id": {name: number for number, name in enumerate(NAMES)}}
    net = ViTForImageClassification(ViTConfig(image_size=PX, patch_size=16, **shape, **labels)).eval()
    torch.nn.init.normal_(net.classifier.weight)
    processor = ViTImageProcessor(size={"height": PX, "width": PX})
    net.save_pretrained(tmp_path / "trained")
    processor.save_pretrained(tmp_path / "trained")
    main_export(str(tmp_path / "trained"), output=tmp_path / "pets", task="image-classification")

    def own(image: Path) -> np.ndarray:
        batch = processor(Image.open(image), return_tensors="pt")["pixel_values"]
        return answered(lambda pixels: net(pixels).logits, batch)

    check(tmp_path / "pets", own, images)


def test_keras(check: Check, tmp_path: Path, images: list[Path]) -> None:
    import keras

    keras.utils.set_random_seed(5)
    layers = keras.layers
    features = [keras.Input((PX, PX, 3)), layers.Conv2D(8, 3, 2, activation="relu"), layers.GlobalAveragePooling2D()]
    net = keras.Sequential([*features, layers.Dense(16), layers.Dense(len(NAMES), activation="softmax")])
    net.predict(np.zeros((1, PX, PX, 3), np.float32), verbose=0)  # it exports what has run
    net.export(tmp_path / "pets.onnx", format="onnx", verbose=False)
    (tmp_path / "labels.txt").write_text("\n".join(NAMES))

    def own(image: Path) -> np.ndarray:
        levels = np.asarray(Image.open(image), np.float32)[np.newaxis]
        return np.log(net.predict(keras.applications.mobilenet_v2.preprocess_input(levels), verbose=0)[0])

    check(tmp_path / "pets.onnx", own, images[2:], "--like", "keras-tf")  # that it stretches in another way is known


def test_teachable_machine(check: Check, tmp_path: Path, images: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    import tf2onnx
    import tf_keras

    tf_keras.utils.set_random_seed(9)
    layers = tf_keras.layers
    features = [layers.Conv2D(8, 3, 2, activation="relu", input_shape=(PX, PX, 3)), layers.GlobalAveragePooling2D()]
    trained = tf_keras.Sequential([*features, layers.Dense(16), layers.Dense(len(NAMES), activation="softmax")])
    trained.save(tmp_path / "keras_model.h5")  # as it does, with labels.txt
    (tmp_path / "labels.txt").write_text("".join(f"{number} {name}\n" for number, name in enumerate(NAMES)))
    net = tf_keras.models.load_model(tmp_path / "keras_model.h5", compile=False)
    tf2onnx.convert.from_keras(net, output_path=str(tmp_path / "model.onnx"))

    def own(image: Path) -> np.ndarray:
        levels = np.asarray(Image.open(image), np.float32)[np.newaxis]
        return np.log(net.predict(levels / 127.5 - 1, verbose=0)[0])

    check(tmp_path, own, images[2:], "--like", "teachable-machine", "--name", "gestures")


def test_tf2onnx(check: Check, tmp_path: Path, images: list[Path]) -> None:
    import tensorflow as tf
    import tf2onnx

    rng = np.random.default_rng(6)
    kernel, last = (rng.normal(size=size).astype(np.float32) for size in ((3, 3, 3, 8), (8, len(NAMES))))

    @tf.function
    def net(pixels: Any) -> Any:
        features = tf.nn.relu(tf.nn.conv2d(pixels, kernel, 2, "SAME"))
        return tf.nn.softmax(tf.reduce_mean(features, (1, 2)) @ last)

    path = tmp_path / "pets.onnx"
    signature = [tf.TensorSpec((None, PX, PX, 3), tf.float32)]
    tf2onnx.convert.from_function(net, signature, opset=17, output_path=str(path))
    say(path, (0.5,) * 3, (0.5,) * 3)

    def own(image: Path) -> np.ndarray:
        levels = np.asarray(Image.open(image), np.float32)[np.newaxis]
        return np.log(net(levels / 127.5 - 1).numpy()[0])

    check(path, own, images[2:])


def test_skl2onnx(check: Check, tmp_path: Path, images: list[Path]) -> None:
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(8)
    net = LogisticRegression().fit(rng.normal(size=(60, 3 * PX * PX)), np.arange(60) % len(NAMES))
    rows = to_onnx(net, np.zeros((1, 3 * PX * PX), np.float32), options={"zipmap": False, "raw_scores": True})
    image = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["n", 3, PX, PX])
    row = onnx.helper.make_tensor_value_info("row", onnx.TensorProto.FLOAT, ["n", 3 * PX * PX])
    flat = onnx.helper.make_graph([onnx.helper.make_node("Flatten", ["image"], ["row"])], "flat", [image], [row])
    front = onnx.helper.make_model(flat, opset_imports=rows.opset_import, ir_version=rows.ir_version)
    whole = onnx.compose.merge_models(front, rows, [("row", "X")], outputs=["probabilities"])
    path = tmp_path / "pets.onnx"
    onnx.save(whole, path)
    say(path, (0.0,) * 3, (1.0,) * 3)

    def own(image: Path) -> np.ndarray:
        pixels = np.asarray(Image.open(image), np.float32).transpose(2, 0, 1) / 255
        return net.decision_function(pixels.reshape(1, -1))[0]

    check(path, own, images[2:])
