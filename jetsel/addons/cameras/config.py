"""The sections [[cameras]] and [mqtt] of jetsel.toml, for `jetsel watch`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from jetsel.base.sections import Sections, default_examples

DEFAULT_GATE = "blocks:4"
"""Highest threshold that found all known changes, and reported no event more than a second late, on the clips of
calibration/RESULTS-gate.md."""
Name = Annotated[str, Meta(pattern=r"^[^\x00-\x1f/+#]{1,64}\Z")]  # allowed in an MQTT topic


# commands/watch.py makes the options of `jetsel watch SOURCE` from these fields and lines.
class Camera(Struct, frozen=True, forbid_unknown_fields=True):
    """One camera that `jetsel watch` watches.

    name: Name in events, topics and the status; `jetsel watch SOURCE` makes one of SOURCE.
    source: Camera, URL, folder, video file or pipeline, as SOURCE of `jetsel watch`.
    user: User name for a URL (default: none).
    password_file: File with the password of that user; a plain name is a credential of the service.
    family: Model family (default: the daemon's).
    policy: Policy that chooses the models (default: the family's).
    model: Run only this model (default: the policy chooses).
    deadline_ms: Deadline of each answer, in ms (default: none).
    wrong_at_most: Maximum share of wrong answers; too unsure answers get the label `unknown` (default: the daemon's).
    regions: Parts of the frame as X,Y,W,H in shares, each with a label of its own (default: the whole frame).
    every_s: Minimum seconds between two requests.
    gate: Which frames are skipped: FEATURE:THRESHOLD (blocks, edges or histogram), or `none`.
    ask_again_s: Seconds after which an unchanged scene is classified again.
    stay: Consecutive answers until a new label is reported.
    stall_s: Seconds without a frame after which the source counts as disconnected.
    save: Folder for images of doubtful answers (default: none are kept).
    save_mb: Largest size of that folder, in MB.
    save_below: Probability below which an answer is doubtful.
    """

    name: Name
    source: str
    user: str | None = None
    password_file: str | None = None
    family: str | None = None
    policy: str | None = None
    model: str | None = None
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    wrong_at_most: Annotated[float, Meta(gt=0, le=1)] | None = None
    regions: dict[Name, str] = {}
    every_s: Annotated[float, Meta(ge=0, le=86_400)] = 0.0
    gate: str = DEFAULT_GATE
    ask_again_s: Annotated[float, Meta(ge=1, le=86_400)] = 30.0
    stay: Annotated[int, Meta(ge=1, le=10_000)] = 3
    stall_s: Annotated[float, Meta(ge=1, le=600)] = 5.0
    save: str | None = None
    save_mb: Annotated[float, Meta(ge=0.1)] = 1000.0
    save_below: Annotated[float, Meta(ge=0, le=1)] = 0.5

    @property
    def request(self) -> dict[str, Any]:
        """Fields of the camera's requests to the daemon."""
        names = ("family", "policy", "model", "deadline_ms", "wrong_at_most")
        return {name: getattr(self, name) for name in names}


class MqttSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The broker that receives the cameras' events.

    broker: HOST or HOST:PORT of the broker (default: none).
    user: User name at the broker (default: none).
    password_file: File with the password of that user; a plain name is a credential of the service.
    tls: Whether to connect by TLS.
    """

    broker: str | None = None
    user: str | None = None
    password_file: str | None = None
    tls: bool = False


class CameraSections(Struct, frozen=True, forbid_unknown_fields=True):
    """The sections of jetsel.toml that `jetsel watch` reads."""

    mqtt: MqttSettings = MqttSettings()
    cameras: Annotated[list[Camera], Meta(max_length=64)] = []

    def __post_init__(self) -> None:
        names = [camera.name for camera in self.cameras]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two cameras have the name {twice}: give each a name of its own")


_EXAMPLE = Camera(
    name="door",
    source="rtsp://10.0.0.7/stream1",
    user="me",
    password_file="/etc/jetsel/door.password",
    family="imagenet",
    policy="cascade",
    model="xl",
    deadline_ms=100,
    wrong_at_most=0.05,
    save="/var/lib/jetsel-watch/doubts",
)
_BROKER = MqttSettings("homeassistant.local:1883", "jetsel", "/etc/jetsel/mqtt.password")
SECTIONS = Sections(
    CameraSections,
    default_examples(CameraSections(_BROKER, [_EXAMPLE]))
    | {"cameras.regions": 'regions = { left = "0,0,0.5,1", right = "0.5,0,0.5,1" }'},
    {"cameras.picture": "no page shows what a camera sees: remove the line"},
)
