"""`jetsel watch`: classifies the frames of cameras, and reports changes of their labels."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import inspect as kinds
from msgspec import structs

from jetsel.addons.cameras.config import SECTIONS, Camera, MqttSettings
from jetsel.base.errors import ConfigError, JetselError
from jetsel.base.notify import Notifier
from jetsel.cli.gateway import missing_library
from jetsel.cli.options import ConfigFile, Endpoint, print_json, served_models
from jetsel.site import config_file

if TYPE_CHECKING:
    from jetsel.addons.cameras.cameras import Cameras
    from jetsel.addons.cameras.settings import WatchContext

MQTT = "MQTT and Home Assistant"
FRIGATE = "Frigate"
_POLL_S = 0.25
_TIMEOUT_MS = 10_000.0
_FRIGATE_TIMEOUT_S = 10.0  # of one request to Frigate

_SAVING = "Images of doubtful answers"
_NO_OPTIONS = ("source", "user", "password_file", "regions")  # SOURCE, a URL's own login and --region
_OPTION_DETAILS: dict[str, dict[str, Any]] = {  # meaning of a field, only for the command line
    "gate": {"metavar": "FEATURE:THRESHOLD"},
    "model": {"autocompletion": served_models},
    "save": {"metavar": "FOLDER", "rich_help_panel": _SAVING},
    "save_mb": {"rich_help_panel": _SAVING},
    "save_below": {"rich_help_panel": _SAVING},
}
_FLAGS = {"every_s": "--every"}  # where it differs from the field's name


def with_camera_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with these options instead of the parameter `camera`, which receives their values by field."""
    meanings = dict(re.findall(r"^ *(\w+): (.+)$", Camera.__doc__ or "", re.MULTILINE))
    fields = kinds.type_info(Camera).fields  # type: ignore[attr-defined]
    options = [_option(one, meanings.get(one.name)) for one in fields if one.name not in _NO_OPTIONS]
    own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        camera = {option.name: given.pop(option.name) for option in options}
        command(camera=camera, **given)

    parameters = [option for one in own for option in (options if one.name == "camera" else [one])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _option(field: kinds.Field, meaning: str | None) -> inspect.Parameter:
    """Return a command's parameter for a field; its default is None if the field has no default."""
    types = field.type.types if isinstance(field.type, kinds.UnionType) else [field.type]
    number = next((one for one in types if isinstance(one, kinds.FloatType | kinds.IntType)), None)
    kind: Any = str if number is None else float if isinstance(number, kinds.FloatType) else int
    shown = dict(_OPTION_DETAILS.get(field.name, {}))
    if number is not None:
        shown |= {"min": number.gt if number.ge is None else number.ge, "max": number.le}
    option = typer.Option(_FLAGS.get(field.name, f"--{field.name.replace('_', '-')}"), help=meaning, **shown)
    default = None if field.required else field.default
    annotation: Any = Annotated[kind if default is not None else kind | None, option]
    return inspect.Parameter(
        field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
    )


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
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of a request, in ms.")] = _TIMEOUT_MS,
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
        from jetsel.addons.cameras.frigate import SCHEMES
        from jetsel.addons.cameras.settings import ONLY, WatchContext, broker_of
        from jetsel.addons.cameras.source import source_of
    except ModuleNotFoundError as missing:
        raise missing_library("jetsel watch", missing) from None
    if source is None:
        _watch_configured(config_file.locate(config), endpoint)
        return
    password_file = None if mqtt_password_file is None else str(mqtt_password_file.absolute())
    broker = broker_of(MqttSettings(mqtt, mqtt_user, password_file, mqtt_tls))
    has_name = camera["name"] is not None
    context = WatchContext(
        endpoint, timeout_ms, max_image_mb, broker, _print_event, _print_message, gives_up=True, has_name=has_name
    )
    if source.partition("://")[0] in SCHEMES:
        one = Camera(**camera | {"name": source, "source": source})
        _watch_frigate(one, context, (frigate_user, frigate_password_file), topic_prefix, families or [])
        return
    name = camera["name"] or source_of(source).name
    regions = {} if region is None else {ONLY: region}
    one = Camera(**camera | {"name": name, "source": source, "regions": regions})
    is_stopping = _stop_signal()
    _run_until_end(Cameras([one], context), is_stopping)


def _stop_signal() -> threading.Event:
    """Return an event that SIGINT and SIGTERM set from now on; call it before any camera begins.

    A KeyboardInterrupt could end the interpreter while a thread is in OpenCV: Python ends that thread inside a
    destructor of C++, which aborts the process.
    """
    is_stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_stopping.set())
    return is_stopping


def _run_until_end(cameras: Cameras, is_stopping: threading.Event, at_poll: Callable[[], None] = lambda: None) -> None:
    """Wait until each camera is over, or a signal ends the process; raises the error that ended a camera.

    at_poll: called several times a second.
    """
    failure: JetselError | None = None
    try:
        while not is_stopping.is_set() and not cameras.wait(_POLL_S):
            at_poll()
    except JetselError as error:
        failure = error
    finally:
        has_ended = cameras.end()
    if not has_ended:  # see _stop_signal; and a thread that hangs in the camera's driver could keep it from ending
        if failure is not None:
            _print_message(str(failure))
        os._exit(0 if failure is None else 1)
    if failure is not None:
        raise failure


def _watch_configured(path: Path | None, endpoint: str | None) -> None:
    """Watch the configured cameras, and read the file again on SIGHUP. Raises ConfigError."""
    import cv2

    from jetsel.addons.cameras.cameras import Cameras

    must_reload, notifier = threading.Event(), Notifier.from_environment()
    cameras_read, context = _read_configuration(path, endpoint)
    if not cameras_read:
        raise ConfigError(
            f"{path or 'the configuration'}: there is no [[cameras]]: name a SOURCE, or add one: `jetsel config` shows "
            "what it may have"
        )
    signal.signal(signal.SIGHUP, lambda *_: must_reload.set())
    os.environ.setdefault("OPENCV_FFMPEG_THREADS", "1")  # many cameras share few processors, and memory
    cv2.setNumThreads(1)
    is_stopping = _stop_signal()
    cameras = Cameras(cameras_read, context)
    notifier.ready(f"watching {len(cameras_read)} cameras")

    def reload() -> None:
        if not must_reload.is_set():
            return
        must_reload.clear()
        try:
            changed = cameras.change_to(*_read_configuration(path, endpoint))
        except ConfigError as error:
            _print_message(f"the cameras stay as they were: {error}")
            return
        _print_message(f"the configuration was read again; changed cameras: {', '.join(changed) or 'none'}")

    _run_until_end(cameras, is_stopping, reload)


def _read_configuration(path: Path | None, endpoint: str | None) -> tuple[list[Camera], WatchContext]:
    from jetsel.addons.cameras.settings import WatchContext, broker_of

    server, sections = config_file.read(path).server, config_file.read_sections(path, SECTIONS)
    where, broker, most_mb = endpoint or server.endpoint, broker_of(sections.mqtt), server.max_image_mb
    context = WatchContext(where, _TIMEOUT_MS, most_mb, broker, _print_event, _print_message)
    return sections.cameras, structs.replace(context, max_megapixels=server.max_image_megapixels)


def _watch_frigate(
    camera: Camera, context: WatchContext, login: tuple[str | None, Path | None], prefix: str, maps: list[str]
) -> None:
    """Classify Frigate's tracked objects until Ctrl-C or SIGTERM; raises ConfigError.

    camera: with Frigate as its source; gives the other fields of requests. login: user of Frigate, and the password's
    file. prefix: of Frigate's topics. maps: LABEL=FAMILY each.
    """
    from jetsel.addons.cameras.frigate import FrigateApi, frigate_address
    from jetsel.addons.cameras.frigate_watch import FrigateWatch
    from jetsel.addons.cameras.settings import password_of

    password = password_of(*login, "--frigate-user", "--frigate-password-file")
    if context.broker is None:
        raise ConfigError(f"{camera.source}: name the MQTT broker that Frigate uses: --mqtt HOST")
    if not prefix or set(prefix) & set("+#\0"):
        raise ConfigError(f"--topic-prefix {prefix!r}: give Frigate's own mqtt.topic_prefix, without + and #")
    if not maps:
        raise ConfigError(f"{camera.source}: say which family classifies which objects: --map bird=birds")
    api = FrigateApi(frigate_address(camera.source, login[0], password), _FRIGATE_TIMEOUT_S)
    families = dict(map(_parse_map, maps))
    watch = FrigateWatch(api, context, context.broker, families, camera.request, prefix=prefix)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.closing(watch), contextlib.suppress(KeyboardInterrupt):
        watch.run()


def _parse_map(text: str) -> tuple[str, str]:
    label, equals, family = text.partition("=")
    if not (label and equals and family):
        raise ConfigError(f"--map {text}: write LABEL=FAMILY: bird=birds")
    return label, family


_printing = threading.Lock()  # cameras have their own threads


def _print_event(event: dict[str, Any]) -> None:
    with _printing:
        try:
            print_json(event)
        except BrokenPipeError:
            os._exit(1)  # the reader of the events has left; the last will reports that to a broker
        except OSError as error:
            _print_message(f"an event cannot be written: {error.strerror}")


def _print_message(words: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be reading
        typer.echo(f"jetsel: {' '.join(words.split())}", err=True)
