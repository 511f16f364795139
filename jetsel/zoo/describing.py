"""Collect a model's description from the owner's options, its file's metadata, and the files beside it, in this order.

The values are those of a convention (zoo/conventions.py), `labels` (a text), `input_px` (width and height), and
`inexact` (how the convention differs from the source). The first source of a value counts. Each reader takes the
decoded content of a file, or metadata, and returns its values; none if another program wrote it. It raises
ManifestError if the model is no classifier.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from onnx import ModelProto, TensorProto, TypeProto

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.base.names import path_text
from jetsel.zoo.conventions import CONVENTIONS, CROPPED, LEVELS, LEVELS_FROM, STRETCHED
from jetsel.zoo.labels import MAX_BYTES, Labels, labels_from_text, read_labels_text
from jetsel.zoo.onnx_model import OnnxFile, inputs_of

Values = dict[str, Any]
_DEFAULTS = {**CROPPED, "interpolation": "antialiased-bilinear"}
_GEOMETRY = ("resize", "crop", "resize_px", "crop_share")  # of options and the first source with `resize`
_TEXTS = ("labels.txt", "classes.txt", "imagenet_classes.txt")
_PILLOW = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # in the order of Image.Resampling
_SUPPORTED = {"bilinear": "antialiased-bilinear", "bicubic": "antialiased-bicubic", "box": "area"}
_SQUEEZED = "there both sides are stretched before the crop"


class SourceValues(NamedTuple):
    """The values that one source gives."""

    source: str
    values: Values


@dataclass(frozen=True)
class Description:
    """The values of all sources together.

    spec: a convention, without mean and std if no source gives them. input_px: None to use the graph's size. sources:
    name of a value -> its source. lines: the values by source, for the owner.
    """

    labels: Labels
    spec: Values
    input_px: tuple[int, int] | None
    sources: dict[str, str]
    lines: list[str]

    @property
    def prepared_by(self) -> str:
        """The sources of the preprocessing; raises ManifestError if there is none."""
        if not {"mean", "std"} <= set(self.spec):
            raise ManifestError(
                "neither the file nor one beside it says how the model's images are prepared: name what it was trained "
                f"with (--like {'|'.join(CONVENTIONS)}), give --mean A,B,C and --std A,B,C, or find it with labelled "
                "images: --check IMAGES"
            )
        return ", ".join(dict.fromkeys(self.sources[key] for key in ("mean", "std", "resize")))


def find_onnx(path: Path) -> Path:
    """Return the path, or the one ONNX file in it if it is a folder; raises ManifestError if the choice is unclear."""
    if not path.is_dir():
        return path
    usual = [path / name for name in ("model.onnx", "onnx/model.onnx") if (path / name).is_file()]
    files = usual[:1] or sorted(path.glob("*.onnx"))
    if len(files) != 1:
        names = ", ".join(one.name for one in files[:5]) or "none"
        raise ManifestError(f"{path}: a folder with one ONNX file is expected, and this has {names}: name the file")
    return files[0]


def describe(file: OnnxFile, options: Sequence[SourceValues], tell: Callable[[str], None]) -> Description:
    """Return the description of the model in a file, from options, metadata, and the files beside it.

    tell: takes a line for the owner. Raises ManifestError if a source shows that it is no classifier, or if no source
    names the classes.
    """
    values: Values = {}
    sources: dict[str, str] = {}
    lines: list[str] = []
    for source in (*options, *_values_by_source(file, tell), SourceValues("by default", _DEFAULTS)):
        passed_over = {*values, *(_GEOMETRY if "resize" in values else ())}
        new = {key: one for key, one in source.values.items() if one is not None and key not in passed_over}
        if (labels := new.pop("labels", None)) is not None:
            new = {"labels": labels_from_text(labels, source.source, tell), **new}
        values |= new
        sources |= dict.fromkeys(new, source.source)
        lines += [f"{source.source}: {'; '.join(f'{key} {_value_text(one)}' for key, one in new.items())}"] * bool(new)
    if "labels" not in values:
        what = "neither the file nor one beside it names the classes"
        raise ManifestError(f"{file.path}: {what}: use --labels FILE, with one name a line in the outputs' order")
    input_px = values.pop("input_px", None)
    if sources.get("input_px") != "--input" and all(
        side.dim_value for side in _first_input_type(file.model).shape.dim[1:]
    ):
        input_px = None
    values.pop("inexact", None)
    return Description(values.pop("labels"), values, input_px, sources, lines)


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(f"{one:.4g}" for one in value)
    return f"{len(value.names)} classes" if isinstance(value, Labels) else str(value)


def _first_input_type(model: ModelProto) -> TypeProto.Tensor:
    """Return the type of the model's first input, an empty one if it has none."""
    return next((value.type.tensor_type for value in inputs_of(model)), TypeProto.Tensor())


def _values_by_source(file: OnnxFile, tell: Callable[[str], None]) -> Iterator[SourceValues]:
    """Yield the values of the metadata, then of files beside the model, or one level up if its folder is `onnx`."""
    onnx, name = file.path, path_text(Path(file.path.name))
    if _first_input_type(file.model).elem_type == TensorProto.UINT8:
        yield SourceValues(f"uint8 input of {name}", LEVELS)
    props = {entry.key: entry.value for entry in file.model.metadata_props}
    for read in _METADATA:
        yield _read_source(f"metadata of {name}", props, read, tell)
    folders = [onnx.parent, *([onnx.parent.parent] if onnx.resolve().parent.name == "onnx" else [])]
    for path in (folder / one for one in (*_JSON, *_TEXTS) for folder in folders if (folder / one).is_file()):
        if path.name in _JSON:
            yield _read_source(path.name, path, _JSON[path.name], tell)
        else:
            yield SourceValues(path.name, {"labels": read_labels_text(path)})


def _read_source(
    source: str, content: Values | Path, read: Callable[[Values], Values], tell: Callable[[str], None]
) -> SourceValues:
    """Return a source's values; if it cannot be read, none, and `tell` the reason. Raises ManifestError from `read`."""
    try:
        decoded = json.loads(read_bounded(content, MAX_BYTES)) if isinstance(content, Path) else content
        return SourceValues(source, read(decoded))
    except ManifestError as error:
        raise ManifestError(f"{source}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        tell(f"{source}: left out: {type(error).__name__}: {error}")
        return SourceValues(source, {})


def ultralytics_values(props: Values) -> Values:
    """Ultralytics 8.4, engine/exporter.py: the metadata has the task, names, and imgsz (height, width)."""
    if not {"task", "names"} <= set(props):
        return {}
    if props["task"] != "classify":
        what = f"it is of the task {props['task']}, not of the task classify"
        raise ManifestError(f"{what}: export a classifier of whole images, such as yolo11n-cls.pt")
    height_px, width_px = map(int, _parse_numbers(props.get("imgsz", 224), 2))
    geometry = STRETCHED if height_px != width_px else {}  # as in classify_transforms
    return {**CONVENTIONS["ultralytics"], **geometry, "labels": props["names"], "input_px": (width_px, height_px)}


def custom_vision_values(props: Values) -> Values:
    """Custom Vision's export: https://github.com/Azure-Samples/customvision-export-samples, samples/python/onnx."""
    kinds = f"{props.get('DomainType', '')} {props.get('CustomVision.Postprocess.Method', '')}".strip()
    if "Detection" in kinds or "MultiLabel" in kinds:
        raise ManifestError(
            f"Custom Vision calls its model {kinds}, which answers with more than one class for an image: export a "
            "project of the kind Multiclass"
        )
    if "Image.NominalPixelRange" not in props:
        return {}
    mean, std, method, height_px = (
        props.get(f"CustomVision.Preprocess.{key}", default)
        for key, default in (("NormalizeMean", 0), ("NormalizeStd", 1), ("CropMethod", ""), ("TargetHeight", 0))
    )
    factor = 1 if props["Image.NominalPixelRange"] == "NominalRange_0_255" else 1 / 255
    geometry = {**CROPPED, "resize_px": int(height_px)} if "CropCenter" in method else STRETCHED
    channels = "bgr" if props.get("Image.BitmapPixelFormat") == "Bgr8" else "rgb"
    return {**geometry, **_mean_and_std(mean, std, factor), **_nearest_interpolation("bicubic"), "channels": channels}


def property_values(props: Values) -> Values:
    """Properties of any exporter: labels, classes or names (a list, or a row with commas), mean and std."""
    values: Values = {}
    labels = next((props[key] for key in ("labels", "classes", "names") if key in props), None)
    if labels is not None:
        is_row = "\n" not in labels.strip() and labels.lstrip()[:1] not in tuple("[{(")
        values["labels"] = labels.replace(",", "\n") if is_row else labels
    if {"mean", "std"} <= set(props):
        is_levels = max(*_parse_numbers(props["mean"], 3), *_parse_numbers(props["std"], 3)) > LEVELS_FROM
        values |= _mean_and_std(props["mean"], props["std"], 1 if is_levels else 1 / 255)
    return values


def teachable_machine_values(content: Values) -> Values:
    """metadata.json of the package @teachablemachine/image 0.8: labels and imageSize."""
    if content.get("packageName") != "@teachablemachine/image":
        return {}
    side_px, labels = int(content.get("imageSize", 224)), json.dumps(content["labels"])
    return {**CONVENTIONS["teachable-machine"], "labels": labels, "input_px": (side_px, side_px)}


def config_values(content: Values) -> Values:
    """config.json: transformers' id2label; timm's label_names and pretrained_cfg, in old versions the whole file."""
    labels = content.get("id2label") or content.get("label_names")
    values = {"labels": json.dumps(labels)} if labels else {}
    prepared = content.get("pretrained_cfg", content)
    if not {"mean", "std", "input_size"} <= set(prepared):
        return values
    share = prepared.get("crop_pct", CONVENTIONS["timm"]["crop_share"])
    geometry = {**CROPPED, "crop_share": share}
    if prepared.get("crop_mode") == "squash":
        geometry = STRETCHED if share == 1 else {**geometry, "inexact": _SQUEEZED}
    _, height_px, width_px = prepared["input_size"]
    return {
        **geometry,
        **_mean_and_std(prepared["mean"], prepared["std"], 1 / 255),
        **_nearest_interpolation(prepared.get("interpolation", "bicubic")),
        **values,
        "input_px": (width_px, height_px),
    }


def hugging_face_values(content: Values) -> Values:
    """preprocessor_config.json of transformers 5, see its models' image_processing_*.py."""
    if not {"size", "image_mean", "do_resize", "do_rescale"} & set(content):
        return {}
    is_normalised = content.get("do_normalize", "image_mean" in content)
    mean = _parse_numbers(content["image_mean"] if is_normalised else 0, 3)
    std = _parse_numbers(content["image_std"] if is_normalised else 1, 3)
    kind = str(content.get("image_processor_type") or content.get("feature_extractor_type"))
    if kind.startswith("EfficientNet") and content.get("include_top", True):
        std = [one * one for one in std]  # transformers divides by std twice
    if content.get("rescale_offset"):
        mean = [one + 1 for one in mean]
    factor = content.get("rescale_factor", 1 / 255) if content.get("do_rescale", True) else 1
    return {
        **_nearest_interpolation(content.get("resample", "bilinear")),
        **_hugging_face_geometry(content, kind),
        **_mean_and_std(mean, std, factor),
        "channels": "bgr" if content.get("do_flip_channel_order") else "rgb",
    }


def _hugging_face_geometry(content: Values, kind: str) -> Values:
    """Return resize, crop and size in a preprocessor_config.json; its `size` has one of three forms."""
    size, crop = content.get("size", 224), content.get("crop_size")
    is_cropped = crop is not None and content.get("do_center_crop", True)
    is_convnext = kind.startswith("ConvNext") or content.get("crop_pct") is not None
    if isinstance(size, int):
        size = {"shortest_edge": size} if is_cropped or is_convnext else {"height": size, "width": size}
    edge_px = size.get("shortest_edge")
    if edge_px is None and not is_cropped:
        return {**STRETCHED, "input_px": (size["width"], size["height"])}
    if is_convnext:
        share = content.get("crop_pct") or 224 / 256
        return {**({**CROPPED, "crop_share": share} if edge_px < 384 else STRETCHED), "input_px": (edge_px, edge_px)}
    crop = crop if is_cropped else edge_px
    crop_px = (crop["width"], crop["height"]) if isinstance(crop, dict) else (crop, crop)
    inexact = {} if edge_px else {"inexact": _SQUEEZED}
    return {**CROPPED, "resize_px": edge_px or min(size.values()), "input_px": crop_px, **inexact}


def _nearest_interpolation(kind: str | int) -> Values:
    """Return the nearest supported interpolation, and `inexact` if it differs. kind: Pillow's name or number."""
    name = _PILLOW[kind] if isinstance(kind, int) else kind
    if name in _SUPPORTED:
        return {"interpolation": _SUPPORTED[name]}
    nearest = _SUPPORTED["bicubic" if name == "lanczos" else "bilinear"]
    return {"interpolation": nearest, "inexact": f"there the interpolation is {name}"}


def _mean_and_std(mean: Any, std: Any, factor: float) -> Values:
    """Return mean and std for values of 0 to 1. mean, std: for levels of 0 to 255 times `factor`."""
    unit = 1 if abs(255 * factor - 1) < 1e-6 else 255 * factor
    both = ([float(f"{one / unit:.9g}") for one in _parse_numbers(numbers, 3)] for numbers in (mean, std))
    return dict(zip(("mean", "std"), map(tuple, both), strict=True))


def _parse_numbers(value: Any, count: int) -> list[float]:
    """Return `count` numbers from a list or a text; a single number is repeated. Raises ValueError for other counts."""
    parts = value.strip("[]() ").replace(",", " ").split() if isinstance(value, str) else value
    numbers = [float(one) for one in (parts if isinstance(parts, list | tuple) else [parts])]
    if len(numbers) not in (1, count):
        raise ValueError(f"{value!r} is not {count} numbers")
    return numbers * (count // len(numbers))


_METADATA = (ultralytics_values, custom_vision_values, property_values)
_JSON = {
    "preprocessor_config.json": hugging_face_values,
    "config.json": config_values,
    "metadata.json": teachable_machine_values,
    "metadata_properties.json": custom_vision_values,
    "cvexport.manifest": custom_vision_values,
}
