"""Sends images to the daemon: none that is larger than it takes, and large ones on a connection of their own."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from jetsel.base.errors import BadImageError, ImageTooLargeError, JetselError
from jetsel.client import AsyncClient
from jetsel.gateway.catalogue import Catalogue
from jetsel.gateway.page import Thumbnails
from jetsel.wire import Answer

LARGE_BYTES = 65_536
"""The daemon answers an image that exceeds its limit by less than this; a larger one costs the connection and every
request on it (docs/protocol.md)."""


class AnswerOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request may say of how it is answered: fields of the daemon's own request."""

    policy: str | None = None
    deadline_ms: float | None = None
    top_k: int = 5
    criterion: Literal["top1", "top5"] = "top1"
    on_doubt: Literal["use", "refuse"] | None = None
    on_device: bool = False
    least_accuracy: float | None = None
    most_energy_mj: float | None = None
    wrong_at_most: float | None = None


class Sender:
    """client: for small images. Large ones have a second connection, so that nobody waits behind them."""

    def __init__(self, client: AsyncClient, catalogue: Catalogue, thumbnails: Thumbnails) -> None:
        self._client = client
        self._for_large = AsyncClient(client.endpoint, timeout_ms=client.timeout_ms)
        self._catalogue = catalogue
        self._thumbnails = thumbnails

    async def classify(self, image: Any, **options: Any) -> Answer:
        """Return the answer for bytes or pixels. Raises as `_client_for` and AsyncClient.classify do."""
        client = await self._client_for(image)
        answer: Answer = await client.classify(image, **options)
        await self._thumbnails.keep(answer.id, image)
        return answer

    async def classify_boxes(
        self, image: Any, boxes: list[list[float]], unit: Literal["pixels", "shares"], **options: Any
    ) -> list[Answer | JetselError]:
        """Return each box's answer or error; raises as `classify` does."""
        client = await self._client_for(image)
        return await client.classify(image, boxes=boxes, boxes_unit=unit, **options)

    async def _client_for(self, image: Any) -> AsyncClient:
        """Return the connection that an image of this size is sent on; raises ImageTooLargeError, or BadImageError."""
        size = memoryview(image).nbytes
        if not size:
            raise BadImageError("the image has no bytes: send a whole JPEG, PNG or WebP file")
        if size < LARGE_BYTES:
            return self._client
        client = self._for_large
        await self._catalogue.all()
        client.max_image_mb = self._catalogue.max_image_mb
        if size > client.max_image_mb * 1e6:
            raise ImageTooLargeError(
                f"the image has {size / 1e6:.1f} MB, and the daemon takes {client.max_image_mb:g} MB: "
                "send a smaller one, or raise [server] max_image_mb"
            )
        return client

    def close(self) -> None:
        """Close the connection for large images; the other is the caller's."""
        self._for_large.close()
