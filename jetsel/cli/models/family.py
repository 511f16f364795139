"""`jetsel models pull efficientnet-lite`: a whole family, each rung in the faster precision, compared and added."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import partial
from pathlib import Path
from statistics import median

import typer

from jetsel.base.config import Config
from jetsel.base.errors import ManifestError
from jetsel.base.weights import Weights
from jetsel.calibrate.record.durations import run_by_turns
from jetsel.cli.models.candidates import BACKEND
from jetsel.cli.models.listing import described
from jetsel.cli.models.placed import notes_of, put
from jetsel.cli.options import print_json
from jetsel.cli.terminal import console, milliseconds, table
from jetsel.engines import Backends, warm_up
from jetsel.engines.building.builder import Builder
from jetsel.engines.trying import largest_difference
from jetsel.power.machine import Machine
from jetsel.zoo import Model, model_folders, pretrained, scan
from jetsel.zoo.manifest import PrecisionChoice
from jetsel.zoo.placing import take_out
from jetsel.zoo.pretrained import PretrainedModel, RungPair, drawn


@dataclass(frozen=True, kw_only=True)
class Pull:
    """What is wanted of a family. family: its name, None for its own. folder: None for any that the daemon reads.

    both: whether each rung is added in both precisions. replace: whether what is there is written again.
    """

    values: Config
    family: str | None
    folder: Path | None
    both: bool = False
    replace: bool = False


@dataclass(frozen=True)
class Pulled:
    """The family's models, and the names of those that were added, and of those whose place others took."""

    models: list[Model] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def pull_family(pull: Pull, brought: Path | None, *, json: bool) -> None:
    """Add every rung that is not there yet, and print the family with how long each takes here.

    Raises ManifestError or EngineFailedError that names the repair; what was added before stays, and the same command
    goes on.
    """
    symmetric = pull.values.models.backend == BACKEND
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        pulled = add_rungs(pretrained.rungs(brought, Path(scratch), tell, symmetric=symmetric), pull)
    first = pulled.models[0]
    names = [model.manifest.name for model in pulled.models]
    notes = notes_of(pull.values, first.directory, first.manifest.family, names)
    if pulled.removed:
        notes.append(
            f"calibrations that were made with {', '.join(pulled.removed)} will be rejected: jetsel calibrate --retime"
        )
    _print(pulled, notes, json=json)


def add_rungs(pairs: Iterable[RungPair], pull: Pull) -> Pulled:
    """Add each rung in one precision, or in both, unless it is there already. Raises as `pull_family` does."""
    folder = pull.folder
    folders = model_folders(pull.values.models) if folder is None else [folder] if folder.is_dir() else []
    families = [one.models for one in scan(folders).families.values() if pull.family in (None, one.name)]
    pulled = Pulled()
    for pair in pairs:
        installed = next((models for models in families if any(_namesake(models, rung) for rung in pair)), ())
        there = [_there(installed, rung) for rung in pair]
        are_both = all(model is not None and model.manifest.precision_choice is None for model in there)
        if pull.both or (are_both and not pull.replace):
            for rung, model in zip(pair, there, strict=True):
                _take(rung, model, None, pull, pulled)
        else:
            _take_faster(pair, installed, pull, pulled)
    return pulled


def _take_faster(pair: RungPair, installed: Sequence[Model], pull: Pull, pulled: Pulled) -> None:
    """Add the rung that is faster here, unless it is there already, and remove the other one."""
    tell(f"timing {' and '.join(rung.wanted.name for rung in pair)}")
    in_8_bits = _there(installed, pair.int8)
    rung, choice = choose_precision(
        pair, pull.values, None if in_8_bits is None else in_8_bits.manifest.precision_choice
    )
    _take(rung, _there(installed, rung), choice, pull, pulled)
    other = _namesake(installed, pair.float32 if rung is pair.int8 else pair.int8)
    if other is not None:
        take_out(other)
        pulled.removed.append(other.manifest.name)


def _take(
    rung: PretrainedModel, there: Model | None, choice: PrecisionChoice | None, pull: Pull, pulled: Pulled
) -> None:
    """Add a rung, unless it is `there` already; one that was chosen on another machine is written again."""
    before = None if there is None else there.manifest.precision_choice
    if there is None or pull.replace or _place_of(before) != _place_of(choice):
        tell(f"trying {rung.wanted.name}")
        _compare(pull.values, rung)
        description = with_(rung.wanted, family=pull.family, precision_choice=choice)
        replace = pull.replace or there is not None
        there = put(rung.onnx, description, pull.values, pull.folder, replace=replace).model
        pulled.added.append(there.manifest.name)
    pulled.models.append(there)


def _place_of(choice: PrecisionChoice | None) -> tuple[str | None] | None:
    """Where a choice was made, None for no choice."""
    return None if choice is None else (choice.machine,)


def tell(line: str) -> None:
    """Print what is done next."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)


def _there(installed: Sequence[Model], rung: PretrainedModel) -> Model | None:
    """The very same model, if it was added before."""
    model = _namesake(installed, rung)
    return model if model is not None and model.manifest.recipe == rung.wanted.recipe else None


def _namesake(installed: Sequence[Model], rung: PretrainedModel) -> Model | None:
    """The model of this name and these weights, perhaps in 8 bits for another backend; one with a head is another."""
    same = (rung.wanted.name, rung.wanted.tensors_sha256, rung.side_px)
    return next(
        (
            model
            for model in installed
            for manifest in [model.manifest]
            if (manifest.name, manifest.tensors_sha256, manifest.input.width_px) == same and manifest.head is None
        ),
        None,
    )


def _compare(values: Config, rung: PretrainedModel) -> None:
    """Raise ManifestError if ONNX Runtime answers otherwise than the reference did."""
    apart = largest_difference(weights_of(rung), values.models.threads, drawn(rung.side_px), rung.expected)
    if not apart <= rung.tolerance:  # nor if it is not finite
        raise ManifestError(
            f"{rung.wanted.name}: ONNX Runtime differs from the reference by {apart:.1e} of the largest logit, more "
            f"than {rung.tolerance:.0e}: install another version of onnxruntime"
        )


def _print(pulled: Pulled, notes: list[str], *, json: bool) -> None:

    first = pulled.models[0].manifest
    if json:
        import msgspec

        models = [msgspec.to_builtins(model.manifest) for model in pulled.models]
        print_json({"models": models, "added": pulled.added, "removed": pulled.removed, "notes": notes})
        return
    shown = table("model", "input", ">ms per image here", "when pulled, ms", ">million parameters", "file")
    shown.title = f"family {first.family}, in {pulled.models[0].directory}"
    for manifest in (model.manifest for model in pulled.models):
        shown.add_row(
            manifest.name,
            f"{manifest.input.width_px} x {manifest.input.height_px}",
            milliseconds(manifest.cost_ms),
            described(manifest.precision_choice),
            f"{manifest.parameters / 1e6:.1f}",
            manifest.file,
        )
    console().print(shown)
    if len(pulled.added) < len(pulled.models):
        count = len(pulled.models) - len(pulled.added)
        there = "all models" if not pulled.added else f"{count} of {len(pulled.models)} models"
        typer.echo(f"{there} were there already: --replace writes them again, --folder DIR writes another copy")
    if pulled.removed:
        typer.echo(f"removed, since the other precision is faster here: {', '.join(pulled.removed)}")
    typer.echo(f"notice: {first.notice}")
    for note in notes:
        typer.echo(f"note: {note}")
    if pulled.added:
        typer.echo("to use them in a running daemon: jetsel reload")


CLEARLY_FASTER = 0.9
"""Of the other one's time, at most: less may be noise, and 8 bits cost a little accuracy."""
LEAST_ROUNDS, MOST_ROUNDS = 5, 50  # of one run of each model
WARM_UPS = 3
BUDGET_S = 15.0  # after which no further round begins; loading takes the rest of 20 s


def choose_precision(
    pair: RungPair, values: Config, former: PrecisionChoice | None
) -> tuple[PretrainedModel, PrecisionChoice]:
    """Return the rung to add, and why. former: why the model in 8 bits that is there was chosen, None if none is.

    With TensorRT nothing is timed, since an engine takes minutes to build: the float model is built as FP16, and a
    model in 8 bits can be built only as int8. Raises EngineFailedError.
    """
    machine = Machine(values.power.sysfs).facts().board.value
    if values.models.backend == BACKEND:
        return pair.int8 if _builds_int8(values) else pair.float32, PrecisionChoice(machine=machine)
    float_ms, int8_ms = _times_ms(pair, values)
    is_there = former is not None and former.machine == machine
    rung = pair.int8 if is_int8_chosen(float_ms, int8_ms, is_there=is_there) else pair.float32
    return rung, PrecisionChoice(float_ms=float_ms, int8_ms=int8_ms, machine=machine)


def is_int8_chosen(float_ms: float, int8_ms: float, *, is_there: bool) -> bool:
    """Whether 8 bits are chosen by these times.

    is_there: whether they were chosen on this machine before. Then they stay until the float model is clearly faster: a
    time near the limit would exchange the models each time otherwise.
    """
    return float_ms > CLEARLY_FASTER * int8_ms if is_there else int8_ms <= CLEARLY_FASTER * float_ms


def _builds_int8(values: Config) -> bool:
    """Whether TensorRT here is to build int8 engines, and the GPU is fast in them; raises EngineFailedError."""
    return values.host.precision == "int8" and bool(Builder(values.host).about["gpu"].get("fast_int8"))


def _times_ms(pair: RungPair, values: Config) -> tuple[float, float]:
    """Return the median time of one image with each, by turns, on the configured backend; raises EngineFailedError."""
    backends, engines = Backends(values.host), []
    runs: dict[str, Callable[[], object]] = {}
    try:
        for rung in pair:
            weights, image = weights_of(rung), drawn(rung.side_px)[:1]
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


def weights_of(rung: PretrainedModel) -> Weights:
    """Return what a backend loads before the rung is added."""
    return Weights(rung.wanted.name, rung.onnx, rung.sha256, rung.side_px, rung.side_px, rung.expected.shape[1])
