"""The daemon's life: open the socket, load the models, serve, and stop without losing what was accepted."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import cv2

from jetsel.config import Config
from jetsel.daemon.crew import Crew
from jetsel.daemon.generation import Generation, Samples, build
from jetsel.daemon.listener import Listener, make_private_folder
from jetsel.daemon.memory import return_large_blocks
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.port import Port
from jetsel.daemon.service import Service
from jetsel.endpoint import user_socket
from jetsel.engines import Backends
from jetsel.errors import ConfigError, JetselError
from jetsel.power.finding import check

log = logging.getLogger("jetsel.daemon")

QUIET_LOOKS = 3  # what ZeroMQ still reads off its peers comes between two looks
DRAIN_S = 10.0  # what was accepted is answered within this after SIGTERM


def run(config: Config, reread: Callable[[], Config], samples: Samples) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status.

    reread: gives the configuration for a reload. samples: the photographs that engines are compared on, where any are
    built at the start.
    """
    logging.basicConfig(level=config.log.level.upper(), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    return_large_blocks()
    cv2.setNumThreads(1)  # requests run beside each other: one photograph shall not take every core
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    listener = None
    try:
        check(config.power)
        listener = _listen(config)
        generation = build(config)
        port = Port(listener, config.server.tcp, generation.limits.max_bytes)
        backends = Backends(config.host)
        backends.listen(port.wake)
        metering = Metering(config.power)
        try:
            metering.serve(generation.families, config.power)
            metering.start()
            service = Service(config, generation, port, backends, metering, reread)
            return _serve(service, generation, port, lambda: _load(generation, backends, samples, stop), stop)
        finally:
            metering.stop()
            backends.close()
            port.close()
    except JetselError as error:
        print(f"jetsel: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    finally:
        if listener is not None:
            listener.close()


def _listen(config: Config) -> Listener:
    endpoint = config.server.endpoint
    path = Path(endpoint.removeprefix("ipc://")) if endpoint else Path(user_socket())
    if endpoint is None:
        make_private_folder(path.parent)
    return Listener(path, config.server.group)


def _serve(
    service: Service, generation: Generation, port: Port, load: Callable[[], None], stop: threading.Event
) -> int:
    crew = Crew(service, generation.workers)
    crew.start()
    signal.signal(signal.SIGHUP, lambda *_: threading.Thread(target=_reload, args=(service,), daemon=True).start())
    try:
        began = time.monotonic()
        load()
        if not stop.is_set():
            log.info("ready on %s after %.2f s", ", ".join(port.endpoints), time.monotonic() - began)
        while not stop.wait(3600):
            pass
        log.info("stopping: answering what was accepted")
        service.refuse_new()
        give_up = time.monotonic() + DRAIN_S
        quiet = 0
        while quiet < QUIET_LOOKS and time.monotonic() < give_up:
            time.sleep(0.01)
            quiet = quiet + 1 if service.is_drained else 0
        return 0
    finally:
        crew.stop()
        service.give_up()


def _load(generation: Generation, backends: Backends, samples: Samples, stop: threading.Event) -> None:
    generation.build_engines(samples, stop)
    if not stop.is_set():
        generation.load(backends, stop=stop)


def _reload(service: Service) -> None:
    try:
        service.reload()
    except JetselError as error:
        log.error("reload refused, nothing changed: %s", error)
