"""Settings of a watched camera, from the configuration or the command line."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Struct

from jetsel.addons.cameras.config import Camera, MqttSettings
from jetsel.addons.cameras.gate import gate_of
from jetsel.addons.cameras.mqtt import ServerLogin
from jetsel.addons.cameras.region import Region
from jetsel.addons.cameras.source import source_of
from jetsel.base.errors import ConfigError
from jetsel.base.files import read_secret
from jetsel.base.names import digest_of, exact

_PORT, _TLS_PORT = 1883, 8883  # of MQTT
ONLY = ""  # name of a camera's only region


class WatchContext(Struct, frozen=True):
    """What all cameras of a process share. emit: receives each event. on_message: receives sentences for people.

    gives_up: True if an error ends the watching, as for a camera of the command line; else the camera is tried again.
    has_name: True if MQTT topics have the camera's name; else they have those of the machine and the source.
    """

    endpoint: str | None
    timeout_ms: float
    max_image_mb: float
    broker: ServerLogin | None
    emit: Callable[[dict[str, Any]], None]
    on_message: Callable[[str], None]
    gives_up: bool = False
    has_name: bool = True
    max_megapixels: float = 50.0  # of an image in a folder, or a frame


class WatchSettings:
    """A camera's checked settings. regions, topics: rectangles and MQTT names, by region (None: the only one)."""

    def __init__(self, camera: Camera, context: WatchContext) -> None:
        """Raises ConfigError with the camera and the key if a setting is unusable."""
        self.camera, self.context = camera, context
        try:
            self.source = source_of(with_login(camera), may_be_absent=not context.gives_up)
            regions = camera.regions or {ONLY: "0,0,1,1"}
            self.regions = {name or None: Region(text) for name, text in regions.items()}
            if context.broker is not None and not context.has_name and self.source.hides_parts:
                raise ConfigError("topics show only a part of its URL, which others may share: name it with --name")
            self.gate = gate_of(camera.gate, "gate")
        except ConfigError as error:
            raise ConfigError(f"camera {camera.name}: {error}") from None
        name = topic_name(camera.name if context.has_name else f"{socket.gethostname()}_{self.source.name}")
        self.topics = {region: name if region is None else topic_name(f"{name}_{region}") for region in self.regions}


def with_login(camera: Camera) -> str:
    """Return the source with user and password in its URL; raises ConfigError."""
    password = password_of(camera.user, _secret_path(camera.password_file), "user", "password_file")
    if camera.user is None or password is None:
        return camera.source
    parts = urlsplit(camera.source)
    if not parts.scheme or not parts.netloc or "@" in parts.netloc:
        raise ConfigError("user and password_file need a source that is a URL without a user: rtsp://10.0.0.7/stream1")
    login = f"{quote(camera.user, safe='')}:{quote(password, safe='')}"
    return urlunsplit((parts.scheme, f"{login}@{parts.netloc}", parts.path, parts.query, parts.fragment))


def broker_of(mqtt: MqttSettings) -> ServerLogin | None:
    """Read the broker as HOST, HOST:PORT or [HOST]:PORT, and the password's file; None without a broker.

    Raises ConfigError.
    """
    if mqtt.broker is None:
        return None
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\s]+))(?::(\d{1,5}))?", mqtt.broker)
    if match is None or not 0 < (port := int(match[3] or (_TLS_PORT if mqtt.tls else _PORT))) < 65_536:
        raise ConfigError(f"--mqtt {mqtt.broker}: use HOST or HOST:PORT, as in homeassistant.local or [::1]:1883")
    password = password_of(mqtt.user, _secret_path(mqtt.password_file), "--mqtt-user", "--mqtt-password-file")
    return ServerLogin(match[1] or match[2], port, mqtt.user, password, mqtt.tls)


def password_of(user: str | None, file: Path | None, user_option: str, file_option: str) -> str | None:
    """Return the user's password from the file, None if neither is given; raises ConfigError."""
    if (user is None) != (file is None):
        raise ConfigError(f"{user_option} and {file_option} go together: give both, or neither")
    return None if file is None else read_secret(file, file_option).rstrip("\r\n")


def _secret_path(name: str | None) -> Path | None:
    """Return a password file's path; a name without `/` is a credential of the service (systemd.exec(5)).

    Raises ConfigError if the service has no credentials.
    """
    if name is None:
        return None
    if "/" in name:
        return Path(name)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder is None:
        raise ConfigError(
            f"password_file {name}: it names a credential, and the service has none ($CREDENTIALS_DIRECTORY): use "
            f"LoadCredential={name}:/etc/jetsel/{name} in the unit, or a path"
        )
    return Path(folder, name)


def topic_name(name: str) -> str:
    """Return a name for an MQTT topic: only letters, digits, _ and -.

    A name of plain ASCII keeps its letters; others end with a digest, so that no two share a topic. ASCII names that
    differ only in other characters (`front door`, `front_door`) do share one, so callers must compare.
    """
    same = exact(name)
    bare = re.sub(r"[^A-Za-z0-9_-]+", "_", same).strip("_")
    return bare if bare and same.isascii() else "_".join(filter(None, (bare, digest_of(same))))
