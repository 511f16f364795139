"""`jetsel watch frigate://HOST`: the tracked objects of a Frigate get sub-labels."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.base.errors import ConfigError

if TYPE_CHECKING:
    from jetsel.addons.cameras.config import Camera
    from jetsel.addons.cameras.settings import WatchContext

_TIMEOUT_S = 10.0  # of one request to Frigate


def watch_frigate(
    camera: Camera, context: WatchContext, login: tuple[str | None, Path | None], prefix: str, maps: list[str]
) -> None:
    """Classify until Ctrl-C or SIGTERM; raises ConfigError.

    camera: its source is Frigate, and its requests are as it says. login: user of Frigate, and the password's file.
    prefix: of Frigate's topics. maps: LABEL=FAMILY each.
    """
    from jetsel.addons.cameras.frigate import FrigateApi, frigate_address
    from jetsel.addons.cameras.frigate_watch import FrigateWatch
    from jetsel.base.files import read_secret

    user, file = login
    if (user is None) != (file is None):
        raise ConfigError("--frigate-user and --frigate-password-file go together: give both, or neither")
    if context.broker is None:
        raise ConfigError(f"{camera.source}: name the MQTT broker that Frigate uses: --mqtt HOST")
    if not prefix or set(prefix) & set("+#\0"):
        raise ConfigError(
            f"--topic-prefix {prefix!r}: give mqtt.topic_prefix of Frigate's configuration, without + and #"
        )
    if not maps:
        raise ConfigError(f"{camera.source}: say which family classifies which objects: --map bird=birds")
    password = None if file is None else read_secret(file, "--frigate-password-file").rstrip("\r\n")
    address = frigate_address(camera.source, user, password)
    families, api = dict(map(_mapped, maps)), FrigateApi(address, _TIMEOUT_S)
    watch = FrigateWatch(api, address.name, context, context.broker, families, camera.request, prefix=prefix)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        watch.run()
    except KeyboardInterrupt:
        watch.stop()
    finally:
        watch.close()


def _mapped(text: str) -> tuple[str, str]:
    label, equals, family = text.partition("=")
    if not (label and equals and family):
        raise ConfigError(f"--map {text}: write LABEL=FAMILY: bird=birds")
    return label, family
