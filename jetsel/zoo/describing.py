"""Collect a model's description from the owner's options, its file's metadata, and the files beside it, in this order.

The values are those of a convention (zoo/conventions.py), `labels` (a text), `input_px` (width and height), and
`inexact` (how the convention differs from the source). The first source of a value counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded
from jetsel.base.names import path_text
from jetsel.zoo import neighbours
from jetsel.zoo.conventions import CONVENTIONS, CROPPED, LEVELS
from jetsel.zoo.labels import MAX_BYTES, labels_file, labels_text
from jetsel.zoo.onnx_model import inputs_of, read_model

if TYPE_CHECKING:
    from onnx import ModelProto

_UINT8 = 2  # of TensorProto.DataType
_DEFAULTS = {**CROPPED, "interpolation": "antialiased-bilinear"}
_GEOMETRY = ("resize", "crop", "resize_px", "crop_share")  # of options and the first source with `resize`
_JSON: dict[str, neighbours.Reader] = {
    "preprocessor_config.json": neighbours.of_hugging_face,
    "config.json": neighbours.of_config,
    "metadata.json": neighbours.of_teachable_machine,
    "metadata_properties.json": neighbours.of_custom_vision,
    "cvexport.manifest": neighbours.of_custom_vision,
}
_TEXTS = ("labels.txt", "classes.txt", "imagenet_classes.txt")


class Said(NamedTuple):
    """The values that one source gives."""

    source: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Description:
    """The values of all sources together.

    labels: the content of a labels file. spec: a convention, without mean and std if no source gives them. input_px:
    None to use the graph's size. sources: name of a value -> its source. lines: the values by source, for the owner.
    """

    labels: bytes
    spec: dict[str, Any]
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


def onnx_in(path: Path) -> Path:
    """Return the path, or the one ONNX file in it if it is a folder; raises ManifestError if the choice is unclear."""
    if not path.is_dir():
        return path
    usual = [path / name for name in ("model.onnx", "onnx/model.onnx") if (path / name).is_file()]
    files = usual[:1] or sorted(path.glob("*.onnx"))
    if len(files) != 1:
        names = ", ".join(one.name for one in files[:5]) or "none"
        raise ManifestError(f"{path}: a folder with one ONNX file is expected, and this has {names}: name the file")
    return files[0]


def describe(onnx: Path, options: Sequence[Said], tell: Callable[[str], None]) -> Description:
    """Return the description of the model in a file, from options, metadata, and the files beside it.

    tell: takes a line for the owner. Raises ManifestError if a source shows that it is no classifier, or if no source
    names the classes.
    """
    model = read_model(onnx)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source in (*options, *_sources(model, onnx, tell), Said("by default", _DEFAULTS)):
        passed_over = {*values, *(_GEOMETRY if "resize" in values else ())}
        new = {key: one for key, one in source.values.items() if one is not None and key not in passed_over}
        values |= new
        sources |= dict.fromkeys(new, source.source)
    if "labels" not in values:
        raise ManifestError(
            f"{onnx}: neither the file nor one beside it names the classes: use --labels FILE, with one name on each "
            "line in the order of the outputs"
        )
    labels = labels_file(values.pop("labels"), sources["labels"], tell)
    lines = _lines({"labels": f"{len(labels.splitlines())} classes", **values}, sources)
    input_px = values.pop("input_px", None)
    if not _is_open(model) and sources.get("input_px") != "--input":
        input_px = None
    values.pop("inexact", None)
    return Description(labels, values, input_px, sources, lines)


def _lines(values: dict[str, Any], sources: dict[str, str]) -> list[str]:
    words = {
        key: " ".join(f"{one:.4g}" for one in value) if isinstance(value, tuple) else str(value)
        for key, value in values.items()
        if value is not None
    }
    return [
        f"{source}: {'; '.join(f'{key} {text}' for key, text in words.items() if sources[key] == source)}"
        for source in dict.fromkeys(sources[key] for key in words)
    ]


def _input(model: ModelProto) -> Any:
    """Return the type of the model's first input, None if it has none."""
    return next((value.type.tensor_type for value in inputs_of(model)), None)


def _is_open(model: ModelProto) -> bool:
    """Whether a dimension of the input, other than the batch, is not fixed in the file."""
    taken = _input(model)
    return taken is not None and not all(side.dim_value for side in taken.shape.dim[1:])


def _sources(model: ModelProto, onnx: Path, tell: Callable[[str], None]) -> Iterator[Said]:
    """Yield the values of the metadata, then of files beside the model, or one level up if its folder is `onnx`."""
    taken, name = _input(model), path_text(Path(onnx.name))
    if taken is not None and taken.elem_type == _UINT8:
        yield Said(f"uint8 input of {name}", LEVELS)
    props = {entry.key: entry.value for entry in model.metadata_props}
    for of_props in (neighbours.of_ultralytics, neighbours.of_custom_vision, neighbours.of_properties):
        yield _said(f"metadata of {name}", props, of_props, tell)
    folders = [onnx.parent, *([onnx.parent.parent] if onnx.resolve().parent.name == "onnx" else [])]
    for file, of_file in _JSON.items():
        for path in (folder / file for folder in folders if (folder / file).is_file()):
            yield _said(file, path, of_file, tell)
    for path in (folder / file for file in _TEXTS for folder in folders if (folder / file).is_file()):
        yield Said(path.name, {"labels": labels_text(path)})


def _said(source: str, content: dict[str, Any] | Path, read: neighbours.Reader, tell: Callable[[str], None]) -> Said:
    """Return a source's values; if it cannot be read, none, and `tell` the reason. Raises ManifestError from `read`."""
    try:
        return Said(
            source, read(json.loads(read_bounded(content, MAX_BYTES)) if isinstance(content, Path) else content)
        )
    except ManifestError as error:
        raise ManifestError(f"{source}: {error}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        tell(f"{source}: left out: {type(error).__name__}: {error}")
        return Said(source, {})
