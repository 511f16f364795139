"""`jetsel demo`: classify a few images with a temporary daemon, and show how the policy chooses models."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jetsel.base.errors import pip_install

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.client import Client
    from jetsel.client.photograph import Photograph
    from jetsel.wire import Answer
    from jetsel.wire.status import FamilyStatus

HOW_TO_GET_PHOTOGRAPHS = (
    "The images come with scikit-image, which is not installed. Install it with `make demo`, or with: "
    f"{pip_install('demo')}. Without it, the demo shows only drawings."
)


class DemoImage(NamedTuple):
    """An image of scikit-image: description, file, and the WordNet ids of the ImageNet classes that are right."""

    text: str
    file: str
    wnids: frozenset[str]


PHOTOGRAPHS = (
    DemoImage("a cat", "chelsea.png", frozenset({"n02123045", "n02123159", "n02124075"})),  # tabby, tiger, Egyptian
    DemoImage("a cup of coffee", "coffee.png", frozenset({"n07920052", "n07930864", "n03063599"})),
    DemoImage("a camera on its tripod", "camera.png", frozenset({"n04485082"})),
    DemoImage("a motorcycle", "motorcycle_left.png", frozenset({"n03785016", "n03791053"})),  # moped, scooter
)


class DemoAnswer(NamedTuple):
    """The answers to one image, by the policy and by the most expensive model alone. wnids: right classes, if known."""

    text: str
    wnids: frozenset[str]
    by_policy: Answer
    by_most_expensive: Answer


def demo(
    policy: Annotated[str | None, typer.Option(help="Policy that chooses the models (default: the family's).")] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the ImageNet family, which is downloaded with pip if it is not there."
        ),
    ] = None,
) -> None:
    """Start a private daemon, classify a few images, show which model answered each and why, and stop the daemon.

    The default policy is compared with the most expensive model. No setup is needed, and only the models in DIR are
    kept.
    """
    from jetsel.cli.status_text import family_lines
    from jetsel.cli.temporary import daemon
    from jetsel.cli.terminal import console
    from jetsel.zoo import STARTER

    out = console()
    folder = None if models is None else _download_family(models)
    out.print("starting a daemon on a socket of its own ...")
    began = time.perf_counter()
    with daemon(folder) as client:
        out.print(f"ready after {time.perf_counter() - began:.1f} s")
        if not photographs():
            out.print(HOW_TO_GET_PHOTOGRAPHS, soft_wrap=True)
        status = client.status()
        (family,) = (one for one in status.families if one.name == status.default_family)
        answers = _classify(client, policy, family)
        out.print(_answer_table(answers))
        for line in (_summary(answers), *family_lines(family)):
            out.print(line, soft_wrap=True)
        if family.name == "starter":
            out.print(*_day_and_night(client))
    if family.name != "starter":
        with daemon(STARTER) as client:
            out.print(*_day_and_night(client))
    out.print("the daemon has stopped")
    if folder is not None:
        out.print("to serve these models: jetsel models pull efficientnet-lite, then jetsel serve")


SHOWN_AT_NIGHT = "a cup of coffee"
MOST_ACCURATE = "chain:1"
"""The most accurate setting of the policy that finds models by similar images; its default setting saves more time."""


def _day_and_night(client: Client) -> tuple[Table, str]:
    """Classify an image and a dark copy of it; return a table, and a sentence on how the policy finds the models."""
    import cv2
    import numpy as np

    from jetsel.cli.drawn import at_night, pictures
    from jetsel.cli.terminal import milliseconds, table

    text, path = SHOWN_AT_NIGHT, photographs().get(SHOWN_AT_NIGHT)
    if path is None:
        text, day = next(iter(pictures().items()))
    else:
        day = np.asarray(cv2.imread(str(path)), np.uint8)
    rows = table("image", "answer", ">prob.", "models run", ">ms in models", ">features", "why")
    for name, picture in ((text, day), (f"{text}, at night", at_night(day))):
        for _ in range(2):  # the first run of a model is slower than usual
            answer = client.classify(picture, family="starter", policy=MOST_ACCURATE)
        ran = ", ".join(run.model for run in answer.ran)
        times = milliseconds(_inference_ms([answer])), milliseconds(answer.stages_ms.features)
        rows.add_row(name, answer.label, f"{answer.probability:.0%}", ran, *times, answer.because)
    return rows, (
        "The premodel (chain) chooses models by the calibration images that are nearest in a few features. The image "
        "at night is drawn."
    )


def photographs() -> dict[str, Path]:
    """Return the paths of scikit-image's images, by description; none if scikit-image is not installed."""
    package = importlib.util.find_spec("skimage")
    folder = Path(package.origin).parent / "data" if package and package.origin else None
    return {one.text: folder / one.file for one in PHOTOGRAPHS if (folder / one.file).is_file()} if folder else {}


def _download_family(folder: Path) -> Path | None:
    """Return the folder, with the ImageNet family downloaded into it; print why and return None if that fails."""
    from jetsel.base.config import Config, Models
    from jetsel.base.errors import JetselError
    from jetsel.cli.models.family import Pull, pull_family
    from jetsel.zoo import scan

    if folder.is_dir() and "imagenet" in scan([folder]).families:
        return folder
    typer.echo("fetching the family of ImageNet (40 MB), once ...")
    try:
        values = Config(models=Models(paths=[str(folder)], default_family="imagenet"))  # as the demo's daemon
        pull_family(Pull(values=values, family=None, folder=folder), None, json=False)
    except JetselError as error:
        typer.echo(f"the ImageNet family cannot be downloaded, so the starter family is used: {error}")
        return None
    return folder


def _classify(client: Client, policy: str | None, family: FamilyStatus) -> list[DemoAnswer]:
    """Return the answers to each image of scikit-image that the family knows; without scikit-image, to drawings.

    Each request is sent twice and the second answer returned, because the first run of a model is slower than usual.
    """
    from jetsel.cli.drawn import pictures

    paths = photographs()
    suitable = PHOTOGRAPHS if family.name == "imagenet" else PHOTOGRAPHS[:2]  # starter has no other classes
    right_wnids = {one.text: one.wnids for one in suitable}
    drawings = {f"drawing of {text}": picture for text, picture in pictures().items()}
    images: dict[str, Photograph] = {text: paths[text] for text in right_wnids if text in paths} or dict(drawings)
    most_expensive = f"single:{family.models[-1].name}"
    for _ in range(2):
        answers = [
            DemoAnswer(
                text,
                right_wnids.get(text, frozenset()),
                client.classify(picture, policy=policy),
                client.classify(picture, policy=most_expensive),
            )
            for text, picture in images.items()
        ]
    return answers


def _answer_table(demo_answers: list[DemoAnswer]) -> Table:
    """Return a table with two rows for each image: the policy's answer, and the most expensive model's."""
    from jetsel.cli.terminal import milliseconds, table

    rows = table("image", "policy", "answer", "right", ">prob.", "models run", ">ms in models", ">features", "why")
    for one in demo_answers:
        for name, answer in ((one.text, one.by_policy), ("", one.by_most_expensive)):
            ran = ", ".join(run.model for run in answer.ran)
            times = milliseconds(_inference_ms([answer])), milliseconds(answer.stages_ms.features)
            verdict = "-" if not one.wnids else "yes" if answer.wnid in one.wnids else "no"
            result = (answer.policy, answer.label, verdict, f"{answer.probability:.0%}")
            rows.add_row(name, *result, ran, *times, answer.because)
    return rows


def _summary(demo_answers: list[DemoAnswer]) -> str:
    """Return a summary of accuracy and time over all images, for the policy and the most expensive model."""
    from jetsel.cli.terminal import milliseconds

    lines = []
    for answers in ([one.by_policy for one in demo_answers], [one.by_most_expensive for one in demo_answers]):
        n_right = sum(answer.wnid in one.wnids for one, answer in zip(demo_answers, answers, strict=True))
        n_labelled = sum(bool(one.wnids) for one in demo_answers)
        accuracy = f"right on {n_right} of {n_labelled}, " if n_labelled else ""
        features_ms = sum(answer.stages_ms.features or 0.0 for answer in answers)
        spent = f"{milliseconds(_inference_ms(answers))} ms in models and {milliseconds(features_ms)} for features"
        lines.append(f"{answers[0].policy}: {accuracy}{spent}")
    return f"{'; '.join(lines)}. To measure how often each is right, calibrate the family on images."


def _inference_ms(answers: Iterable[Answer]) -> float:
    """Return the time of all model runs of these answers, in ms."""
    return sum(sum(answer.stages_ms.inference) for answer in answers)
