"""From a camera of the configuration, or of the command line, to the settings of its watching."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Struct

from jetsel.addons.cameras.config import Camera, Mqtt
from jetsel.addons.cameras.gate import GateSetting, gate_of
from jetsel.addons.cameras.mqtt import Broker, broker_of
from jetsel.addons.cameras.region import Region
from jetsel.addons.cameras.source import Source, source_of
from jetsel.base.errors import ConfigError
from jetsel.base.files import read_secret
from jetsel.base.names import topic_name

ONLY = ""  # the name of a region that is its camera's only one


class WatchContext(Struct, frozen=True):
    """What all cameras of a process share. has_name: whether topics have a camera's name, not machine and source.

    gives_up: whether a mistake ends the watching, as it does for the one camera of a command line.
    """

    endpoint: str | None
    timeout_ms: float
    max_image_mb: float
    broker: Broker | None
    emit: Callable[[dict[str, Any]], None]
    told: Callable[[str], None]
    gives_up: bool = False
    has_name: bool = True
    max_megapixels: float = 50.0  # of an image in a folder, or a frame


@dataclass(frozen=True)
class WatchSettings:
    """A camera as it is watched. regions: by name; None: the only one."""

    camera: Camera
    context: WatchContext
    source: Source
    regions: dict[str | None, Region]
    gate: GateSetting | None

    @property
    def topics(self) -> dict[str | None, str]:
        """The name in MQTT's topics of each region."""
        name = topic_name(self.camera.name if self.context.has_name else f"{socket.gethostname()}_{self.source.name}")
        return {region: name if region is None else topic_name(f"{name}_{region}") for region in self.regions}


def settings_of(camera: Camera, context: WatchContext) -> WatchSettings:
    """Return the settings; raises ConfigError that names the camera and the key for what cannot be used."""
    try:
        source = source_of(with_login(camera), may_come=not context.gives_up)
        regions = {name or None: Region(text) for name, text in (camera.regions or {ONLY: "0,0,1,1"}).items()}
        if context.broker is not None and not context.has_name and source.hides_parts:
            raise ConfigError("topics show only a part of its URL, which others may share: name it with --name")
        return WatchSettings(camera, context, source, regions, gate_of(camera.gate, "gate"))
    except ConfigError as error:
        raise ConfigError(f"camera {camera.name}: {error}") from None


def with_login(camera: Camera) -> str:
    """Return the source with its user and password in the URL; raises ConfigError."""
    if (camera.user is None) != (camera.password_file is None):
        raise ConfigError("user and password_file go together: give both, or neither")
    if camera.user is None or camera.password_file is None:
        return camera.source
    parts = urlsplit(camera.source)
    if not parts.scheme or not parts.netloc or "@" in parts.netloc:
        raise ConfigError("user and password_file need a source that is a URL without a user: rtsp://10.0.0.7/stream1")
    password = read_secret(secret_path(camera.password_file), "password_file").rstrip("\r\n")
    login = f"{quote(camera.user, safe='')}:{quote(password, safe='')}"
    return urlunsplit((parts.scheme, f"{login}@{parts.netloc}", parts.path, parts.query, parts.fragment))


def secret_path(name: str) -> Path:
    """Return where a password is: a path as it is, a plain name among the service's credentials (systemd.exec(5))."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if "/" in name:
        return Path(name)
    if folder is None:
        raise ConfigError(
            f"password_file {name}: it names a credential, and the service has none ($CREDENTIALS_DIRECTORY): use "
            f"LoadCredential={name}:/etc/jetsel/{name} in the unit, or a path"
        )
    return Path(folder, name)


def mqtt_broker(mqtt: Mqtt) -> Broker | None:
    """Return the broker of the configuration, None without one; raises ConfigError."""
    if mqtt.broker is None:
        return None
    file = None if mqtt.password_file is None else secret_path(mqtt.password_file)
    return broker_of(mqtt.broker, mqtt.user, file, mqtt.tls)
