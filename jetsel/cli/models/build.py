"""`jetsel models build`: engines for this device's TensorRT and GPU, compared with ONNX Runtime before use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jetsel.cli.options import ConfigFile, Json

if TYPE_CHECKING:
    from jetsel.config import Config
    from jetsel.daemon.building import Candidate, Outcome

EXIT_FAILED = 1
MOST_COMPARED, MOST_CALIBRATED = 500, 512  # photographs: more change no figure and no scale that counts


def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Which models. Left out: all that the configuration runs on tensorrt."
        ),
    ] = None,
    family: Annotated[str | None, typer.Option(metavar="NAME", help="Only models of this family.")] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "int8"] | None, typer.Option(help="Left out: [host] precision, fp16 as jetsel comes.")
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Compare on these. Left out: on a few that jetsel has."
        ),
    ] = None,
    calibrate_on: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="The photographs that int8 takes its scales from."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build what stands already, too.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Then delete these models' engines of other versions, GPUs and settings.")
    ] = False,
    limit_s: Annotated[float, typer.Option(min=1, help="Give up on a model after this many seconds.")] = 14_400.0,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Build the engines that TensorRT runs, for this very device, each in a process of its own.

    Each is compared with ONNX Runtime on photographs, and refused where its answers differ; what stands already is left
    alone. Exit status 1 where one fails; the rest are built.
    """
    import msgspec

    from jetsel.cli import settings
    from jetsel.cli.models.build_telling import Teller
    from jetsel.cli.models.samples import Folder, Own
    from jetsel.daemon.building import build_missing
    from jetsel.daemon.snapshot import limits_of
    from jetsel.engines.building.builder import Builder
    from jetsel.engines.building.child import Patience

    values = settings.read(settings.locate(config))
    host = values.host if precision is None else msgspec.structs.replace(values.host, precision=precision)
    candidates = _candidates(values, names or [], family)
    builder = Builder(host, Patience(total_s=limit_s))
    limits, decode_px = limits_of(values), max(one.model.manifest.input.shorter_px for one in candidates)
    compared = Own(limits, decode_px) if photographs is None else Folder(photographs, MOST_COMPARED, limits, decode_px)
    calibration = None if calibrate_on is None else Folder(calibrate_on, MOST_CALIBRATED, limits, decode_px)
    teller = Teller(builder.about, quiet=json)
    teller.begin(compared.source, len(compared))
    outcomes = []
    with teller:
        for outcome in build_missing(
            builder, candidates, compared, teller.building, teller.stage, calibration=calibration, force=force
        ):
            outcomes.append(outcome)
            teller.became(outcome)
    built = [outcome.candidate.weights for outcome in outcomes if outcome.plan is not None]
    pruned = builder.prune(built, [values.host]) if prune else []
    if json:
        found = [_plain(outcome) for outcome in outcomes]
        gone = [{"path": str(path), "bytes": size} for path, size in pruned]
        typer.echo(msgspec.json.encode({"compared_on": compared.source, "models": found, "pruned": gone}).decode())
    else:
        for path, size in pruned:
            typer.echo(f"deleted {path} ({size / 1e6:.1f} MB)")
        for note in _notes(values, outcomes, precision):
            typer.echo(note)
    if any(outcome.plan is None for outcome in outcomes):
        raise typer.Exit(EXIT_FAILED)


def _candidates(config: Config, names: Sequence[str], family: str | None) -> list[Candidate]:
    """Return what is to be built; raises UnknownFamilyError, UnknownModelError, ConfigError for nothing."""
    from jetsel.daemon.building import Candidate, on_tensorrt
    from jetsel.daemon.family import served_models
    from jetsel.errors import ConfigError, UnknownFamilyError, UnknownModelError
    from jetsel.zoo import model_folders, scan

    zoo = scan(model_folders(config.models))
    if family is not None and family not in zoo.families:
        raise UnknownFamilyError(f"there is no family {family}: see jetsel models list")
    families = [known for known in zoo.families.values() if family in (None, known.name)]
    if names:
        all_of_them = [
            Candidate(known.name, model, len(known.labels.names)) for known in families for model in known.models
        ]
        unknown = sorted(set(names) - {one.model.manifest.name for one in all_of_them})
        if unknown:
            raise UnknownModelError(f"there is no model {', '.join(unknown)}: see jetsel models list")
        return [one for one in all_of_them if one.model.manifest.name in names]
    found = [
        one
        for known in families
        for one in on_tensorrt(known.name, served_models(known, config).values(), len(known.labels.names), config)
    ]
    if not found:
        raise ConfigError(
            'models.backend: no model runs on tensorrt here: name those to build, or write backend = "tensorrt" under '
            "[models] in jetsel.toml"
        )
    return found


def _plain(outcome: Outcome) -> dict[str, Any]:
    import msgspec

    plan = outcome.plan
    return {
        "family": outcome.candidate.family,
        "name": outcome.candidate.model.manifest.name,
        "was_built": outcome.was_built,
        "fault": outcome.reason,
        "engine": None if plan is None else str(plan.path),
        "record": None if plan is None else msgspec.to_builtins(plan.record),
    }


def _notes(config: Config, outcomes: Sequence[Outcome], precision: str | None) -> list[str]:
    """What to do so that the engines are used."""
    from jetsel.daemon.building import BACKEND

    built = [outcome.candidate.model.manifest.name for outcome in outcomes if outcome.was_built]
    elsewhere = [name for name in built if config.models.backends.get(name, config.models.backend) != BACKEND]
    notes = []
    if elsewhere:
        notes.append(f"not served by TensorRT yet: {', '.join(elsewhere)}; for that write under [models.backends]:")
        notes += [f'{name} = "{BACKEND}"' for name in elsewhere]
    if built and precision not in (None, config.host.precision):
        notes.append(f'the daemon loads {config.host.precision} engines until [host] says precision = "{precision}"')
    if built:
        notes.append("a daemon that runs uses them after: jetsel reload")
    return notes
