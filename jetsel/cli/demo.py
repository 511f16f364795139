"""`jetsel demo`: the product at work on a temporary daemon, with photographs if they are installed and drawings."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.client import Client
    from jetsel.client.photograph import Photograph
    from jetsel.wire import Answer

PHOTOGRAPHS = {"photograph of a cat": "chelsea.png", "photograph of a cup of coffee": "coffee.png"}
HOW_TO_GET_PHOTOGRAPHS = (
    "The photographs of a cat and of a cup of coffee come with scikit-image, which is not installed: `make demo` "
    "installs it, and so does: pip install 'jetsel[demo]'. Without it there are only drawings."
)


def demo(
    policy: Annotated[str | None, typer.Option(help="Who chooses the models; left out, the family's default.")] = None,
) -> None:
    """Start a daemon of its own, classify a few pictures, tell which model answered each and why, and stop it.

    Nothing needs to be set up, and nothing is left behind.
    """
    from jetsel.cli.status_text import family_lines
    from jetsel.cli.temporary import daemon
    from jetsel.cli.terminal import console

    out = console()
    out.print("starting a daemon on a socket of its own ...")
    began = time.perf_counter()
    with daemon() as client:
        out.print(f"ready after {time.perf_counter() - began:.1f} s")
        if not photographs():
            out.print(HOW_TO_GET_PHOTOGRAPHS, markup=False, soft_wrap=True)
        (family,) = client.status().families
        chosen, alone = _classify(client, policy, family.models[-1].name)
        out.print(_table(chosen, alone))
        for line in (_saving(chosen, alone), *family_lines(family)):
            out.print(line, markup=False, soft_wrap=True)
    out.print("the daemon has stopped")


def photographs() -> dict[str, Photograph]:
    """Return the photographs that scikit-image ships, by description; none where it is not installed."""
    found = importlib.util.find_spec("skimage")
    folder = Path(found.origin).parent / "data" if found and found.origin else None
    return {text: folder / name for text, name in PHOTOGRAPHS.items() if (folder / name).is_file()} if folder else {}


def _classify(client: Client, policy: str | None, best: str) -> tuple[dict[str, Answer], dict[str, Answer]]:
    """Ask about each picture by the policy, and of the best model alone.

    All is asked twice and the second answers are returned: the first run of a model is never its usual time.
    """
    from jetsel.cli.drawn import pictures

    shown: dict[str, Photograph] = photographs()
    shown |= {f"drawing of {text}": picture for text, picture in pictures().items()}
    for _ in range(2):
        chosen = {text: client.classify(picture, policy=policy) for text, picture in shown.items()}
        alone = {text: client.classify(picture, model=best) for text, picture in shown.items()}
    return chosen, alone


def _table(chosen: dict[str, Answer], alone: dict[str, Answer]) -> Table:
    """Return two rows for each picture: what the policy made of it, and what the best model alone did."""
    from rich.markup import escape

    from jetsel.cli.answers import short
    from jetsel.cli.terminal import milliseconds, table

    shown = table("picture", "policy", "answer", ">prob.", "models run", ">ms in models", ">ms in all", "why")
    for text in chosen:
        for name, answer in ((text, chosen[text]), ("", alone[text])):
            ran = escape(", ".join(run.model for run in answer.ran))
            times = (milliseconds(_inference_ms([answer])), milliseconds(answer.stages_ms.total))
            what = (escape(answer.policy), escape(short(answer.label)), f"{answer.probability:.0%}")
            shown.add_row(name, *what, ran, *times, escape(answer.because))
    return shown


def _saving(chosen: dict[str, Answer], alone: dict[str, Answer]) -> str:
    """Say what choosing saved here, whichever way it went, and what these pictures cannot show."""
    from jetsel.cli.terminal import milliseconds

    ours, theirs = (milliseconds(_inference_ms(answers.values())) for answers in (chosen, alone))
    names = [next(iter(answers.values())).policy for answers in (chosen, alone)]
    agreed = sum(chosen[text].label == alone[text].label for text in chosen)
    return (
        f"all {len(chosen)} pictures took {ours} ms in models by {names[0]}, {theirs} ms by {names[1]}; the two agree "
        f"on {agreed}. How often each is right is measured on photographs, when a family is calibrated."
    )


def _inference_ms(answers: Iterable[Answer]) -> float:
    return sum(sum(answer.stages_ms.inference) for answer in answers)
