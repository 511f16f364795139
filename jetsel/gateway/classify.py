"""`POST /classify`, for people and their scripts: a photograph in a form or as the body, and the answer as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from jetsel.base.errors import BadRequestError
from jetsel.gateway.boxes import BoxOptions, read_boxes, told
from jetsel.gateway.sender import Sender
from jetsel.wire import encode

IMAGES = ("image/jpeg", "image/png", "image/webp", "application/octet-stream")


class Query(BoxOptions, frozen=True):
    """What the query may say."""

    family: str | None = None
    model: str | None = None
    explain: bool = False


class ClassifyApi:
    """POST /classify."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        try:
            query = msgspec.convert(dict(request.query_params), Query, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequestError(f"the query: {error}") from None
        image = await _image(request)
        options = msgspec.structs.asdict(query)
        boxes, unit = options.pop("boxes"), options.pop("boxes_unit")
        if boxes is None:
            body = encode(await self._sender.classify(image, **options))
        else:
            outcomes = await self._sender.classify_boxes(image, read_boxes(boxes), unit, **options)
            body = msgspec.json.encode({"answers": [told(outcome) for outcome in outcomes]})
        return Response(body, media_type="application/json")


async def _image(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in IMAGES:
        return await request.body()
    if kind == "multipart/form-data":
        async with request.form(max_files=1, max_fields=8) as form:
            field: Any = form.get("image")
            if isinstance(field, UploadFile):
                return await field.read()
        raise BadRequestError("the form has no file called image: curl -F image=@cat.jpg")
    raise BadRequestError(
        f"content type {kind or 'missing'}: add the header Content-Type with the image's type ({', '.join(IMAGES)}), "
        "as in: curl -H 'Content-Type: image/jpeg' --data-binary @cat.jpg; or send a form: curl -F image=@cat.jpg"
    )
