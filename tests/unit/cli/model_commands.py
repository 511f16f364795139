"""`jetsel models` in process."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from jetsel.cli.app import app
from jetsel.zoo import Model, scan, verify

PLAIN = ["--mean", "0.5,0.25,0.125", "--std", "0.25,0.5,1"]


def run(*arguments: object, status: int = 0, config: str = "", answer: str | None = None) -> str:
    """What the command prints: on the standard output where it succeeds, else its one line of error."""
    command = ["models", *map(str, arguments)]
    if config:
        command += ["--config", config]
    done = CliRunner().invoke(app, command, input=answer, env={"COLUMNS": "200"})
    assert done.exit_code == status, done.output
    if status == 1 and done.stderr.startswith("jetsel: "):
        assert len(done.stderr.splitlines()) == 1
        return done.stderr
    return done.stdout


def add(onnx: Path, labels: Path, *more: object, **how: Any) -> str:
    return run("add", onnx, "--labels", labels, *PLAIN, *more, **how)


def only_model(folder: Path) -> Model:
    (family,) = scan([folder]).families.values()
    (model,) = family.models
    verify(model)
    return model
