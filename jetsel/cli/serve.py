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

    signals = Signals()  # first, because a signal may arrive during the slow imports below
    # The neighbours of one image are too few for several threads, each of which would take memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, which is below
    # The daemon checks each image's header. This limit bounds the decoder's memory if the image is larger than its
    # header says. OpenCV reads it once, at import, so it is the maximum of max_image_megapixels.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(1_000_000_000))
    from jetsel.base.logs import log_start_failure, start_logging
    from jetsel.daemon.run import run
    from jetsel.site import config_file

    path = config_file.locate(config)
    try:
        file = config_file.read(path)
    except ConfigError as error:
        start_logging("error")  # so that the error is in the journal too
        raise SystemExit(log_start_failure(error)) from None
    status = 1
    try:
        # A reload locates the file again: the system's file may appear while the daemon runs.
        status = run(file, lambda: config_file.locate_and_read(config), signals, lambda: config_file.locate(config))
    except Exception:  # a bug
        sys.excepthook(*sys.exc_info())
    logging.shutdown()
    os._exit(status)
