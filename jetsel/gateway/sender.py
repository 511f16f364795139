"""The gateway's connections to the daemon: to read the names of its models, and to send images."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from jetsel.base.errors import (
    BadImageError,
    BadRequestError,
    ImageTooLargeError,
    JetselError,
    UnknownModelError,
    did_you_mean,
)
from jetsel.client import AsyncClient
from jetsel.gateway.page import Thumbnails
from jetsel.wire import Answer, StatusReply
from jetsel.wire.status import FamilyStatus, ModelStatus

FRESH_S = 1.0  # time for which the list of names is used before it is read again


@dataclass(frozen=True)
class ServedName:
    """What a name in a request stands for: a model, or with model None a family, whose policy chooses models."""

    name: str
    family: FamilyStatus
    model: ModelStatus | None

    @property
    def versions(self) -> list[str]:
        """A model's version; empty for a family, which changes with its models and calibration."""
        return [] if self.model is None else [self.model.version]

    @property
    def is_ready(self) -> bool:
        """Whether a request with this name can be answered now."""
        models = self.family.models if self.model is None else [self.model]
        return any(model.serves for model in models)


class Catalogue:
    """The names that requests may use, and the largest image; read from the daemon's status, and kept for FRESH_S."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._served: dict[str, ServedName] = {}
        self.max_image_mb = client.max_image_mb
        self._read_s: float | None = None  # time of the last status; None before the first

    async def served_names(self) -> dict[str, ServedName]:
        """Return each served family and model by its name. Raises as AsyncClient.status does."""
        if self._read_s is None or time.monotonic() - self._read_s > FRESH_S:
            status = await self._client.status()
            self._served, self._read_s = names_of(status), time.monotonic()
            self.max_image_mb = status.max_image_mb or self.max_image_mb
        return self._served

    async def find(self, name: str, version: str | None = None) -> ServedName:
        """Return what a name in a request stands for; raises UnknownModelError with the existing names or versions."""
        served = (await self.served_names()).get(name)
        if served is None:
            raise UnknownModelError(f"no model {name!r}{did_you_mean(name, self._served)}: {', '.join(self._served)}")
        if version is not None and version not in served.versions:
            versions = f"its version is {served.versions[0]}" if served.versions else "a family has none"
            raise UnknownModelError(f"{name} has no version {version!r}, {versions}: leave /versions/{version} out")
        return served


def names_of(status: StatusReply) -> dict[str, ServedName]:
    """Return each family by its name, and each of its models as FAMILY.MODEL."""
    served_names: dict[str, ServedName] = {}
    for family in status.families:
        served_names[family.name] = ServedName(family.name, family, None)
        for model in family.models:
            name = f"{family.name}.{model.name}"
            served_names[name] = ServedName(name, family, model)
    return served_names


LARGE_BYTES = 65_536
"""The daemon answers with an error if an image exceeds its limit by less than this; a larger one costs the connection
and every request on it (docs/protocol.md)."""


class AnswerOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a request, with the names and defaults of AsyncClient.classify; None: the daemon's default.

    boxes: X,Y,W,H;X,Y,W,H and so on, because queries and the Open Inference Protocol's parameters hold no lists.
    """

    policy: str | None = None
    deadline_ms: float | None = None
    top_k: int = 5
    on_doubt: Literal["use", "refuse"] | None = None
    on_device: bool = False
    least_accuracy: float | None = None
    most_energy_mj: float | None = None
    wrong_at_most: float | None = None
    boxes: str | None = None
    boxes_unit: Literal["pixels", "shares"] | None = None


class Sender:
    """Sends images to the daemon: small ones by `client`, large ones on a second connection, which one may break."""

    def __init__(self, client: AsyncClient, catalogue: Catalogue, thumbnails: Thumbnails) -> None:
        self._client = client
        self._large_image_client = AsyncClient(client.endpoint, timeout_ms=client.timeout_ms)
        self._catalogue = catalogue
        self._thumbnails = thumbnails

    async def classify(self, image: Any, options: AnswerOptions, **names: Any) -> list[Answer | JetselError]:
        """Return a list of the image's answer, or of each box's answer or error. image: a file's bytes, or BGR pixels.

        names: family, model and explain, if given. Raises BadRequestError, BadImageError, ImageTooLargeError, and what
        AsyncClient.classify raises.
        """
        values = ((name, getattr(options, name)) for name in AnswerOptions.__struct_fields__)
        all_options = names | {name: value for name, value in values if value is not None}
        if options.boxes is not None:
            all_options["boxes"] = _read_boxes(options.boxes)
        elif options.boxes_unit is not None:
            raise BadRequestError("boxes_unit is given without boxes: add boxes, or leave it out")
        client = await self._client_for(image)
        answers: Answer | list[Answer | JetselError] = await client.classify(image, **all_options)
        if isinstance(answers, list):
            return answers
        await self._thumbnails.add(answers.id, image)
        return [answers]

    async def _client_for(self, image: Any) -> AsyncClient:
        """Return the connection for an image of this size; raises ImageTooLargeError, BadImageError if it is empty."""
        size = memoryview(image).nbytes
        if not size:
            raise BadImageError("the image has no bytes: send a whole JPEG, PNG or WebP file")
        if size < LARGE_BYTES:
            return self._client
        client = self._large_image_client
        await self._catalogue.served_names()
        client.max_image_mb = self._catalogue.max_image_mb
        if size > client.max_image_mb * 1e6:
            raise ImageTooLargeError(
                f"the image has {size / 1e6:.1f} MB, and the daemon takes {client.max_image_mb:g} MB: "
                "send a smaller one, or raise [server] max_image_mb"
            )
        return client

    def close(self) -> None:
        """Close the connection for large images; the caller closes the other."""
        self._large_image_client.close()


def _read_boxes(text: str) -> list[list[float]]:
    """Return each box's numbers from X,Y,W,H;X,Y,W,H; raises BadRequestError. The daemon checks their number."""
    try:
        return [[float(number) for number in box.split(",")] for box in text.split(";")]
    except ValueError:
        raise BadRequestError(
            f'boxes "{text[:80]}": write X,Y,W,H for each box and ; between two: 10,20,100,80;200,40,64,64'
        ) from None
