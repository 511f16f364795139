"""`jetsel calibration`: list a family's calibrations, show one, and go back to one; reload the daemon afterwards."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetsel.base.endpoint import VARIABLE
from jetsel.base.errors import JetselError, NoDaemonError
from jetsel.cli.options import ConfigFile, Endpoint, FamilyName, Json, emit

if TYPE_CHECKING:
    from jetsel.artefact.calibration import Calibration
    from jetsel.artefact.installed import Installed
    from jetsel.site.site import FamilyCalibrations

EXIT_FAILED = 1

calibration = typer.Typer(no_args_is_help=True, help="See a family's calibrations, and go back to an earlier one.")


@calibration.command("list")
def list_calibrations(family: FamilyName = None, config: ConfigFile = None, json: Json = False) -> None:
    """List a family's calibrations, the newest first, and mark the one in use."""
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    entries = calibrations.entries()
    for_json = {
        "family": calibrations.family,
        "folder": str(calibrations.folder),
        "current": next((entry.number for entry in entries if entry.is_current), None),
        "calibrations": [summary(entry) for entry in entries],
    }
    emit(for_json, json, lambda: _show_history(calibrations, entries))


def _show_history(calibrations: FamilyCalibrations, entries: list[Installed]) -> None:
    """Print a table with a row for each calibration of a family."""
    from jetsel.cli.terminal import console, table
    from jetsel.site.site import number_text

    out = console()
    rows = table(">number", "", "made", "default policy", ">images", "labels", "rejected")
    rows.title = f"family {calibrations.family}"
    for entry in entries:
        usable, row = entry.calibration, ("-", "-", "-", "-")
        if usable is not None:
            labels = f"answers of {usable.images.labels_from}" if usable.images.labels_from else "the images'"
            row = (usable.created, usable.default_policy, str(usable.images.count), labels)
        rows.add_row(number_text(entry.number), _use_mark(entry), *row, entry.reason or "")
    out.print(rows if entries else f"family {calibrations.family} has no calibration yet")
    out.print(f"your own calibrations are in {calibrations.folder}")


@calibration.command()
def show(
    number: Annotated[
        int | None,
        typer.Argument(min=0, help="Number of the calibration; 0 is the shipped one (default: the one in use)."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every field.")] = False,
    family: FamilyName = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show the main figures of one calibration, or all of it with --all."""
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    entry = calibrations.entry(number)
    usable = entry.usable_calibration()
    facts = as_plain(usable) if json or everything else main_facts(usable)
    emit(summary(entry) | {"calibration": facts}, json, lambda: _show_facts(calibrations.family, entry, facts))


def as_plain(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as values for JSON, which differ if calibrations do: each array as dtype, shape and hash."""
    import msgspec

    values: dict[str, Any] = msgspec.to_builtins(calibration, enc_hook=_array)
    return values


def _array(value: Any) -> Any:
    """Return a numpy value as as_plain describes; msgspec calls this for types that it does not know."""
    import numpy as np

    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12]
        return f"{value.dtype} {value.shape}, sha256 {digest}..."
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a calibration cannot hold a {type(value).__name__}")


def _show_facts(family: str, entry: Installed, facts: Mapping[str, Any]) -> None:
    """Print a table of facts about one calibration, its folder and its report, and why it is rejected if it is."""
    import msgspec

    from jetsel.cli.terminal import console, table

    out = console()
    rows = table("fact", "value")
    mark = _use_mark(entry)
    rows.title = f"family {family}: {entry.description}" + (f", {mark}" if mark else "")
    for name, value in facts.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        rows.add_row(name, text)
    out.print(rows)
    out.print(f"its folder: {entry.directory}")
    out.print(f"its report: {entry.report or 'none'}")
    if entry.reason is not None:
        out.print(f"it is rejected: {entry.reason}", style="red")


def main_facts(usable: Calibration) -> dict[str, str]:
    """Return the main facts of a calibration, by a name for each."""
    from jetsel.cli.terminal import milliseconds

    costs = ", ".join(f"{model} {milliseconds(ms)}" for model, ms in usable.costs_ms.items())
    figures = {
        policy: f"{100 * figure['top1']:.2f} % right in {milliseconds(figure['mean_ms'])} ms"
        for policy, figure in usable.figures.items()
    }
    return {
        "made": f"{usable.created}, from {usable.images.count:,} images",
        "answers by default": usable.default_policy,
        "because": usable.because,
        "ms per image": costs,
        "saves": usable.objective,
        **figures,
    }


@calibration.command()
def rollback(
    to: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Number of the calibration to use; 0: what came with the models, or none (default: the previous one).",
        ),
    ] = None,
    family: FamilyName = None,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
    json: Json = False,
) -> None:
    """Use the calibration that was in use before the current one, and reload a running daemon.

    Nothing is deleted: use --to to return to a newer one.
    """
    from jetsel.artefact import installed
    from jetsel.site.calibration_in_use import find_shipped
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    entries = calibrations.entries()
    refused = {entry.number: entry.reason for entry in entries if entry.reason is not None}
    previous = next((entry.number for entry in entries if entry.is_current), None)
    chosen = installed.rollback(calibrations.folder, calibrations.family, to, refused)
    if chosen is None and calibrations.models is not None:
        chosen = find_shipped(calibrations.models)
    outcome = reload_daemon(calibrations, chosen, endpoint)
    number = installed.SHIPPED if chosen is None else chosen.number
    facts = {"family": calibrations.family, "number": number, "reloaded": outcome.reloaded, "daemon": outcome.message}
    used = chosen.description if chosen else "no calibration: the family ships without one"
    if chosen is None and calibrations.models is not None:
        used += f"; {calibrations.incumbent().policy} answers by default"
    undo = "" if previous is None else f"\nto use number {previous} again: jetsel calibration rollback --to {previous}"
    emit(facts, json, f"family {calibrations.family} now uses {used}{undo}\n{outcome.message}")
    if outcome.reloaded is False:
        raise typer.Exit(EXIT_FAILED)


def summary(entry: Installed) -> dict[str, Any]:
    """Return one calibration as values for JSON; if it is unreadable, `refused` is the reason, and values are None."""
    usable = entry.calibration
    return {
        "number": entry.number,
        "is_current": entry.is_current,
        "created": usable.created if usable else None,
        "default_policy": usable.default_policy if usable else None,
        "photographs": usable.images.count if usable else None,
        "labels_from": usable.images.labels_from if usable else None,
        "refused": entry.reason,
        "directory": str(entry.directory),
        "report": None if entry.report is None else str(entry.report),
    }


def _use_mark(entry: Installed) -> str:
    """Return `in use` for the current calibration, `not used` if it is current but rejected, else an empty text."""
    return "" if not entry.is_current else "in use" if entry.reason is None else "not used"


RELOAD_MS = 60_000.0  # a reload waits for the requests in progress


@dataclass(frozen=True)
class ReloadOutcome:
    """The result of a daemon's reload. reloaded: None if no daemon is listening, False if it refused.

    message: the result in words. is_served: whether the daemon now uses the calibration that it should.
    """

    reloaded: bool | None
    message: str
    is_served: bool = False


def reload_daemon(calibrations: FamilyCalibrations, chosen: Installed | None, endpoint: str | None) -> ReloadOutcome:
    """Reload the daemon, and return whether it now serves the family with the chosen calibration.

    chosen: None if the family has no calibration. endpoint: the daemon's address; None for $JETSEL_ENDPOINT, or else
    the configured or default one. A refused reload is part of the outcome and raises nothing.
    """
    from jetsel.client import Client

    address = endpoint or (None if os.environ.get(VARIABLE) else calibrations.config.server.endpoint)
    try:
        with Client(address, timeout_ms=RELOAD_MS) as client:
            client.reload()
            families = {family.name: family for family in client.status().families}
    except NoDaemonError:
        return ReloadOutcome(None, "no daemon listens: the next one to start will use it")
    except JetselError as fault:
        return ReloadOutcome(False, f"the daemon was not reloaded: {fault}")
    if calibrations.family not in families:
        return ReloadOutcome(True, f"the daemon has reloaded, but does not serve family {calibrations.family}")
    served = families[calibrations.family]
    outcome = f"the daemon has reloaded, and serves family {served.name} with this calibration: {served.calibration}"
    used_sha256 = None if served.calibration_identity is None else served.calibration_identity.sha256
    if used_sha256 != (None if chosen is None else chosen.sha256):
        expected = "no calibration" if chosen is None else f"{chosen.description} in {chosen.directory.parent}"
        repair = f"start it with models.calibrations = {str(calibrations.folder)!r}, or see its log"
        return ReloadOutcome(True, f"{outcome}. The daemon does not use {expected}: {repair}")
    fitted = None if chosen is None else chosen.calibration
    if fitted is not None and served.default_policy != fitted.default_policy:
        outcome += f"; {served.default_policy} answers by default: {served.because}"
    return ReloadOutcome(True, outcome, is_served=True)
