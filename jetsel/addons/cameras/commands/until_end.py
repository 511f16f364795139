"""Cameras under way, from their start to Ctrl-C or SIGTERM; those of the configuration are read again on SIGHUP."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetsel.addons.cameras.config import SECTIONS
from jetsel.base.errors import ConfigError
from jetsel.base.notify import Notifier
from jetsel.site import config_file

if TYPE_CHECKING:
    from jetsel.addons.cameras.cameras import Cameras
    from jetsel.addons.cameras.config import Camera
    from jetsel.addons.cameras.settings import WatchContext

_LOOK_S = 0.25
_TIMEOUT_MS = 10_000.0


def until_end(cameras: Cameras, at_look: Callable[[], None] = lambda: None) -> None:
    """Wait until each camera is over, or a signal ends the process; at_look: called several times a second."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while not cameras.wait(_LOOK_S):
            at_look()
    except KeyboardInterrupt:
        pass  # that is how a camera's watching ends
    finally:
        has_ended = cameras.end()
    if not has_ended:
        os._exit(0)  # the thread that hangs in the camera's driver could keep the interpreter from ending


def watch_configured(
    config: Path | None, endpoint: str | None, emit: Callable[[dict[str, Any]], None], told: Callable[[str], None]
) -> None:
    """Watch the cameras of the configuration file. Raises ConfigError."""
    from jetsel.addons.cameras.cameras import Cameras, one_thread_each

    path, is_due, notifier = config_file.locate(config), threading.Event(), Notifier.from_environment()
    read, context = _read(path, endpoint, emit, told)
    if not read:
        raise ConfigError(
            f"{path or 'the configuration'}: there is no [[cameras]]: name a SOURCE, or add one: `jetsel config` shows "
            "what it may have"
        )
    signal.signal(signal.SIGHUP, lambda *_: is_due.set())
    one_thread_each()
    cameras = Cameras(read, context)
    notifier.ready(f"watching {len(read)} cameras")

    def reload() -> None:
        if not is_due.is_set():
            return
        is_due.clear()
        try:
            changed = cameras.change_to(*_read(path, endpoint, emit, told))
        except ConfigError as error:
            told(f"the cameras stay as they were: {error}")
            return
        told(f"the configuration was read again; changed cameras: {', '.join(changed) or 'none'}")

    until_end(cameras, reload)


def _read(
    path: Path | None, endpoint: str | None, emit: Callable[[dict[str, Any]], None], told: Callable[[str], None]
) -> tuple[list[Camera], WatchContext]:
    from jetsel.addons.cameras.settings import WatchContext, mqtt_broker

    server, found = config_file.read(path).server, config_file.read_sections(path, SECTIONS)
    where, broker = endpoint or server.endpoint, mqtt_broker(found.mqtt)
    context = WatchContext(
        where, _TIMEOUT_MS, server.max_image_mb, broker, emit, told, max_megapixels=server.max_image_megapixels
    )
    return found.cameras, context
