"""`jetsel watch fit-gate`: which frames of a camera may be skipped, from a clip of it that is answered once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetsel.base.errors import ConfigError, pip_install
from jetsel.base.files import repair_of
from jetsel.cli.classify import served_models
from jetsel.cli.options import AskedFamily, ConfigFile, Endpoint, Json, emit

if TYPE_CHECKING:
    import numpy as np
    from rich.progress import TaskID

    from jetsel.gateway.cameras.fit_gate import Clip, Fit
    from jetsel.wire import Answer

_ENOUGH_EVENTS = 30  # if none of n is missed, at most 3 / n of others are (Hanley and Lippman-Hand, JAMA 1983)


def fit_gate(
    clip: Annotated[
        str, typer.Argument(metavar="CLIP", help="Video file of the camera, with the changes that matter.")
    ],
    region: Annotated[
        str | None, typer.Option(metavar="X,Y,W,H", help="Part of the frame to classify, in shares from 0 to 1.")
    ] = None,
    every: Annotated[float, typer.Option(min=0, max=86_400, help="Minimum seconds between two requests.")] = 0.0,
    stay: Annotated[int, typer.Option(min=1, max=10_000, help="Consecutive frames until a new label is reported.")] = 3,
    ask_again_s: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds after which an unchanged scene is classified again.")
    ] = 30.0,
    agree: Annotated[
        float, typer.Option(min=0, max=1, help="Minimum share of frames with the label that all frames give.")
    ] = 0.98,
    late_s: Annotated[float, typer.Option(min=0, max=3600, help="Maximum delay of an event, in seconds.")] = 1.0,
    family: AskedFamily = None,
    policy: Annotated[str | None, typer.Option(help="Policy that chooses the models (default: the family's).")] = None,
    model: Annotated[str | None, typer.Option(help="Run only this model.", autocompletion=served_models)] = None,
    wrong_at_most: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Maximum share of wrong answers; too unsure answers get the label `unknown`."),
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write the gate into this [[cameras]] table of the configuration."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
    endpoint: Endpoint = None,
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of a request, in ms.")] = 10_000.0,
    max_image_mb: Annotated[
        float, typer.Option(min=0.01, help="Largest image to send, in MB; use the daemon's [server] max_image_mb.")
    ] = 16.0,
) -> None:
    """Find the gate for a camera: classify each frame of a clip once, and compare gates on the answers.

    The gate that skips the most frames is chosen among those that report every event in time and agree with the labels
    of all frames. Use the options of your `jetsel watch`. --config is read only with --camera.

    To record a clip: ffmpeg -i rtsp://... -t 600 -c copy door.mkv. docs/cameras.md says what belongs into it.
    """
    try:
        from jetsel.client import Client
        from jetsel.gateway.cameras.fit_gate import Clip, Requirement, fitted, record
        from jetsel.gateway.cameras.region import Region, fitting
        from jetsel.gateway.cameras.source import source_of
    except ModuleNotFoundError as missing:
        raise ConfigError(f"jetsel watch needs {missing.name}: {pip_install('gateway')}") from None

    part, found = Region(region), Clip(source_of(clip), every)
    write = None if camera is None else _writer(camera, config)
    asks: dict[str, Any] = {"family": family, "policy": policy, "model": model, "wrong_at_most": wrong_at_most}
    requirement = Requirement(stay, ask_again_s, agree, late_s)
    with Client(endpoint, timeout_ms=timeout_ms, max_image_mb=max_image_mb) as client:

        def ask(frame: np.ndarray) -> Answer:
            answer: Answer = client.classify(fitting(frame, max_image_mb), top_k=1, on_doubt="use", **asks)
            return answer

        with _Progress() as progress:
            recorded = record(_shown(found, part.of, progress), ask)
            if not recorded.times_s:
                raise ConfigError(f"{clip}: it has no frame that OpenCV can decode: record it again")
            progress.show("comparing gates", 0, 0)
            fit = fitted(recorded, requirement, lambda _, done, total: progress.show("comparing gates", done, total))
    if write is not None:
        write("none" if fit.best is None else str(fit.best))
    emit(_plain(fit, requirement), json, lambda: _print(fit, requirement))


def _writer(camera: str, config: Path | None) -> Callable[[str], None]:
    """Return what writes a gate into the configuration file; raises ConfigError now if it could not."""
    from jetsel.gateway.cameras.camera_file import rewrite, with_gate
    from jetsel.site.config_file import locate

    path = locate(config)
    if path is None:
        raise ConfigError("--camera: there is no configuration file: name one with --config jetsel.toml")

    def edited(gate: str) -> str:
        try:
            return with_gate(path.read_bytes().decode("utf-8"), camera, gate)  # the ends of its lines stay
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}") from None
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; write one with: jetsel config > jetsel.toml") from None

    def write(gate: str) -> None:
        text = edited(gate)
        try:
            rewrite(path, text)
        except OSError as error:
            repair = repair_of(error, "write it by hand")
            raise ConfigError(f'{path}: {error.strerror}: {repair}: gate = "{gate}"') from None
        typer.echo(f'jetsel: wrote gate = "{gate}" for camera {camera} into {path}', err=True)

    edited("none")
    return write


def _shown(clip: Clip, part: Callable[[np.ndarray], np.ndarray], progress: _Progress) -> Iterator[Any]:
    """Yield the clip's frames, and show how many there were."""
    for number, (now_s, frame) in enumerate(clip.frames()):
        progress.show("classifying frames", number, max(clip.n_expected, number))
        yield now_s, part(frame)


class _Progress:
    """A bar on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bars = Progress(console=Console(stderr=True, highlight=False, markup=False))
        self._name = ""
        self._task: TaskID | None = None

    def __enter__(self) -> _Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def show(self, name: str, done: int, total: int) -> None:
        """Show how much of a thing is done; a thing that follows another completes it."""
        if self._task is not None and name == self._name:
            self._bars.update(self._task, completed=done, total=total)
            return
        if self._task is not None:
            task = self._bars.tasks[-1]
            self._bars.update(task.id, completed=task.total)
        self._name, self._task = name, self._bars.add_task(name, total=total or None)


def _plain(fit: Fit, requirement: Any) -> dict[str, Any]:
    """Return what --json prints."""
    features = [
        {
            "feature": one.feature,
            "threshold": None if one.setting is None else one.setting.skip_below,
            "frames_asked": one.judged.frames_asked,
            "agreement": round(one.judged.agreement, 4),
            "events_missed": one.judged.events_missed,
            "largest_delay_s": round(one.judged.largest_delay_s, 3),
        }
        for one in fit.features
    ]
    return {
        "gate": "none" if fit.best is None else str(fit.best),
        "frames": fit.features[0].judged.frames,
        "events": fit.events,
        "agree": requirement.agree,
        "late_s": requirement.late_s,
        "features": features,
    }


def _print(fit: Fit, requirement: Any) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("feature", ">threshold", ">frames asked", ">agreement %", ">events missed", ">largest delay s")
    for one in fit.features:
        threshold = "-" if one.setting is None else f"{one.setting.skip_below:g}"
        agreement = f"{100 * one.judged.agreement:.2f}"
        missed, delay = str(one.judged.events_missed), f"{one.judged.largest_delay_s:.2f}"
        shown.add_row(one.feature, threshold, str(one.judged.frames_asked), agreement, missed, delay)
    out = console()
    out.print(shown)
    frames = fit.features[0].judged.frames
    out.print(f"{frames} frames with {fit.events} events, the first label among them.", soft_wrap=True)
    if fit.events < _ENOUGH_EVENTS:
        out.print(
            f"These are few events: the gate may miss others. Record a clip with at least {_ENOUGH_EVENTS} changes.",
            soft_wrap=True,
        )
    if fit.best is None:
        out.print(
            f"No gate skips a frame of this clip with {100 * requirement.agree:g} % agreement and each event within "
            f"{requirement.late_s:g} s. Classify every frame:",
            soft_wrap=True,
        )
    out.print(f"--gate {'none' if fit.best is None else fit.best}")
