"""`jetsel watch frigate://HOST`: the tracked objects of a Frigate get sub-labels."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetsel.base.errors import ConfigError

if TYPE_CHECKING:
    from jetsel.addons.cameras.mqtt import Broker

_TIMEOUT_S = 10.0  # of one request to Frigate


def watch_frigate(
    source: str,
    login: tuple[str | None, Path | None],
    mqtt: tuple[Broker | None, str],
    maps: list[str],
    asks: dict[str, Any],
    daemon: tuple[str | None, float],
    out: tuple[Callable[[dict[str, Any]], None], Callable[[str], None]],
) -> None:
    """Classify until Ctrl-C or SIGTERM; raises ConfigError.

    mqtt: the broker, and the prefix of Frigate's topics. maps: LABEL=FAMILY each. daemon: its address, and the time
    limit of a request in ms. out: take events, and words.
    """
    from jetsel.addons.cameras.frigate import FrigateApi, frigate_address
    from jetsel.addons.cameras.frigate_watch import FrigateWatch
    from jetsel.base.secret_file import read_secret

    (user, file), (broker, prefix) = login, mqtt
    if (user is None) != (file is None):
        raise ConfigError("--frigate-user and --frigate-password-file go together: give both, or neither")
    if broker is None:
        raise ConfigError(f"{source}: name the MQTT broker that Frigate uses: --mqtt HOST")
    if not prefix or set(prefix) & set("+#\0"):
        raise ConfigError(
            f"--topic-prefix {prefix!r}: give mqtt.topic_prefix of Frigate's configuration, without + and #"
        )
    if not maps:
        raise ConfigError(f"{source}: say which family classifies which objects: --map bird=birds")
    password = None if file is None else read_secret(file, "--frigate-password-file").rstrip("\r\n")
    address = frigate_address(source, user, password)
    emit, told = out
    api, (endpoint, timeout_ms) = FrigateApi(address, _TIMEOUT_S), daemon
    families = dict(map(_mapped, maps))
    watch = FrigateWatch(
        api, address.name, broker, endpoint, families, asks, timeout_ms, prefix=prefix, emit=emit, told=told
    )
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
