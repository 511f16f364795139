"""`jetsel serve`: run the daemon in this terminal, or under a service manager."""

from __future__ import annotations

import os

from jetsel.cli.options import ConfigFile


def serve(config: ConfigFile = None) -> None:
    """Run the daemon until it is stopped (Ctrl-C or SIGTERM).

    Without any configuration it serves the starter family on a socket of your own, which the other commands find by
    themselves.
    """
    # The neighbours of one photograph are too few to share among threads, each of which would hold memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, which is below
    from jetsel.cli import settings
    from jetsel.cli.models.samples import Own
    from jetsel.daemon.run import run

    path = settings.locate(config)
    raise SystemExit(run(settings.read(path), lambda: settings.read(path), Own))
