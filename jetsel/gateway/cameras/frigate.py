"""Frigate's HTTP API and its messages, as versions 0.16 and 0.17 have them.

Sources: Frigate's documentation, "MQTT" and "Authentication", and its frigate/api/{event,media,auth}.py.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from jetsel.base.errors import ConfigError

PORT, TLS_PORT = 5000, 8971  # without and with authentication ("Authentication")
SCHEMES = ("frigate", "frigates")
MOST_LETTERS = 100  # of a sub-label: a longer one is refused (EventsSubLabelBody)
TOKEN_COOKIE = "frigate_token"  # auth.cookie_name by default
_MOST_BYTES = 16_000_000  # of a reply
_QUALITY = 95  # of the snapshot's JPEG, in percent


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a tracked object in a message: what is needed of it. Times are seconds of time.time()."""

    id: str
    camera: str
    label: str
    start_time: float = 0.0
    end_time: float | None = None
    false_positive: bool | None = False
    sub_label: Any = None


class TrackedObjectMessage(msgspec.Struct, frozen=True):
    """A message of `frigate/events`: "new", "update" or "end", and the object's state after it."""

    type: str
    after: Snapshot


_message = msgspec.json.Decoder(TrackedObjectMessage)
_objects = msgspec.json.Decoder(list[Snapshot])
_object = msgspec.json.Decoder(Snapshot)


def read_message(payload: bytes) -> TrackedObjectMessage | None:
    """Return a message of `frigate/events`, None if it is none."""
    try:
        return _message.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class FrigateError(Exception):
    """Frigate did not do what was asked. retry: whether it may do so later."""

    def __init__(self, words: str, *, retry: bool) -> None:
        super().__init__(words)
        self.retry = retry


@dataclass(frozen=True)
class FrigateAddress:
    """Where Frigate is, and who asks. password: None if it needs no login."""

    host: str
    port: int
    tls: bool
    user: str | None = None
    password: str | None = None

    @property
    def name(self) -> str:
        """For people and events, without the password."""
        return f"{'frigates' if self.tls else 'frigate'}://{self.host}:{self.port}"


def frigate_address(source: str, user: str | None, password: str | None) -> FrigateAddress:
    """Read frigate://HOST[:PORT] or frigates://HOST[:PORT]; raises ConfigError."""
    try:
        parts = urlsplit(source)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in SCHEMES or parts.path not in ("", "/") or "@" in parts.netloc:
        raise ConfigError(
            "this SOURCE cannot be read: use frigate://HOST[:PORT], or frigates:// with TLS; user and password go into "
            "--frigate-user and --frigate-password-file"
        )
    is_tls = parts.scheme == "frigates"
    return FrigateAddress(host, port or (TLS_PORT if is_tls else PORT), is_tls, user, password)


class FrigateApi:
    """Frigate's HTTP API. Any thread may call; each call has a connection of its own. timeout_s: of each.

    Every method raises FrigateError.
    """

    def __init__(self, address: FrigateAddress, timeout_s: float) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._lock = threading.Lock()
        self._token: str | None = None

    def snapshot(self, event_id: str) -> bytes | None:
        """Return the object's part of its best frame so far, as JPEG; None if there is none, or none yet."""
        query = urlencode({"crop": 1, "bbox": 0, "timestamp": 0, "quality": _QUALITY})
        status, body = self._ask("GET", f"/api/events/{quote(event_id, safe='')}/snapshot.jpg?{query}")
        if status == 404:
            return None
        self._check(status, body, "the snapshot")
        return body

    def set_sub_label(self, event_id: str, sub_label: str, score: float) -> None:
        """Write an object's sub-label and its score, over 0 to 1."""
        body = json.dumps({"subLabel": sub_label[:MOST_LETTERS], "subLabelScore": score}).encode()
        status, reply = self._ask("POST", f"/api/events/{quote(event_id, safe='')}/sub_label", body)
        self._check(status, reply, "the sub-label")

    def since(self, after_s: float, limit: int) -> list[Snapshot]:
        """Return the objects that began after a time, the newest first."""
        query = urlencode({"after": after_s, "limit": limit, "include_thumbnails": 0})
        status, body = self._ask("GET", f"/api/events?{query}")
        self._check(status, body, "the list of objects")
        try:
            return _objects.decode(body)
        except msgspec.MsgspecError as error:
            raise FrigateError(f"the list of objects cannot be read: {error}", retry=True) from None

    def has_ended(self, event_id: str) -> bool | None:
        """Whether an object is not tracked any more; None if Frigate does not know it, or not yet."""
        status, body = self._ask("GET", f"/api/events/{quote(event_id, safe='')}")
        if status == 404:
            return None
        self._check(status, body, "the object")
        try:
            return _object.decode(body).end_time is not None
        except msgspec.MsgspecError as error:
            raise FrigateError(f"the object cannot be read: {error}", retry=True) from None

    @staticmethod
    def _check(status: int, body: bytes, what: str) -> None:
        if status != 200:
            words = " ".join(body[:200].decode("utf-8", "replace").split())
            hint = ": give a user with the role admin" if status == 403 else ""
            raise FrigateError(f"{what}: HTTP {status}{hint}: {words}", retry=status >= 500 or status in (408, 429))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Ask, and log in if that is wanted: at first, and when the token has expired."""
        if self._address.password is not None and self._token is None:
            self._log_in(None)
        used = self._token
        status, reply, _ = self._exchange(method, path, body, used)
        if status == 401 and self._address.password is not None:
            self._log_in(used)
            status, reply, _ = self._exchange(method, path, body, self._token)
        return status, reply

    def _log_in(self, expired: str | None) -> None:
        """Get a token in place of the expired one, unless another thread has done so."""
        with self._lock:
            if self._token != expired:
                return
            body = json.dumps({"user": self._address.user, "password": self._address.password}).encode()
            status, reply, cookies = self._exchange("POST", "/api/login", body, None)
            if status == 401:
                raise FrigateError("the login was refused: check --frigate-user and its password", retry=False)
            self._check(status, reply, "the login")
            found = [
                cookie.partition("=")[2].partition(";")[0] for cookie in cookies if cookie.startswith(TOKEN_COOKIE)
            ]
            if not found:
                raise FrigateError(f"the login gave no cookie {TOKEN_COOKIE}", retry=False)
            self._token = found[0]

    def _exchange(self, method: str, path: str, body: bytes | None, token: str | None) -> tuple[int, bytes, list[str]]:
        """Return status, body and cookies of one request."""
        where = self._address.host, self._address.port
        connection: http.client.HTTPConnection
        if self._address.tls:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(*where, timeout=self._timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(*where, timeout=self._timeout_s)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read(_MOST_BYTES + 1)
            cookies = [value for name, value in response.getheaders() if name.lower() == "set-cookie"]
        except (OSError, http.client.HTTPException) as error:
            words = str(error) or type(error).__name__
            raise FrigateError(f"{self._address.name}: {words}", retry=True) from None
        finally:
            connection.close()
        if len(content) > _MOST_BYTES:
            raise FrigateError(f"{path}: the reply has over {_MOST_BYTES} bytes", retry=False)
        return response.status, content, cookies
