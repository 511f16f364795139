"""Frigate's HTTP API and messages, versions 0.16 to 0.18.

Sources: Frigate's documentation, "MQTT" and "Authentication", and its frigate/api/{event,media,auth}.py.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import paho.mqtt.client as paho

from jetsel.addons.cameras.mqtt import BrokerConnection, ServerLogin
from jetsel.addons.http_client import CONNECTION_ERRORS, Http, Https, read_all
from jetsel.base.errors import ConfigError

PORT, TLS_PORT = 5000, 8971  # without and with authentication (Frigate's documentation)
SCHEMES = ("frigate", "frigates")
MOST_LETTERS = 100  # of a sub-label: Frigate refuses longer ones (EventsSubLabelBody)
TOKEN_COOKIE = "frigate_token"  # default of auth.cookie_name
_MOST_BYTES = 16_000_000  # of a reply
_QUIET_S = 60.0  # without a message: the topic's prefix may be wrong
_QUALITY = 95  # of the snapshot's JPEG, in percent


class TrackedObject(msgspec.Struct, frozen=True):
    """State of a tracked object in a message, as far as it is needed. Times are seconds of time.time()."""

    id: str
    camera: str
    label: str
    start_time: float = 0.0
    end_time: float | None = None
    false_positive: bool | None = False
    sub_label: Any = None

    @property
    def name(self) -> str | None:
        """The object's present sub-label: [name, score] in a message, the name alone in a list of objects."""
        given = self.sub_label[:1] if isinstance(self.sub_label, list) else [self.sub_label]
        return str(given[0]) if given and given[0] else None


class TrackedObjectMessage(msgspec.Struct, frozen=True):
    """A message of `frigate/events`: "new", "update" or "end", and the object's state after it."""

    type: str
    after: TrackedObject


Decoded = TypeVar("Decoded")


class FrigateError(Exception):
    """A request to Frigate failed. retry: whether it may succeed later."""

    def __init__(self, words: str, *, retry: bool) -> None:
        super().__init__(words)
        self.retry = retry


def frigate_address(source: str, user: str | None, password: str | None) -> ServerLogin:
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
    return ServerLogin(host, port or (TLS_PORT if is_tls else PORT), user, password, is_tls)


class FrigateApi:
    """Frigate's HTTP API. Any thread may call; each request has its own connection. timeout_s: of each call.

    name: the address without the password, for people and events. Every method raises FrigateError.
    """

    def __init__(self, address: ServerLogin, timeout_s: float) -> None:
        self.name = f"{'frigates' if address.tls else 'frigate'}://{address.host}:{address.port}"
        self._address, self._timeout_s = address, timeout_s
        self._lock = threading.Lock()
        self._token: str | None = None
        self._connection: Callable[..., HTTPConnection] = partial(Http, address.host, address.port)
        if address.tls:  # here, because making a context takes longer than a request
            context = ssl.create_default_context()
            self._connection = partial(Https, address.host, address.port, context=context)

    def snapshot(self, event_id: str) -> bytes | None:
        """Return the object's part of its best frame so far, as JPEG; None if there is none yet."""
        query = urlencode({"crop": 1, "bbox": 0, "timestamp": 0, "quality": _QUALITY})
        return self._send("the snapshot", f"{_event_path(event_id)}/snapshot.jpg?{query}", missing_ok=True)

    def set_sub_label(self, event_id: str, sub_label: str, score: float) -> None:
        """Write an object's sub-label and its score (above 0, at most 1)."""
        body = json.dumps({"subLabel": sub_label[:MOST_LETTERS], "subLabelScore": score}).encode()
        self._send("the sub-label", f"{_event_path(event_id)}/sub_label", body)

    def list_newest(self, labels: Sequence[str], limit: int) -> list[TrackedObject]:
        """Return the objects with these labels, the one that began last (by Frigate's clock) first."""
        query = urlencode({"labels": ",".join(labels), "limit": limit, "include_thumbnails": 0})
        topic = "the list of objects"
        return _decode(self._send(topic, f"/api/events?{query}"), list[TrackedObject], topic) or []

    def read_object(self, event_id: str) -> TrackedObject | None:
        """Return an object's state; None if Frigate's database does not have it (yet)."""
        return _decode(self._send("the object", _event_path(event_id), missing_ok=True), TrackedObject, "the object")

    def _send(self, topic: str, path: str, body: bytes | None = None, *, missing_ok: bool = False) -> bytes | None:
        """Return the reply; None for 404 if `missing_ok`. Logs in first, and again if the token has expired."""
        until_s = time.monotonic() + self._timeout_s
        if self._address.password is not None and self._token is None:
            self._log_in(None, until_s)
        used = self._token
        status, reply, _ = self._exchange(path, body, used, until_s)
        if status == 401 and self._address.password is not None:
            self._log_in(used, until_s)
            status, reply, _ = self._exchange(path, body, self._token, until_s)
        if status == 404 and missing_ok:
            return None
        _raise_unless_ok(status, reply, topic)
        return reply

    def _log_in(self, expired: str | None, until_s: float) -> None:
        """Replace the expired token, unless another thread has replaced it."""
        with self._lock:
            if self._token != expired:
                return
            body = json.dumps({"user": self._address.user, "password": self._address.password}).encode()
            status, reply, cookies = self._exchange("/api/login", body, None, until_s)
            if status == 401:
                raise FrigateError("the login was refused: check --frigate-user and its password", retry=False)
            _raise_unless_ok(status, reply, "the login")
            tokens = [
                cookie.partition("=")[2].partition(";")[0] for cookie in cookies if cookie.startswith(TOKEN_COOKIE)
            ]
            if not tokens:
                raise FrigateError(f"the login gave no cookie {TOKEN_COOKIE}", retry=False)
            self._token = tokens[0]

    def _exchange(
        self, path: str, body: bytes | None, token: str | None, until_s: float
    ) -> tuple[int, bytes, list[str]]:
        """Return status, body and cookies of one request: a POST if it has a body."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            with closing(self._connection(until_s=until_s)) as connection:
                connection.request("GET" if body is None else "POST", path, body, headers)
                response = connection.getresponse()
                content = read_all(response, _MOST_BYTES)
        except (*CONNECTION_ERRORS, ValueError) as error:  # ValueError: a token or host that no request can contain
            words = str(error) or type(error).__name__
            raise FrigateError(f"{self.name}: {words}", retry=True) from None
        cookies = [value for name, value in response.getheaders() if name.lower() == "set-cookie"]
        return response.status, content, cookies


def _event_path(event_id: str) -> str:
    return f"/api/events/{quote(event_id, safe='')}"


def _decode(body: bytes | None, kind: type[Decoded], topic: str) -> Decoded | None:
    try:
        return None if body is None else msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrigateError(f"{topic} cannot be read: {error}", retry=True) from None


def _raise_unless_ok(status: int, body: bytes, topic: str) -> None:
    if status != 200:
        words = " ".join(body[:200].decode("utf-8", "replace").split())
        hint = {403: ": give a user with the role admin"}.get(status, "")
        if 300 <= status < 400:
            hint = ": give the address that it redirects to"
        passes = status >= 500 or status in (404, 408, 429)  # 404: an object that just began is not in the database
        raise FrigateError(f"{topic}: HTTP {status}{hint}: {words}", retry=passes)


class FrigateMessages:
    """Frigate's events at its broker. It begins at once; end it with `close`. Each sentence is reported once.

    prefix: mqtt.topic_prefix of Frigate's configuration. connected: called at each connection. received: called with
    each event. on_message: receives sentences for people. A thread of paho calls all of them.
    """

    def __init__(
        self,
        broker: ServerLogin,
        prefix: str,
        connected: Callable[[], None],
        received: Callable[[bytes], None],
        on_message: Callable[[str], None],
    ) -> None:
        self._events, self._available = f"{prefix}/events", f"{prefix}/available"
        self._has_reported_unreadable, self._has_received, self._quiet_since_s = False, False, float("inf")
        self._on_connected, self._on_received, self._on_message = connected, received, on_message
        self._connection = BrokerConnection(broker, on_message)
        self._connection.client.on_message = self._on_mqtt_message
        self.close = self._connection.close
        self._connection.connect(self._subscribe)

    def report_silence(self) -> None:
        """Report once if nothing has arrived for a minute since the connection began."""
        if not self._has_received and time.monotonic() - self._quiet_since_s > _QUIET_S:
            self._quiet_since_s = float("inf")
            self._on_message(
                f"nothing has arrived on {self._events} for a minute, and {self._available} is not `online`: start "
                "Frigate with mqtt.enabled, and give its mqtt.topic_prefix as --topic-prefix"
            )

    def _subscribe(self) -> None:
        self._connection.client.subscribe([(self._events, 1), (self._available, 1)])
        if not self._connection.trouble:
            self._on_message(f"connected to the MQTT broker; waiting for {self._events}")
        self._has_reported_unreadable, self._quiet_since_s = False, time.monotonic()
        self._on_connected()

    def _on_mqtt_message(self, _: paho.Client, __: Any, message: paho.MQTTMessage) -> None:
        """Forward an event. `available` is retained, and Frigate's last will sets it to `offline`."""
        is_event = message.topic == self._events
        self._has_received |= is_event or message.payload == b"online"
        try:
            if is_event:
                self._on_received(bytes(message.payload))
        except Exception:  # an invalid message must not end paho's thread
            if not self._has_reported_unreadable:
                self._on_message(f"a message of {self._events} cannot be read: is it Frigate's?")
            self._has_reported_unreadable = True
