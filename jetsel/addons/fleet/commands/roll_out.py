"""`jetsel fleet roll-out` and `stop`: releases plans in waves, and takes them back."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.addons.fleet.commands.manager import OpenedFleet, check_libraries
from jetsel.addons.fleet.commands.repo import Keys, Trusted, Url
from jetsel.addons.fleet.signing import public_key, read_key
from jetsel.base.errors import ConfigError
from jetsel.base.events import harmless
from jetsel.cli.options import Json, emit

if TYPE_CHECKING:
    from jetsel.addons.fleet.manager.planning import Proposal
    from jetsel.addons.fleet.manager.rolling import RollOutStep


def roll_out(
    url: Url,
    sign: Keys,
    trust: Trusted = [],  # noqa: B006  # typer makes a list of its own
    plans: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Proposals to start with, from jetsel fleet plan --write.")
    ] = None,
    waves: Annotated[
        str, typer.Option(help="Number or share of devices with their plan after each wave; only with --plans.")
    ] = "1,10%,100%",
    failed: Annotated[
        float, typer.Option(min=0, max=1, help="Tolerated share of devices that rolled their plan back.")
    ] = 0.0,
    errors: Annotated[
        float, typer.Option(min=0, max=1, help="Tolerated increase of the share of failed requests.")
    ] = 0.01,
    slower: Annotated[
        float, typer.Option(min=0, help="Tolerated growth of the 95th percentile latency, as a factor.")
    ] = 1.5,
    wait: Annotated[
        bool, typer.Option("--wait", help="Continue until all devices have their plan, or a wave fails.")
    ] = False,
    poll_s: Annotated[float, typer.Option(min=1, help="Seconds between two checks; only with --wait.")] = 60.0,
    json: Json = False,
) -> None:
    """Send the next wave of devices their plans, if the earlier ones have installed theirs and are no worse with them.

    Each call does one step. The exit status is 1 if there is a reason to stop. The state is kept in the repository, so
    any manager can continue, one at a time. KEY.rollouts, beside the first private key, keeps the serial of the last
    state; an earlier state is rejected.
    """
    private = [read_key(path) for path in sign]
    trusted = [*map(public_key, private), *map(read_key, trust)]
    fleet = OpenedFleet(url, trusted)
    from jetsel.addons.fleet.manager.rolling import RolloutManager, RollOutTolerance  # needs libraries checked above

    rolling = RolloutManager(fleet.storage, private, trusted, _serials_file(sign))
    if plans is not None:
        rolling.begin(_read_proposals(plans), fleet.devices, waves)
    while True:
        step = rolling.advance(fleet.devices, RollOutTolerance(failed, errors, slower))
        plain = {"released": step.released, "waiting": step.waiting, "against": step.against, "done": step.is_done}
        emit(plain, json, partial(_print_step, step))
        if not wait or step.is_done or step.against:
            raise typer.Exit(bool(step.against))
        time.sleep(poll_s)
        fleet = OpenedFleet(url, trusted)


def stop(
    url: Url,
    sign: Keys,
    trust: Trusted = [],  # noqa: B006  # typer makes a list of its own
    revert: Annotated[
        bool, typer.Option("--revert", help="Give the devices back the families that they had before.")
    ] = False,
    because: Annotated[str, typer.Option(help="Reason for the stop, recorded in the repository.")] = "stopped by hand",
    json: Json = False,
) -> None:
    """Stop a roll-out: no further wave starts."""
    check_libraries()
    from jetsel.addons.fleet.manager.rolling import RolloutManager
    from jetsel.addons.fleet.storage import Storage

    private, public = ([read_key(path) for path in paths] for paths in (sign, trust))
    rolling = RolloutManager(Storage(url), private, public, _serials_file(sign))
    changed = rolling.stop(because, revert=revert)
    text = f"the roll-out is stopped; {len(changed)} devices get back what they had before"
    emit({"reverted": changed}, json, text)


def _serials_file(sign: list[Path]) -> Path:
    """Return the file that keeps the last serial of each roll-out, beside the private key."""
    return sign[0].with_name(f"{sign[0].name}.rollouts")


def _read_proposals(file: Path) -> list[Proposal]:
    import msgspec

    from jetsel.addons.fleet.manager.planning import Proposal

    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Proposal])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ConfigError(
            f"{file}: holds no proposals ({fault}): jetsel fleet plan --write makes such a file"
        ) from None


def _print_step(step: RollOutStep) -> None:
    count_released, count_all = len(step.rollout.released_devices), len(step.rollout.devices)
    wave = f"wave {step.rollout.released} of {len(step.rollout.waves)}"
    typer.echo(f"{wave}, {count_released} of {count_all} devices: {len(step.released)} plans were written now")
    for words, lines in (("waits for", step.waiting), ("reason to stop", step.against)):
        for line in lines:
            typer.echo(f"{words}: {harmless(line)}")
    if step.is_done:
        typer.echo("all devices have installed their plan")
