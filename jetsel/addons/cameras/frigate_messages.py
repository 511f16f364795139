"""Frigate's messages from its MQTT broker, subscribed to at each connection; what is wrong is reported once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from jetsel.addons.cameras.mqtt import Broker

QUIET_S = 60.0  # without a message: the topics may be wrong
_KEEPALIVE_S = 15


class FrigateMessages:
    """Begins at once; end it with `close`. Its thread calls `connected` at each connection, and `received` with events.

    prefix: mqtt.topic_prefix of Frigate's configuration. told: gets sentences for people.
    """

    def __init__(
        self,
        broker: Broker,
        prefix: str,
        connected: Callable[[], None],
        received: Callable[[bytes], None],
        told: Callable[[str], None],
    ) -> None:
        self._events, self._available = f"{prefix}/events", f"{prefix}/available"
        self._on_connected, self._on_received, self._told = connected, received, told
        self._where, self._trouble, self._is_odd = f"{broker.host}:{broker.port}", "", False
        self._has_arrived, self._quiet_since_s = False, float("inf")
        self._client = client = paho.Client(CallbackAPIVersion.VERSION2)
        client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            client.tls_set()
        client.reconnect_delay_set(1, 30)
        client.on_connect = self._connected
        client.on_connect_fail = lambda *_: self._tell("cannot be reached")
        client.on_disconnect = lambda *_: self._tell(self._trouble or "hung up")
        client.on_message = self._arrived
        client.connect_async(broker.host, broker.port, _KEEPALIVE_S)
        client.loop_start()

    def close(self) -> None:
        """End the connection and its thread."""
        self._client.on_disconnect = None
        self._client.disconnect()
        self._client.loop_stop()

    def report_silence(self) -> None:
        """Report once if nothing has arrived since the connection."""
        if not self._has_arrived and time.monotonic() - self._quiet_since_s > QUIET_S:
            self._quiet_since_s = float("inf")
            self._told(
                f"nothing has arrived on {self._events} for a minute, and {self._available} is not `online`: start "
                "Frigate with mqtt.enabled, and give its mqtt.topic_prefix as --topic-prefix"
            )

    def _connected(self, client: paho.Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._tell(f"refuses: {reason}")
            return
        client.subscribe([(self._events, 1), (self._available, 1)])
        if not self._trouble:
            self._told(f"connected to the MQTT broker; waiting for {self._events}")
        self._tell("")
        self._is_odd, self._quiet_since_s = False, time.monotonic()
        self._on_connected()

    def _arrived(self, _: paho.Client, __: Any, message: paho.MQTTMessage) -> None:
        """Pass an event on. `available` is retained, and `offline` by Frigate's last will."""
        is_event = message.topic == self._events
        self._has_arrived |= is_event or message.payload == b"online"
        try:
            if is_event:
                self._on_received(bytes(message.payload))
        except Exception:  # whatever anybody publishes, paho's thread goes on
            if not self._is_odd:
                self._told(f"a message of {self._events} cannot be read: is it Frigate's?")
            self._is_odd = True

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            state = f"{trouble}; it is tried again" if trouble else "is available again"
            self._told(f"the MQTT broker {self._where} {state}")
