"""What the daemon serves, by the names that the Open Inference Protocol asks with: a family, or one model of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from jetsel.base.errors import UnknownModelError, did_you_mean
from jetsel.client import AsyncClient
from jetsel.wire import StatusReply
from jetsel.wire.status import FamilyStatus, ModelStatus

FRESH_S = 1.0  # how long what the daemon served is believed


@dataclass(frozen=True)
class ServedName:
    """What a name stands for; model: None for the whole family, whose policies choose."""

    name: str
    family: FamilyStatus
    model: ModelStatus | None

    @property
    def versions(self) -> list[str]:
        """Of a model, its own; a family changes with its models and calibration, and has none."""
        return [] if self.model is None else [self.model.version]

    @property
    def is_ready(self) -> bool:
        """Whether it can answer now."""
        models = self.family.models if self.model is None else [self.model]
        return any(model.serves for model in models)


class Catalogue:
    """The names, read from the daemon's status when they are asked for and old. max_image_mb: what it takes at most."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._served: dict[str, ServedName] = {}
        self.max_image_mb = client.max_image_mb
        self._read_s: float | None = None

    async def all(self) -> dict[str, ServedName]:
        """Return what is served by name. Raises as AsyncClient.status does."""
        if self._read_s is None or time.monotonic() - self._read_s > FRESH_S:
            status = await self._client.status()
            self._served, self._read_s = names(status), time.monotonic()
            self.max_image_mb = status.max_image_mb or self.max_image_mb
        return self._served

    async def find(self, name: str, version: str | None = None) -> ServedName:
        """Return what a name stands for; raises UnknownModelError with those that there are."""
        served = (await self.all()).get(name)
        if served is None:
            raise UnknownModelError(f"no model {name!r}{did_you_mean(name, self._served)}: {', '.join(self._served)}")
        if version is not None and version not in served.versions:
            known = f"its version is {served.versions[0]}" if served.versions else "a family has none"
            raise UnknownModelError(f"{name} has no version {version!r}, {known}: leave /versions/{version} out")
        return served


def names(status: StatusReply) -> dict[str, ServedName]:
    """Each family by its name, and each of its models as FAMILY.MODEL."""
    found: dict[str, ServedName] = {}
    for family in status.families:
        found[family.name] = ServedName(family.name, family, None)
        for model in family.models:
            name = f"{family.name}.{model.name}"
            found[name] = ServedName(name, family, model)
    return found
