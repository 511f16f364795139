"""`jetsel serve`: run the daemon in this terminal, or under a service manager."""

from __future__ import annotations

from jetsel.cli.options import ConfigFile


def serve(config: ConfigFile = None) -> None:
    """Run the daemon until it is stopped (Ctrl-C or SIGTERM).

    Without any configuration it serves the starter family on a socket of your own, which the other commands find by
    themselves.
    """
    from jetsel.cli import settings
    from jetsel.daemon.run import run

    path = settings.locate(config)
    raise SystemExit(run(settings.read(path), lambda: settings.read(path)))
