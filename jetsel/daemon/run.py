"""The daemon's life: open the socket, load the models, serve, and stop without losing what was accepted."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

import cv2

from jetsel import __version__
from jetsel.config import Config, host_settings
from jetsel.daemon import descriptors
from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.life import Life
from jetsel.daemon.listener import Listener, listen
from jetsel.daemon.loading import Samples
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


def run(config: Config, reread: Callable[[], Config], samples: Samples, signals: Signals) -> int:
    """Serve until a signal says to stop; return the exit status.

    reread: gives the configuration for a reload. samples: the photographs that engines are compared on, where any are
    built at the start.
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
        life = None
        try:
            metering.serve(snapshot.families, config.power)
            metering.start()
            dispatcher = Dispatcher(snapshot, port, backends, metering, reread, notifier)
            life = Life(dispatcher, port, signals, notifier, is_passed=listener.is_passed)
            life.live(backends, samples)
            return 0
        finally:
            if life is not None and not life.has_ended:
                _leave(port, listener, _told(sys.exc_info()[1], notifier))
            metering.stop()
            backends.close()
            port.close()
    except JetselError as error:
        return _told(error, notifier)
    finally:
        notifier.close()
        if listener is not None:
            listener.close()


def _told(error: BaseException | None, notifier: Notifier) -> int:
    """Tell what ends the daemon, where that is an error; return the exit status."""
    if error is None:
        return 0
    if not isinstance(error, JetselError):
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    notifier.status(str(error))
    return cannot_start(error)


def _leave(port: Port, listener: Listener, status: int) -> None:
    """End the process although a thread is at work: the interpreter and what we loaded would wait for it, or crash.

    Everybody has been answered by now. The kernel ends the engine host with this process.
    """
    log.warning("a thread did not come back and is left behind", extra=event("left-behind"))
    port.close()
    listener.close()
    logging.shutdown()
    os._exit(status)
