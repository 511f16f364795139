"""`jetsel watch`: a camera, asked about again and again, and told of when its label changes."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from jetsel.addons.cameras.commands.camera_options import with_camera_options
from jetsel.addons.cameras.commands.until_end import until_end, watch_configured
from jetsel.addons.cameras.config import Camera
from jetsel.base.errors import ConfigError, pip_install
from jetsel.cli.options import ConfigFile, Endpoint, print_json

MQTT = "MQTT and Home Assistant"
FRIGATE = "Frigate"


@with_camera_options
def run(
    camera: dict[str, Any],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            envvar="JETSEL_SOURCE",
            help="Camera, URL, folder, video file or pipeline; see above. 0 is /dev/video0 (default: every camera of "
            "the configuration).",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="X,Y,W,H", help="Part of the frame to classify, in shares from 0 to 1.")
    ] = None,
    mqtt: Annotated[str | None, typer.Option(metavar="HOST[:PORT]", help="MQTT broker.", rich_help_panel=MQTT)] = None,
    mqtt_user: Annotated[str | None, typer.Option(help="User name at the broker.", rich_help_panel=MQTT)] = None,
    mqtt_password_file: Annotated[
        Path | None, typer.Option(help="File with the password.", rich_help_panel=MQTT)
    ] = None,
    mqtt_tls: Annotated[
        bool, typer.Option("--mqtt-tls", help="Connect by TLS (default port: 8883).", rich_help_panel=MQTT)
    ] = False,
    families: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="LABEL=FAMILY",
            help="Family that classifies Frigate's objects of this label; repeat the option for more labels.",
            rich_help_panel=FRIGATE,
        ),
    ] = None,
    topic_prefix: Annotated[
        str, typer.Option(help="Frigate's mqtt.topic_prefix.", rich_help_panel=FRIGATE)
    ] = "frigate",
    frigate_user: Annotated[
        str | None, typer.Option(help="User of Frigate with the role admin.", rich_help_panel=FRIGATE)
    ] = None,
    frigate_password_file: Annotated[
        Path | None, typer.Option(help="File with that user's password.", rich_help_panel=FRIGATE)
    ] = None,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of a request, in ms.")] = 10_000.0,
    max_image_mb: Annotated[
        float, typer.Option(min=0.01, help="Largest image to send, in MB; use the daemon's [server] max_image_mb.")
    ] = 16.0,
) -> None:
    """Watch cameras, and print an event, one JSON object a line, when a label changes.

    SOURCE is a camera (/dev/video0), a URL (rtsp://..., http://...), a folder that receives images, a video file, or a
    GStreamer pipeline ('nvarguscamerasrc ! ... ! appsink'). Only the newest frame is classified; older ones are
    dropped. A video file plays at its own rate, as a camera would.

    Without SOURCE, the command watches all cameras in [[cameras]] of the configuration file, which say all that the
    options do; SIGHUP makes it read the file again, and cameras that are as before go on. A SOURCE
    frigate://HOST has Frigate's tracked objects classified, and writes their sub-labels.

    If the source or the daemon goes away, the command waits for it, and reports that on stderr and as an event. Ctrl-C
    ends it, with a summary. It needs pip install 'jetsel[gateway]'. docs/cameras.md has examples, among them Home
    Assistant.
    """
    try:
        from jetsel.addons.cameras.cameras import Cameras
        from jetsel.addons.cameras.commands.frigate import watch_frigate
        from jetsel.addons.cameras.frigate import SCHEMES
        from jetsel.addons.cameras.mqtt import broker_of
        from jetsel.addons.cameras.settings import ONLY, WatchContext
        from jetsel.addons.cameras.source import source_of
    except ModuleNotFoundError as missing:
        raise ConfigError(f"jetsel watch needs {missing.name}: {pip_install('gateway')}") from None
    if source is None:
        watch_configured(config, endpoint, _print_event, _tell)
        return
    broker = None if mqtt is None else broker_of(mqtt, mqtt_user, mqtt_password_file, mqtt_tls)
    has_name = camera["name"] is not None
    context = WatchContext(
        endpoint, timeout_ms, max_image_mb, broker, _print_event, _tell, gives_up=True, has_name=has_name
    )
    if source.partition("://")[0] in SCHEMES:
        one = Camera(**camera | {"name": source, "source": source})
        watch_frigate(one, context, (frigate_user, frigate_password_file), topic_prefix, families or [])
        return
    name = camera["name"] or source_of(source).name
    regions = {} if region is None else {ONLY: region}
    one = Camera(**camera | {"name": name, "source": source, "regions": regions})
    until_end(Cameras([one], context))


_printing = threading.Lock()  # cameras have threads of their own


def _print_event(event: dict[str, Any]) -> None:
    with _printing:
        try:
            print_json(event)
        except BrokenPipeError:
            os._exit(1)  # who read the events has left; a broker learns of it by the last will
        except OSError as error:
            _tell(f"an event cannot be written: {error.strerror}")


def _tell(words: str) -> None:
    with contextlib.suppress(OSError):  # nobody can be told
        typer.echo(f"jetsel: {' '.join(words.split())}", err=True)
