"""`jetsel install-service`: have systemd run the daemon, for the whole machine or one user, and see that it works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jetsel.cli.service.plan import Step
    from jetsel.cli.service.units import File

ROOT = Path("/")
TIMERS = Path("/etc/systemd/system/timers.target.wants")
UDEV = Path("/run/udev/control")  # of a running udev: containers have none


def install_service(
    user: Annotated[
        bool,
        typer.Option(
            "--user",
            help="Run it for you alone, from your login on; needs no root. Its sandbox refuses system calls and new "
            "privileges, and hides no files or devices.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the files and commands, and what is in the way; change nothing.")
    ] = False,
    prefix: Annotated[
        Path, typer.Option(metavar="ROOT", help="Put the files below this folder, as for an image; run nothing.")
    ] = ROOT,
    remove: Annotated[
        bool, typer.Option("--remove", help="Stop the service and remove it; models and calibrations stay.")
    ] = False,
) -> None:
    """Have systemd start the daemon, keep it running, and hold its socket while it starts again.

    It prints each file that it writes and each command that it runs, and can be given again at any time: what is as it
    should be stays. A daemon that runs already is started again. The installation must lie where the service's own user
    can reach it, so not in a home directory. What each setting is for: docs/deploy.md.
    """
    from jetsel.cli.service import before
    from jetsel.cli.service.units import system_files, user_files
    from jetsel.errors import ConfigError

    prefix = prefix.absolute()
    command = before.executable()
    files = user_files(command, Path.home()) if user else system_files(command)
    live = prefix == ROOT
    wrong = [] if not live or remove else list(before.problems(command, user=user, needs_root=not dry_run))
    if remove:
        _remove(files, user=user, dry_run=dry_run, live=live)
        return
    if not wrong or dry_run:
        _install(files, prefix, command, user=user, dry_run=dry_run)
    for problem in wrong:
        typer.echo(f"stops  {problem}", err=not dry_run)
    if wrong and not dry_run:
        raise ConfigError("nothing was changed: see above what is in the way")
    if wrong:
        raise typer.Exit(2)


def _install(files: list[File], prefix: Path, command: Path, *, user: bool, dry_run: bool) -> None:
    from jetsel.cli.service import after
    from jetsel.cli.service.doing import carry_out
    from jetsel.cli.service.plan import placed, started

    live = prefix == ROOT
    put = list(placed(files, prefix))
    commands = list(started(put, user=user, has_udev=not live or UDEV.exists()))
    if dry_run:
        _print_plan([*put, *commands] if live else put)
        if not live:
            _warn_of_the_image(command, user=user)
        return
    if live:
        typer.echo(f"check  {after.verify(files, user=user)}")
    carry_out(put, typer.echo)
    if not live:
        typer.echo("left to do, on the machine itself:")
        for step in commands:
            typer.echo(f"  {' '.join(step.command)}")
        _warn_of_the_image(command, user=user)
        return
    carry_out(commands, typer.echo)
    for line in after.works(user=user):
        typer.echo(f"check  {line}")
    if not user:
        typer.echo(f"check  {after.exposure()}")
        typer.echo("done   whoever is in the group jetsel may use it: sudo usermod -aG jetsel $USER, then log in again")
    else:
        typer.echo("done   it starts when you log in; to have it from the machine's start on: loginctl enable-linger")


def _warn_of_the_image(command: Path, *, user: bool) -> None:
    """Say which program the units of an image start, and what of it the service there could not reach."""
    from jetsel.cli.service import before

    typer.echo(f"the units run {command}: this path must exist in the image")
    closed = [] if user else list(before.unreachable(command))
    for problem in closed:
        typer.echo(f"warning  {problem}", err=True)
    if closed:
        typer.echo(f"warning  as it is here, the service could not start there: {before.INTO_OPT}", err=True)


def _remove(files: list[File], *, user: bool, dry_run: bool, live: bool) -> None:
    import os

    from jetsel.cli.service.doing import carry_out
    from jetsel.cli.service.plan import removed
    from jetsel.errors import ConfigError

    if not live:
        raise ConfigError("--remove is for the machine itself: under --prefix, delete the files that were printed")
    if not user and not dry_run and os.geteuid() != 0:
        raise ConfigError("only root may remove the system's service: sudo jetsel install-service --remove")
    timers = [] if user else sorted(path.name for path in TIMERS.glob("jetsel-calibrate@*.timer"))
    steps = list(removed(files, timers, user=user, has_udev=UDEV.exists()))
    if dry_run:
        _print_plan(steps)
        return
    carry_out(steps, typer.echo)
    if not user:
        typer.echo("done   /var/lib/jetsel, /etc/jetsel and the user jetsel stay: delete them if you need none of it")


def _print_plan(steps: list[Step]) -> None:
    from jetsel.cli.service.plan import told

    for step in steps:
        typer.echo(told(step))
