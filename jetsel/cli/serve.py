"""`jetsel serve`: run the daemon in this terminal, or under a service manager."""

from __future__ import annotations

import logging
import os
import sys

from jetsel.base.errors import ConfigError
from jetsel.cli.options import ConfigFile


def serve(config: ConfigFile = None) -> None:
    """Run the daemon until it is stopped (Ctrl-C or SIGTERM).

    Without a configuration it serves the starter family at $JETSEL_ENDPOINT, or on a socket of your own that the other
    commands find by themselves.
    """
    from jetsel.daemon.signals import Signals

    signals = Signals()  # at once: what is imported below takes a while, in which a signal may come
    # The neighbours of one photograph are too few to share among threads, each of which would hold memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, which is below
    # The header of each photograph is checked. This bounds what a decoder allocates if it finds more than the header
    # says: OpenCV reads it once, when it is imported, so it is the most that max_image_megapixels may be.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(1_000_000_000))
    from jetsel.base.logs import begin, cannot_start
    from jetsel.daemon.run import run
    from jetsel.site import config_file

    path = config_file.locate(config)
    try:
        file = config_file.read(path)
    except ConfigError as error:
        begin("error")  # people look for it in the journal
        raise SystemExit(cannot_start(error)) from None
    status = 1
    try:
        # Located anew for a reload: the system's file may come while the daemon runs.
        status = run(file, lambda: config_file.applied(config), signals, lambda: config_file.locate(config))
    except Exception:  # a defect
        sys.excepthook(*sys.exc_info())
    logging.shutdown()
    os._exit(status)
