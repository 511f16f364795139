"""Collect a model's classes and preprocessing from options, its file's metadata and the files beside it, in this order.

`Values` has the keys of a convention (zoo/conventions.py), `labels` (a text with the classes), `input_px` (width and
height), and `inexact` (how the values differ from what the source asks for). The first source of a key counts. Each
function *_values reads one program's decoded metadata or file: it returns {} if another program wrote it, and raises
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
from jetsel.zoo.labels import MAX_BYTES, Labels, Report, labels_from_text, read_labels_text
from jetsel.zoo.onnx_model import OnnxFile, inputs_of

Values = dict[str, Any]
Reader = Callable[[Values], Values]
_DEFAULTS = {**CROPPED, "interpolation": "antialiased-bilinear"}
_GEOMETRY = ("resize", "crop", "resize_px", "crop_share")  # of options and the first source with resize: they must fit
_TEXTS = ("labels.txt", "classes.txt", "imagenet_classes.txt")
_PILLOW = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # in the order of Image.Resampling
_SUPPORTED = {"bilinear": "antialiased-bilinear", "bicubic": "antialiased-bicubic", "box": "area"}
_SQUEEZED = "there both sides are stretched before the crop"


class SourceValues(NamedTuple):
    """The values of one source. source: its name for the owner, such as --mean or config.json."""

    source: str
    values: Values


@dataclass(frozen=True)
class Description:
    """A model's classes and preprocessing, as all sources together give them.

    spec: values of InputSpec without the size; without mean and std if no source gives them. input_px: width and
    height, None to use the graph's. sources: key of a value -> its source. lines: the values by source, for the owner.
    """

    labels: Labels
    spec: Values
    input_px: tuple[int, int] | None
    sources: dict[str, str]
    lines: list[str]

    @property
    def prepared_by(self) -> str:
        """The sources of mean, std and resize, with commas; raises ManifestError if no source gives mean and std."""
        if not {"mean", "std"} <= set(self.spec):
            raise ManifestError(
                "neither the file nor one beside it says how the model's images are prepared: name what it was trained "
                f"with (--like {'|'.join(CONVENTIONS)}), give --mean A,B,C and --std A,B,C, or find it with labelled "
                "images: --check IMAGES"
            )
        return ", ".join(dict.fromkeys(self.sources[key] for key in ("mean", "std", "resize")))


def find_onnx(path: Path) -> Path:
    """Return `path`, or the ONNX file in it if it is a folder; raises ManifestError unless the folder has one."""
    if not path.is_dir():
        return path
    usual_paths = [path / name for name in ("model.onnx", "onnx/model.onnx") if (path / name).is_file()]
    files = usual_paths[:1] or sorted(path.glob("*.onnx"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:5]) or "none"
        raise ManifestError(f"{path}: a folder with one ONNX file is expected, and this has {names}: name the file")
    return files[0]


def describe(file: OnnxFile, options: Sequence[SourceValues], report: Report) -> Description:
    """Return the classes and preprocessing of the model in a file, from options, metadata, and the files beside it.

    report: shows a line to the owner. Raises ManifestError if no source names the classes, or if it is no classifier.
    """
    values: Values = {}
    sources: dict[str, str] = {}
    lines: list[str] = []
    for source in (*options, *_values_by_source(file, report), SourceValues("by default", _DEFAULTS)):
        decided = {*values, *(_GEOMETRY if "resize" in values else ())}
        new_values = {key: value for key, value in source.values.items() if value is not None and key not in decided}
        if (labels := new_values.pop("labels", None)) is not None:
            new_values = {"labels": labels_from_text(labels, source.source, report), **new_values}
        values |= new_values
        sources |= dict.fromkeys(new_values, source.source)
        if new_values:
            text = "; ".join(f"{key} {_value_text(value)}" for key, value in new_values.items())
            lines.append(f"{source.source}: {text}")
    if "labels" not in values:
        problem = "neither the file nor one beside it names the classes"
        raise ManifestError(f"{file.path}: {problem}: use --labels FILE, with one name a line in the outputs' order")
    input_px = values.pop("input_px", None)
    has_size = all(side.dim_value for side in _first_input_type(file.model).shape.dim[1:])
    if has_size and sources.get("input_px") != "--input":
        input_px = None
    values.pop("inexact", None)
    return Description(values.pop("labels"), values, input_px, sources, lines)


def _value_text(value: Any) -> str:
    """Return a value in words for the owner."""
    if isinstance(value, tuple):
        return " ".join(f"{number:.4g}" for number in value)
    return f"{len(value.names)} classes" if isinstance(value, Labels) else str(value)


def _first_input_type(model: ModelProto) -> TypeProto.Tensor:
    """Return the type of the model's first input, an empty one if it has none."""
    return next((value.type.tensor_type for value in inputs_of(model)), TypeProto.Tensor())


def _values_by_source(file: OnnxFile, report: Report) -> Iterator[SourceValues]:
    """Yield the values of the file's metadata, then of files in its folder, and in the parent of a folder `onnx`."""
    onnx, name = file.path, path_text(Path(file.path.name))
    if _first_input_type(file.model).elem_type == TensorProto.UINT8:
        yield SourceValues(f"uint8 input of {name}", LEVELS)
    metadata = {entry.key: entry.value for entry in file.model.metadata_props}
    for read in _METADATA:
        yield _read_source(f"metadata of {name}", metadata, read, report)
    folders = [onnx.parent, *([onnx.parent.parent] if onnx.resolve().parent.name == "onnx" else [])]
    paths = [folder / file_name for file_name in (*_JSON, *_TEXTS) for folder in folders]
    for path in filter(Path.is_file, paths):
        if path.name in _JSON:
            yield _read_source(path.name, path, _JSON[path.name], report)
        else:
            yield SourceValues(path.name, {"labels": read_labels_text(path)})


def _read_source(source: str, content: Values | Path, read: Reader, report: Report) -> SourceValues:
    """Return what `read` finds in metadata or a JSON file; no values if unreadable. Raises ManifestError if it does."""
    try:
        decoded = json.loads(read_bounded(content, MAX_BYTES)) if isinstance(content, Path) else content
        return SourceValues(source, read(decoded))
    except ManifestError as error:
        raise ManifestError(f"{source}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        report(f"{source}: left out: {type(error).__name__}: {error}")
        return SourceValues(source, {})


def ultralytics_values(metadata: Values) -> Values:
    """Return the values in Ultralytics' metadata (8.4, engine/exporter.py): task, names, imgsz (height, width)."""
    if not {"task", "names"} <= set(metadata):
        return {}
    if metadata["task"] != "classify":
        repair = "export a classifier of whole images, such as yolo11n-cls.pt"
        raise ManifestError(f"it is of the task {metadata['task']}, not of the task classify: {repair}")
    height_px, width_px = map(int, _parse_numbers(metadata.get("imgsz", 224), 2))
    geometry = STRETCHED if height_px != width_px else {}  # as in classify_transforms
    return {**CONVENTIONS["ultralytics"], **geometry, "labels": metadata["names"], "input_px": (width_px, height_px)}


def custom_vision_values(metadata: Values) -> Values:
    """Return the values in Custom Vision's metadata: Azure-Samples/customvision-export-samples, samples/python/onnx."""
    kinds = f"{metadata.get('DomainType', '')} {metadata.get('CustomVision.Postprocess.Method', '')}".strip()
    if "Detection" in kinds or "MultiLabel" in kinds:
        raise ManifestError(
            f"Custom Vision calls its model {kinds}, which answers with more than one class for an image: export a "
            "project of the kind Multiclass"
        )
    if "Image.NominalPixelRange" not in metadata:
        return {}
    mean, std, method, height_px = (
        metadata.get(f"CustomVision.Preprocess.{key}", default)
        for key, default in (("NormalizeMean", 0), ("NormalizeStd", 1), ("CropMethod", ""), ("TargetHeight", 0))
    )
    factor = 1 if metadata["Image.NominalPixelRange"] == "NominalRange_0_255" else 1 / 255
    geometry = {**CROPPED, "resize_px": int(height_px)} if "CropCenter" in method else STRETCHED
    channels = "bgr" if metadata.get("Image.BitmapPixelFormat") == "Bgr8" else "rgb"
    return {**geometry, **_mean_and_std(mean, std, factor), **_nearest_interpolation("bicubic"), "channels": channels}


def property_values(metadata: Values) -> Values:
    """Return labels (a list, or a row with commas), mean and std in the metadata of any other exporter."""
    values: Values = {}
    labels = next((metadata[key] for key in ("labels", "classes", "names") if key in metadata), None)
    if labels is not None:
        is_row = "\n" not in labels.strip() and labels.lstrip()[:1] not in tuple("[{(")
        values["labels"] = labels.replace(",", "\n") if is_row else labels
    if {"mean", "std"} <= set(metadata):
        is_levels = max(*_parse_numbers(metadata["mean"], 3), *_parse_numbers(metadata["std"], 3)) > LEVELS_FROM
        values |= _mean_and_std(metadata["mean"], metadata["std"], 1 if is_levels else 1 / 255)
    return values


def teachable_machine_values(content: Values) -> Values:
    """Return the values in Teachable Machine's metadata.json (@teachablemachine/image 0.8): labels and imageSize."""
    if content.get("packageName") != "@teachablemachine/image":
        return {}
    side_px, labels = int(content.get("imageSize", 224)), json.dumps(content["labels"])
    return {**CONVENTIONS["teachable-machine"], "labels": labels, "input_px": (side_px, side_px)}


def config_values(content: Values) -> Values:
    """Return the values in config.json: transformers' id2label, or timm's label_names and pretrained_cfg."""
    labels = content.get("id2label") or content.get("label_names")
    values = {"labels": json.dumps(labels)} if labels else {}
    pretrained_config = content.get("pretrained_cfg", content)
    if not {"mean", "std", "input_size"} <= set(pretrained_config):
        return values
    share = pretrained_config.get("crop_pct", CONVENTIONS["timm"]["crop_share"])
    geometry = {**CROPPED, "crop_share": share}
    if pretrained_config.get("crop_mode") == "squash":
        geometry = STRETCHED if share == 1 else {**geometry, "inexact": _SQUEEZED}
    _, height_px, width_px = pretrained_config["input_size"]
    return {
        **geometry,
        **_mean_and_std(pretrained_config["mean"], pretrained_config["std"], 1 / 255),
        **_nearest_interpolation(pretrained_config.get("interpolation", "bicubic")),
        **values,
        "input_px": (width_px, height_px),
    }


def hugging_face_values(content: Values) -> Values:
    """Return the preprocessing in a preprocessor_config.json of transformers 5 (its models' image_processing_*.py)."""
    if not {"size", "image_mean", "do_resize", "do_rescale"} & set(content):
        return {}
    is_normalised = content.get("do_normalize", "image_mean" in content)
    mean = _parse_numbers(content["image_mean"] if is_normalised else 0, 3)
    std = _parse_numbers(content["image_std"] if is_normalised else 1, 3)
    processor_type = str(content.get("image_processor_type") or content.get("feature_extractor_type"))
    if processor_type.startswith("EfficientNet") and content.get("include_top", True):
        std = [number * number for number in std]  # transformers divides by std twice
    if content.get("rescale_offset"):
        mean = [number + 1 for number in mean]
    factor = content.get("rescale_factor", 1 / 255) if content.get("do_rescale", True) else 1
    return {
        **_nearest_interpolation(content.get("resample", "bilinear")),
        **_hugging_face_geometry(content, processor_type),
        **_mean_and_std(mean, std, factor),
        "channels": "bgr" if content.get("do_flip_channel_order") else "rgb",
    }


def _hugging_face_geometry(content: Values, processor_type: str) -> Values:
    """Return resize, crop and size of a preprocessor_config.json; `size` is a number, shortest_edge, or both sides."""
    size, crop = content.get("size", 224), content.get("crop_size")
    is_cropped = crop is not None and content.get("do_center_crop", True)
    is_convnext = processor_type.startswith("ConvNext") or content.get("crop_pct") is not None
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


def _nearest_interpolation(method: str | int) -> Values:
    """Return the nearest supported interpolation, and `inexact` if it differs. method: Pillow's name or number."""
    name = _PILLOW[method] if isinstance(method, int) else method
    if name in _SUPPORTED:
        return {"interpolation": _SUPPORTED[name]}
    nearest = _SUPPORTED["bicubic" if name == "lanczos" else "bilinear"]
    return {"interpolation": nearest, "inexact": f"there the interpolation is {name}"}


def _mean_and_std(mean: Any, std: Any, rescale_factor: float) -> Values:
    """Return mean and std for pixels from 0 to 1. mean, std: for pixels from 0 to 255 times `rescale_factor`."""
    divisor = 1 if abs(255 * rescale_factor - 1) < 1e-6 else 255 * rescale_factor
    triples = {"mean": _parse_numbers(mean, 3), "std": _parse_numbers(std, 3)}
    return {key: tuple(float(f"{number / divisor:.9g}") for number in triple) for key, triple in triples.items()}


def _parse_numbers(value: Any, count: int) -> list[float]:
    """Return `count` numbers from a list, text or number; a single one is repeated. Raises ValueError for others."""
    parts = value.strip("[]() ").replace(",", " ").split() if isinstance(value, str) else value
    numbers = [float(part) for part in (parts if isinstance(parts, list | tuple) else [parts])]
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
