"""How frameworks prepare the images of classifiers (conventions), by the names that the option `--like` takes.

A convention is a dict of the values of InputSpec without the size. `crop_share`, the share of the shorter side that the
crop keeps, may replace `resize_px`. The comment above each convention gives its source.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jetsel.base.errors import ManifestError, did_you_mean
from jetsel.image import InputSpec
from jetsel.image.model_input import MAX_SIDE_PX

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_LEVELS = (1 / 255,) * 3  # as std: the model takes levels of 0 to 255
LEVELS_FROM = 8.0  # larger means and deviations are in levels of 0 to 255; those of values of 0 to 1 are far smaller

CROPPED: dict[str, Any] = {"resize": "shorter-side", "crop": "center", "channels": "rgb"}
STRETCHED: dict[str, Any] = {"resize": "stretch", "crop": "none", "channels": "rgb"}
SCALED: dict[str, Any] = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}  # 0 to 1
SIGNED: dict[str, Any] = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}  # -1 to 1
STANDARDISED: dict[str, Any] = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD}
LEVELS: dict[str, Any] = {"mean": (0.0, 0.0, 0.0), "std": _LEVELS}  # 0 to 255

CONVENTIONS: dict[str, dict[str, Any]] = {
    # ultralytics 8.4, ultralytics/data/augment.py: classify_transforms, with DEFAULT_MEAN and DEFAULT_STD.
    "ultralytics": {**CROPPED, **SCALED, "interpolation": "antialiased-bilinear"},
    # torchvision 0.28, torchvision/transforms/_presets.py: ImageClassification; 256 for 224 is its `resize_size`.
    "torchvision": {**CROPPED, **STANDARDISED, "interpolation": "antialiased-bilinear", "crop_share": 224 / 256},
    # timm 1.0, timm/data/constants.py: DEFAULT_CROP_PCT and IMAGENET_DEFAULT_MEAN; timm/data/transforms_factory.py.
    "timm": {**CROPPED, **STANDARDISED, "interpolation": "antialiased-bicubic", "crop_share": 0.875},
    # Keras 3, keras/src/applications/imagenet_utils.py: preprocess_input(mode="caffe"), its default (ResNet50, VGG16);
    # keras/src/utils/image_dataset_utils.py: image_dataset_from_directory stretches, bilinear, without antialiasing.
    "keras": {
        **STRETCHED,
        "interpolation": "bilinear",
        "channels": "bgr",
        "mean": (103.939 / 255, 116.779 / 255, 123.68 / 255),
        "std": _LEVELS,
    },
    # Keras, the files above: mode="tf" (MobileNet, Inception, Xception, NASNet).
    "keras-tf": {**STRETCHED, **SIGNED, "interpolation": "bilinear"},
    # Keras, the files above: mode="torch" (DenseNet).
    "keras-torch": {**STRETCHED, **STANDARDISED, "interpolation": "bilinear"},
    # keras/src/applications/efficientnet.py, convnext.py, mobilenet_v3.py: the model contains a Rescaling layer.
    "keras-levels": {**STRETCHED, **LEVELS, "interpolation": "bilinear"},
    # teachablemachine-community, snippets/markdown/image/tensorflow/keras.md: ImageOps.fit with Lanczos (bicubic is
    # the nearest here); level / 127.5 - 1.
    "teachable-machine": {**CROPPED, **SIGNED, "interpolation": "antialiased-bicubic"},
    # PaddleClas 2.5, deploy/configs/inference_cls.yaml: resize_short 256, size 224, OpenCV's bilinear.
    "paddle": {**CROPPED, **STANDARDISED, "interpolation": "bilinear", "crop_share": 224 / 256},
    # OpenCV 4, cv2.imread and dnn.blobFromImage(scalefactor=1 / 255): swapRB and crop are False by default.
    "opencv": {**STRETCHED, **SCALED, "interpolation": "bilinear", "channels": "bgr"},
}


def convention_spec(name: str, width_px: int, height_px: int) -> InputSpec:
    """Return a framework's preprocessing for a model with this input size; raises ManifestError for an unknown name."""
    return msgspec.convert(with_size(convention_values(name), width_px, height_px), InputSpec)


def convention_values(name: str) -> dict[str, Any]:
    """Return the convention of a framework; raises ManifestError, which lists the names, for an unknown one."""
    if name not in CONVENTIONS:
        suggestion = did_you_mean(name, CONVENTIONS)
        raise ManifestError(f"there is no convention {name}{suggestion}: use one of {', '.join(CONVENTIONS)}")
    return CONVENTIONS[name]


def with_size(convention: dict[str, Any], width_px: int, height_px: int) -> dict[str, Any]:
    """Return the values of InputSpec for a convention and an input size: `crop_share` becomes `resize_px`."""
    values = {**convention, "width_px": width_px, "height_px": height_px}
    crop_share = values.pop("crop_share", None)
    if crop_share is not None and values["resize"] == "shorter-side" and values.get("resize_px") is None:
        longer_px = max(width_px, height_px)
        values["resize_px"] = max(longer_px, min(int(longer_px / crop_share + 1e-6), MAX_SIDE_PX))
    return values


def changed_values(spec: InputSpec, like: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the values of `spec`, or of the convention `like` with its size, with `options`; raises ManifestError."""
    base_spec = spec if like is None else convention_spec(like, spec.width_px, spec.height_px)
    is_new = options.get("resize", base_spec.resize) != base_spec.resize  # then the old crop does not fit
    return {**msgspec.to_builtins(base_spec), **({"crop": "center", "resize_px": None} if is_new else {}), **options}
