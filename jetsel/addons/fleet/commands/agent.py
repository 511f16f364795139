"""`jetsel agent`: the side of one device, run by a timer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, emit, print_json

if TYPE_CHECKING:
    from jetsel.addons.fleet.agent.round import RoundResult

agent = typer.Typer(no_args_is_help=True, help="Commands for a device of a fleet. See docs/fleet.md.")


@agent.command()
def run(config: ConfigFile = None, json: Json = False) -> None:
    """Run one round of the agent: fetch the plan, install it, test it, and report the state of the device.

    Steps that cannot be done now are retried in a later round. `jetsel-agent.timer` runs a round every 15 minutes.
    """
    from jetsel.addons.fleet.agent.round import run_round
    from jetsel.addons.fleet.config import SECTIONS
    from jetsel.site import config_file

    file = config_file.locate(config)
    done = run_round(config_file.read(file), config_file.read_sections(file, SECTIONS).fleet, file)
    emit({"usage": done.line, "sent": done.sent, "unsent": done.unsent}, json, "\n".join(_lines(done)))


@agent.command()
def prove(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of models, with one folder for each family.")
    ],
    config: ConfigFile = None,
) -> None:
    """Run each model of a folder once, and fit the published calibration to the latencies of this device.

    `run` does this for a new version, in a separate process. Prints the memory of each model in MB, as JSON.
    """
    from jetsel.addons.fleet.agent.proving import prove as run_each
    from jetsel.site import config_file

    print_json(run_each(folder, config_file.locate_and_read(config)))


def _lines(done: RoundResult) -> list[str]:
    line, trial = done.line, done.line.trial
    lines = [f"{line.device}: plan {line.plan or 'none'} in use"]
    if trial is not None:
        reason = "" if trial.reason is None else f": {trial.reason}"
        lines.append(f"plan {trial.serial or 'none'}: {trial.outcome}{reason}")
    if line.silence is not None:
        lines.append(f"the daemon does not reply: {line.silence}")
    waits = "" if done.unsent is None else f"; the other reports were not sent: {done.unsent}"
    reports = "1 usage report" if done.sent == 1 else f"{done.sent} usage reports"
    lines.append(f"{reports} sent{waits}")
    return lines
