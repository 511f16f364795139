"""The section [fleet] of jetsel.toml, for `jetsel agent`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from jetsel.base.sections import Sections, default_examples


class Fleet(Struct, frozen=True, forbid_unknown_fields=True):
    """The repository that `jetsel agent` takes models from, and what they may use of this device.

    url: Folder or http(s) address of the repository (default: none).
    upload: Folder or http(s) address that usage is sent to (default: url).
    device: Name of this device (default: the host's name).
    keys: Files of the public keys that may sign.
    token_file: File whose content is sent as the bearer token (default: none is sent).
    storage_mb: Megabytes of disk for models.
    reserve_mb: Megabytes of disk that every download leaves free.
    memory_mb: Megabytes of memory that the daemon may hold (default: all there is).
    deadline_ms: Milliseconds after which plans count an answer as wrong (default: no deadline).
    canary: Folder of labelled images that a plan is tried on, FAMILY/CLASS/... (default: none).
    spool_mb: Megabytes of usage that wait to be sent; the oldest are dropped first.
    """

    url: str | None = None
    upload: str | None = None
    device: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.-]*\Z", max_length=64)] | None = None
    keys: list[Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")]] = []
    token_file: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    storage_mb: Annotated[float, Meta(gt=0, le=1_048_576)] = 1000.0
    reserve_mb: Annotated[float, Meta(ge=0, le=1_048_576)] = 200.0
    memory_mb: Annotated[float, Meta(gt=0, le=1_048_576)] | None = None
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    canary: Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z")] | None = None
    spool_mb: Annotated[float, Meta(gt=0, le=1024)] = 4.0


class FleetSections(Struct, frozen=True, forbid_unknown_fields=True):
    """The sections of jetsel.toml that the fleet reads."""

    fleet: Fleet = Fleet()


SECTIONS = Sections(
    FleetSections,
    default_examples(FleetSections())
    | {
        "fleet.url": 'url = "https://models.example/fleet"',
        "fleet.upload": 'upload = "https://models.example/fleet"',
        "fleet.device": 'device = "line-3"',
        "fleet.keys": 'keys = ["/etc/jetsel/fleet.key.pub"]',
        "fleet.token_file": 'token_file = "/etc/jetsel/fleet.token"',
        "fleet.memory_mb": "memory_mb = 512",
        "fleet.deadline_ms": "deadline_ms = 50",
        "fleet.canary": 'canary = "/var/lib/jetsel/canary"',
    },
)
