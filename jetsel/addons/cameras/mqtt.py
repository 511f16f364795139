"""Events for an MQTT broker, and the retained messages by which Home Assistant discovers the camera."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from jetsel import __version__

_MOST_WAITING = 1000  # events while the broker is away; older ones are dropped
_LONGEST_PAUSE_S = 30
_KEEPALIVE_S = 15  # the broker reports the last will after 1.5 times this
_END_S = 2.0
_SENSORS: dict[str, dict[str, Any]] = {
    "label": {"name": "Label", "value_template": "{{ value_json.label[:255] }}"},
    "probability": {
        "name": "Probability",
        "value_template": "{{ (value_json.probability * 100) | round(1) }}",
        "unit_of_measurement": "%",
    },
}


@dataclass(frozen=True)
class ServerLogin:
    """The address of a broker, or of Frigate, and the login there. tls: with the system's certificate authorities."""

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    tls: bool = False


class BrokerConnection:
    """A client of one broker, which reconnects: each problem is reported once, and so is its end.

    on_message: receives these sentences, from a thread of paho. Set up `client` before `begin`.
    """

    def __init__(self, broker: ServerLogin, on_message: Callable[[str], None]) -> None:
        self._broker, self._report_problem, self.trouble = broker, on_message, ""
        self.client = paho.Client(CallbackAPIVersion.VERSION2)
        self.client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            self.client.tls_set_context(ssl.create_default_context())
        self.client.reconnect_delay_set(1, _LONGEST_PAUSE_S)

    def connect(self, connected: Callable[[], None]) -> None:
        """Connect, and reconnect for ever; paho's thread calls `connected` at each connection."""

        def on_connect(_: paho.Client, __: Any, ___: Any, reason: Any, ____: Any) -> None:
            if reason.is_failure:
                self._report(f"refuses: {reason}")
                return
            connected()
            self._report("")

        self.client.on_connect = on_connect
        self.client.on_disconnect = lambda *_: self._report(self.trouble or "hung up")
        self.client.on_connect_fail = lambda *_: self._report("cannot be reached")
        self.client.connect_async(self._broker.host, self._broker.port, _KEEPALIVE_S)
        self.client.loop_start()

    def close(self) -> None:
        """End the connection and its thread."""
        self.client.on_disconnect = None
        self.client.disconnect()
        self.client.loop_stop()

    def _report(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            state = f"{trouble}; it is tried again" if trouble else "is available again"
            self._report_problem(f"MQTT broker {self._broker.host}:{self._broker.port} {state}")


class MqttPublisher:
    """Publishes to one broker; the state is published again at each connection.

    node: the camera's name in topics. name: for people. on_message: receives a sentence when the broker goes away or
    returns, from a thread of paho.
    """

    def __init__(self, broker: ServerLogin, node: str, name: str, on_message: Callable[[str], None]) -> None:
        self._node, self._name = node, name
        self._lock = threading.Lock()
        self._unsent: deque[bytes] = deque(maxlen=_MOST_WAITING)
        self._state = b""
        self._availability = b"offline"
        self._connection = BrokerConnection(broker, on_message)
        self._client = self._connection.client
        self._client.will_set(self._topic("availability"), "offline", qos=1, retain=True)
        self._connection.connect(self._on_connected)

    def publish_event(self, event: dict[str, Any]) -> None:
        """Publish an event; a label is also retained as the camera's state, for later subscribers."""
        content = msgspec.json.encode(event)
        with self._lock:
            self._unsent.append(content)
            if event["event"] == "label":
                self._state = content
                self._publish("state", content, retain=True)
            self._publish_unsent()

    def publish_availability(self, is_available: bool) -> None:
        """Publish whether the state is current: the source and the daemon are available."""
        with self._lock:
            self._availability = b"online" if is_available else b"offline"
            self._publish("availability", self._availability, retain=True)

    def close(self) -> None:
        """Publish that the camera is offline, and disconnect."""
        if self._client.is_connected():
            with contextlib.suppress(RuntimeError):  # the connection was just lost: the last will says the same
                self._client.publish(self._topic("availability"), "offline", 1, retain=True).wait_for_publish(_END_S)
        self._connection.close()

    def _topic(self, what: str) -> str:
        return f"jetsel/{self._node}/{what}"

    def _on_connected(self) -> None:
        with self._lock:
            for what in _SENSORS:
                content = msgspec.json.encode(self._discovery(what))
                self._client.publish(f"homeassistant/sensor/{self._node}/{what}/config", content, qos=1, retain=True)
            if self._state:
                self._publish("state", self._state, retain=True)
            self._publish("availability", self._availability, retain=True)
            self._publish_unsent()

    def _publish(self, what: str, content: bytes, *, retain: bool = False) -> None:
        if self._client.is_connected():  # otherwise paho would send held messages in another order
            self._client.publish(self._topic(what), content, qos=1, retain=retain)

    def _publish_unsent(self) -> None:
        while self._client.is_connected() and self._unsent:
            self._publish("event", self._unsent.popleft())

    def _discovery(self, what: str) -> dict[str, Any]:
        """Return a sensor's description for Home Assistant (its documentation: "MQTT discovery", "MQTT sensor")."""
        device = {"identifiers": [self._node], "name": self._name, "manufacturer": "jetsel", "model": "jetsel watch"}
        return {
            **_SENSORS[what],
            "unique_id": f"{self._node}_{what}",
            "state_topic": self._topic("state"),
            "availability_topic": self._topic("availability"),
            "device": device | {"sw_version": __version__},
            "origin": {"name": "jetsel", "sw_version": __version__},
        }
