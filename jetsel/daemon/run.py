"""The daemon's life: open the socket, load the models, serve, and stop without losing what was accepted."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

import cv2

from jetsel import __version__
from jetsel.config import Config, host_settings
from jetsel.daemon import descriptors
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.life import Life
from jetsel.daemon.listener import listen
from jetsel.daemon.memory import return_large_blocks
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.signals import Signals
from jetsel.daemon.snapshot import read_snapshot
from jetsel.engines import Backends
from jetsel.errors import JetselError
from jetsel.events import event
from jetsel.logs import begin, cannot_start
from jetsel.power.finding import check

log = logging.getLogger("jetsel.daemon")


def run(config: Config, reread: Callable[[], Config], signals: Signals) -> int:
    """Serve until a signal says to stop; return the exit status, for `os._exit`.

    Threads may be at work still, and everybody has been answered: the interpreter, and what we loaded, would wait for
    them, or crash. The kernel ends the engine host with this process, as it does where the process is killed.

    reread: gives the configuration for a reload.
    """
    begin(config.log.level)
    return_large_blocks()
    descriptors.raise_limit()
    cv2.setNumThreads(1)  # requests run beside each other: one photograph shall not take every core
    notifier = Notifier.from_environment()
    listener = None
    try:
        check(config.power)
        listener = listen(config.server)
        log.info("starting: jetsel %s", __version__, extra=event("starting", version=__version__, pid=os.getpid()))
        snapshot = read_snapshot(config)
        port = Port(listener, snapshot.limits.max_bytes, config.server)
        backends = Backends(host_settings(config.host))
        backends.listen(port.wake)
        metering = Metering(config.power)
        metering.serve(snapshot.families, config.power)
        metering.start()
        dispatcher = Dispatcher(snapshot, port, backends, metering, reread, notifier)
        Life(dispatcher, port, signals, notifier, is_passed=listener.is_passed).live(backends)
        return 0
    except JetselError as error:
        notifier.status(str(error))
        return cannot_start(error)
    finally:
        notifier.close()
        if listener is not None:
            listener.close()
