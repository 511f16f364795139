"""Put what was trained into a folder of models: a multiplexer, and models that were trained jointly."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.engines.trying import try_run
from jetsel.train.multiplexer.making import Made
from jetsel.train.multiplexer.weigher import Loss
from jetsel.weights import Tried, Weights
from jetsel.zoo import Family, Model
from jetsel.zoo.deriving import derived
from jetsel.zoo.held_out import held_out_file
from jetsel.zoo.manifest import Manifest, Multiplexes, read_manifest
from jetsel.zoo.onnx_model import model_in, parameters
from jetsel.zoo.placing import put, working_folder

NAME = "multiplexer"
VERSION = "1.0.0"


def add_multiplexer(
    family: Family,
    stem: Model,
    models: Sequence[Model],
    made: Made,
    loss: Loss,
    held_out: Mapping[str, NDArray[np.float32]],
    words: str,
    folder: Path,
    threads: int,
) -> Model:
    """Put a multiplexer of `models` into a folder, or in the place of the family's; return it.

    stem: whose first layers it has. held_out: see zoo.held_out. words: how it was trained. One that belonged to models
    which have changed since is replaced as well.
    """
    before, sha256 = family.multiplexer or _standing(family, folder), hashlib.sha256(made.content).hexdigest()
    table = held_out_file(held_out)
    digest = hashlib.sha256(table).hexdigest()
    said, name = stem.manifest, f"{family.name}.{NAME}.{digest[:12]}.npz"
    with working_folder(folder if before is None else before.directory) as work:
        file = work / "model.onnx"
        file.write_bytes(made.content)
        weights = Weights(NAME, file, sha256, said.input.height_px, said.input.width_px, len(models) + 1)
        manifest = Manifest(
            name=NAME if before is None else before.manifest.name,
            version=VERSION,
            family=family.name,
            file=f"{family.name}.{NAME}.{sha256[:12]}.onnx",
            sha256=sha256,
            labels=f"{family.name}.{family.labels.sha256[:12]}.tsv",
            input=said.input,
            outputs=("logits",),
            embedding_width=None,
            latency_ms=_as_of(stem, family, try_run(weights, threads), threads).latency_ms,
            parameters=parameters(model_in(made.content, NAME)),
            source=f"trained here, on the first layers of {said.name} ({said.source}): {words}",
            notice=said.notice,
            licence=said.licence,
            multiplexes=Multiplexes(
                models=tuple(model.manifest.name for model in models),
                identities=tuple(model.manifest.identity for model in models),
                loss=loss,
                held_out=name,
                held_out_sha256=digest,
            ),
        )
        labels = (stem.directory / said.labels).read_bytes()
        return Model(manifest, put(work, file, labels, manifest, before, {name: table}))


def add_joint(
    family: Family, parent: Model, name: str, content: bytes, words: str, folder: Path, threads: int
) -> Model:
    """Put a model that was trained on into a folder under a new name, or in the place of its like; return it."""
    said, sha256 = parent.manifest, hashlib.sha256(content).hexdigest()
    old = next((one for one in family.models if one.manifest.name == name), None)
    with working_folder(folder if old is None else old.directory) as work:
        file = work / "model.onnx"
        file.write_bytes(content)
        weights = Weights(name, file, sha256, said.input.height_px, said.input.width_px, len(family.labels.wnids))
        tried = _as_of(parent, family, try_run(weights, threads), threads)
        count = parameters(model_in(content, name))
        manifest = derived(said, name, sha256, family.labels.sha256, said.input, tried, count, words)
        return Model(manifest, put(work, file, (parent.directory / said.labels).read_bytes(), manifest, old))


def _standing(family: Family, folder: Path) -> Model | None:
    """Return the multiplexer in the folder that is left out, as its models have changed; None where there is none."""
    path = folder / f"{family.name}.{NAME}.json"
    return Model(read_manifest(path), path) if path.exists() else None


def _as_of(parent: Model, family: Family, tried: Tried, threads: int) -> Tried:
    """Return a time as the parent's manifest has times: they may be of another machine, or by operations."""
    here_ms = try_run(parent.weights(len(family.labels.wnids)).backbone, threads).latency_ms
    return replace(tried, latency_ms=tried.latency_ms * parent.manifest.cost_ms / here_ms)
