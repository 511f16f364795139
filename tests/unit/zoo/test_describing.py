"""What a model's metadata, the files beside it and conventions say is read, each value with its source."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from jetsel.base.errors import ManifestError
from jetsel.image import Photograph
from jetsel.image.model_input import model_input
from jetsel.zoo.conventions import CONVENTIONS, convention_spec, with_size
from jetsel.zoo.describing import Description, SourceValues, describe, find_onnx
from jetsel.zoo.onnx_model import read_file
from tests.unit.zoo.networks import FLOAT, network

IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
VIT: dict[str, Any] = {
    "image_processor_type": "ViTImageProcessor",
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "rescale_factor": 0.00392156862745098,
    "resample": 2,
    "size": {"height": 224, "width": 192},
}
TIMM: dict[str, Any] = {
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
    "input_size": [3, 240, 240],
    "crop_pct": 0.95,
    "interpolation": "bilinear",
    "crop_mode": "center",
}
VISION = {
    "CustomVision.Postprocess.Method": "ClassificationMultiClass",
    "CustomVision.Preprocess.CropMethod": "FullImageShorterSide",
    "CustomVision.Preprocess.NormalizeMean": "[123.0, 117.0, 104.0]",
    "CustomVision.Preprocess.NormalizeStd": "[1.0, 1.0, 1.0]",
    "Image.BitmapPixelFormat": "Bgr8",
    "Image.NominalPixelRange": "NominalRange_0_255",
}
NAMES = "cat\ndog\nred fox\n"
ULTRALYTICS = {"task": "classify", "names": "{0: 'cat', 1: 'dog', 2: 'red fox'}", "imgsz": "[224, 224]", "stride": "1"}


def model(folder: Path, *, props: dict[str, str] | None = None, elem_type: int = FLOAT, **files: Any) -> Path:
    """Return an ONNX file of any size with an input of this type; files: beside it, by name with __ for a point."""
    folder.mkdir(exist_ok=True, parents=True)
    content = onnx.ModelProto.FromString(network(sides=("n", 3, "h", "w"), elem_type=elem_type))
    onnx.helper.set_model_props(content, props or {})
    path = folder / "net.onnx"
    onnx.save(content, path)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def described(path: Path, *options: SourceValues) -> Description:
    return describe(read_file(path), options, lambda line: pytest.fail(line))


def names(found: Description) -> tuple[str, ...]:
    return found.labels.names


def spec(found: Description) -> dict[str, Any]:
    return {
        key: value for key, value in with_size(found.spec, *(found.input_px or (224, 224))).items() if value is not None
    }


NUMBERS = (
    ({"do_rescale": False}, {"mean": (0.5 / 255,) * 3, "interpolation": "antialiased-bilinear"}),
    ({"rescale_factor": 1 / 127.5, "rescale_offset": True, **IMAGENET}, {"std": (0.1145, 0.112, 0.1125)}),
    ({"do_normalize": False}, {"mean": (0, 0, 0), "std": (1, 1, 1)}),
    ({"image_processor_type": "EfficientNetImageProcessor"}, {"std": (0.25,) * 3}),
    ({"do_flip_channel_order": True}, {"channels": "bgr"}),
    ({"resample": 3}, {"interpolation": "antialiased-bicubic"}),
)
SQUARE, CROP = {"height": 256, "width": 256}, {"height": 192, "width": 224}
SIDES = (
    ({"size": 256}, {"resize": "stretch", "width_px": 256, "height_px": 256}),
    ({"size": 256, "crop_size": 224}, {"resize": "shorter-side", "resize_px": 256, "width_px": 224}),
    ({"size": {"shortest_edge": 256}, "crop_size": CROP}, {"resize_px": 256, "width_px": 224, "height_px": 192}),
    ({"size": {"shortest_edge": 224}, "crop_pct": 0.875}, {"resize_px": 256, "width_px": 224}),
    ({"size": {"shortest_edge": 384}, "crop_pct": 0.875}, {"resize": "stretch", "width_px": 384}),
    ({"size": SQUARE, "crop_size": CROP}, {"resize": "shorter-side", "resize_px": 256}),
)


def test_each_key_of_a_preprocessor_config_counts(tmp_path: Path) -> None:
    for number, (changes, expected) in enumerate((*NUMBERS, *SIDES)):
        path = model(tmp_path / str(number), preprocessor_config__json=VIT | changes, labels__txt=NAMES)
        found = spec(described(path))
        for key, value in expected.items():
            assert found[key] == (pytest.approx(value) if isinstance(value, tuple) else value), (changes, key)


def test_what_is_not_served_exactly_is_shown(tmp_path: Path) -> None:
    for number, changes in enumerate(({"resample": 1}, {"size": SQUARE, "crop_size": CROP})):
        path = model(tmp_path / str(number), preprocessor_config__json=VIT | changes, labels__txt=NAMES)
        assert "inexact there " in "\n".join(described(path).lines)


def test_a_config_of_timm_is_read_in_both_forms(tmp_path: Path) -> None:
    for number, content in enumerate(({"pretrained_cfg": TIMM}, TIMM)):
        path = model(tmp_path / str(number), config__json={**content, "label_names": ["cat", "dog", "red fox"]})
        found = described(path)
        assert names(found) == ("cat", "dog", "red fox")
        values = spec(found)
        assert (values["resize_px"], values["interpolation"]) == (252, "antialiased-bilinear")
        assert (values["mean"], values["std"], values["width_px"]) == ((0.5,) * 3, (0.25,) * 3, 240)
    squashed = model(tmp_path / "2", config__json=TIMM | {"crop_mode": "squash", "crop_pct": 1.0}, labels__txt=NAMES)
    assert spec(described(squashed))["resize"] == "stretch"


def test_metadata_of_ultralytics_is_its_convention(tmp_path: Path) -> None:
    found = described(model(tmp_path, props=ULTRALYTICS, labels__txt="a\nb\nc\n"))
    assert names(found) == ("cat", "dog", "red fox"), "the file itself counts before its neighbours"
    assert found.input_px == (224, 224)
    assert with_size(found.spec, 224, 224) == with_size(CONVENTIONS["ultralytics"], 224, 224)
    assert found.prepared_by == "metadata of net.onnx"
    oblong = described(model(tmp_path / "oblong", props=ULTRALYTICS | {"imgsz": "[128, 224]"}))
    assert (oblong.input_px, oblong.spec["resize"]) == ((224, 128), "stretch")


@pytest.mark.parametrize("task", ["detect", "segment", "pose", "obb"])
def test_a_detector_is_refused_with_its_task(tmp_path: Path, task: str) -> None:
    with pytest.raises(ManifestError, match=rf"metadata of net\.onnx: .* task {task}, .*of the task classify"):
        described(model(tmp_path, props=ULTRALYTICS | {"task": task}))


def test_properties_of_any_exporter_are_read(tmp_path: Path) -> None:
    for number, (labels, mean, std) in enumerate(
        (
            ("cat, dog, red fox", "0.485,0.456,0.406", "0.229,0.224,0.225"),
            ('["cat", "dog", "red fox"]', "[0.485, 0.456, 0.406]", "[0.229, 0.224, 0.225]"),
            ("cat\ndog\nred fox", "123.675 116.28 103.53", "58.395 57.12 57.375"),  # levels
        )
    ):
        for key in ("labels", "classes", "names"):
            props = {key: labels, "mean": mean, "std": std}
            found = described(model(tmp_path / f"{number}{key}", props=props))
            assert names(found) == ("cat", "dog", "red fox")
            assert found.spec["mean"] == pytest.approx((0.485, 0.456, 0.406))
            assert found.spec["std"] == pytest.approx((0.229, 0.224, 0.225))
    one = described(model(tmp_path / "one", props={"labels": labels, "mean": "0.5", "std": "0.25"}))
    assert (one.spec["mean"], one.spec["std"]) == ((0.5,) * 3, (0.25,) * 3)


def test_files_of_teachable_machine_and_custom_vision_are_read(tmp_path: Path) -> None:
    metadata = {"packageName": "@teachablemachine/image", "labels": ["cat", "dog", "red fox"], "imageSize": 96}
    found = described(model(tmp_path / "t", metadata__json=metadata, labels__txt="0 cat\n1 dog\n2 red fox\n"))
    assert (names(found), found.input_px) == (("cat", "dog", "red fox"), (96, 96))
    assert spec(found)["mean"] == (0.5, 0.5, 0.5)
    in_file = described(model(tmp_path / "p", props=VISION, labels__txt=NAMES))
    beside = described(model(tmp_path / "f", metadata_properties__json=VISION, labels__txt="cat\r\ndog\r\nred fox"))
    for found in (in_file, beside):
        assert names(found) == ("cat", "dog", "red fox")
        assert (found.spec["channels"], found.spec["resize"]) == ("bgr", "stretch")
        assert found.spec["mean"] == pytest.approx((123 / 255, 117 / 255, 104 / 255))
        assert found.spec["std"] == pytest.approx((1 / 255,) * 3)
    cropped = {"CustomVision.Preprocess.CropMethod": "OneCropCenter", "CustomVision.Preprocess.TargetHeight": "256"}
    assert spec(described(model(tmp_path / "c", props=VISION | cropped, labels__txt=NAMES)))["resize_px"] == 256
    with pytest.raises(ManifestError, match=r"cvexport.manifest: Custom Vision calls its model ObjectDetection"):
        described(model(tmp_path / "d", cvexport__manifest={"DomainType": "ObjectDetection"}, labels__txt=NAMES))


def test_options_count_first_each_for_itself_and_a_convention_as_a_whole(tmp_path: Path) -> None:
    path = model(tmp_path, preprocessor_config__json=VIT | {"size": 256, "crop_size": 224}, labels__txt=NAMES)
    found = described(
        path, SourceValues("--mean", {"mean": (0.1, 0.2, 0.3)}), SourceValues("--labels l", {"labels": "a\nb\nc"})
    )
    assert (found.spec["mean"], found.spec["std"], spec(found)["resize_px"]) == ((0.1, 0.2, 0.3), (0.5,) * 3, 256)
    assert (names(found), found.prepared_by) == (("a", "b", "c"), "--mean, preprocessor_config.json")
    liked = described(
        path, SourceValues("--resize-px", {"resize_px": None}), SourceValues("--like timm", CONVENTIONS["timm"])
    )
    assert spec(liked) == with_size(CONVENTIONS["timm"], 224, 224)


def test_what_nothing_says_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"names the classes: use --labels FILE"):
        described(model(tmp_path / "a", preprocessor_config__json=VIT))
    found = described(model(tmp_path / "b", classes__txt=NAMES))
    with pytest.raises(ManifestError, match=r"--like ultralytics\|.*--mean A,B,C and --std.*--check IMAGES"):
        assert found.prepared_by
    assert found.lines == [
        "classes.txt: labels 3 classes",
        "by default: resize shorter-side; crop center; channels rgb; interpolation antialiased-bilinear",
    ]


def test_a_file_that_takes_bytes_says_what_they_are(tmp_path: Path) -> None:
    found = described(model(tmp_path, elem_type=onnx.TensorProto.UINT8, labels__txt=NAMES))
    assert (found.spec["mean"], found.spec["std"]) == ((0.0,) * 3, (1 / 255,) * 3)
    assert found.prepared_by == "uint8 input of net.onnx, by default"


def test_files_of_another_program_are_left_out(tmp_path: Path) -> None:
    told: list[str] = []
    path = model(tmp_path, config__json="{", metadata__json=[1], preprocessor_config__json={"a": 1}, labels__txt=NAMES)
    found = describe(read_file(path), (), told.append)
    assert [line.split(": ")[:2] for line in told] == [["config.json", "left out"], ["metadata.json", "left out"]]
    assert names(found) == ("cat", "dog", "red fox")


def test_a_folder_holds_one_file_or_is_refused(tmp_path: Path) -> None:
    path = model(tmp_path, labels__txt=NAMES)
    assert find_onnx(tmp_path) == find_onnx(path) == path
    (tmp_path / "other.onnx").write_bytes(path.read_bytes())
    with pytest.raises(ManifestError, match=r"net\.onnx, other\.onnx: name the file"):
        find_onnx(tmp_path)
    (tmp_path / "model.onnx").write_bytes(path.read_bytes())
    assert find_onnx(tmp_path).name == "model.onnx"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match="this has none: name the file"):
        find_onnx(tmp_path / "empty")


GREY = Photograph(np.full((300, 400, 3), (10, 100, 200), np.uint8), 400, 300)  # blue, green, red
FIRST = {  # of the input's channels at that colour, as the frameworks' own functions compute them
    "ultralytics": [200 / 255, 100 / 255, 10 / 255],
    "torchvision": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "timm": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "keras": [10 - 103.939, 100 - 116.779, 200 - 123.68],
    "keras-tf": [200 / 127.5 - 1, 100 / 127.5 - 1, 10 / 127.5 - 1],
    "keras-torch": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "keras-levels": [200, 100, 10],
    "teachable-machine": [200 / 127.5 - 1, 100 / 127.5 - 1, 10 / 127.5 - 1],
    "paddle": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "opencv": [10 / 255, 100 / 255, 200 / 255],
}


def test_each_convention_gives_the_numbers_of_its_framework() -> None:
    assert set(FIRST) == set(CONVENTIONS)
    for name, expected in FIRST.items():
        batch = model_input(GREY, convention_spec(name, 64, 64))
        assert batch[0, :, 5, 5] == pytest.approx(expected, rel=1e-5, abs=1e-4), name


def test_the_share_that_is_cropped_follows_the_size() -> None:
    sides = [
        (name, convention_spec(name, px, px).resize_px) for name in ("torchvision", "timm") for px in (224, 240, 4096)
    ]
    assert [px for _, px in sides] == [256, 274, 4096, 256, 274, 4096]
    assert convention_spec("keras", 224, 192).resize_px is None
    assert convention_spec("torchvision", 320, 240).resize_px == 365
