"""`POST /classify`, for people and their scripts: takes an image in a form or as the body, and returns JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import msgspec
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jetsel.base.errors import BadImageError, BadRequestError, did_you_mean
from jetsel.gateway.errors import error_body
from jetsel.gateway.sender import AnswerOptions, Sender
from jetsel.wire import Answer

FROM_CURL = "application/x-www-form-urlencoded"  # which curl sends with -d and --data-binary
RAW = ("image/*", "application/octet-stream", "binary/octet-stream", FROM_CURL)  # types of a body that is the image
EXAMPLE = "curl -F image=@cat.jpg -F top_k=3"


class Query(AnswerOptions, frozen=True):
    """Options of a request, from the query or the form. family: None for the default one; model: None for any."""

    family: str | None = None
    model: str | None = None
    explain: bool = False


OPTIONS = Query.__struct_fields__


async def answer_classify(sender: Sender, request: Request) -> Response:
    """Answer a POST to /classify with the daemon's answer as JSON, or with each box's answer or error in `answers`."""
    image, fields = await _image_and_fields(request)
    query = _parse_query([*request.query_params.multi_items(), *fields])
    try:
        outcomes = await sender.classify(image, query, family=query.family, model=query.model, explain=query.explain)
    except BadImageError as error:
        if not request.headers.get("content-type", "").startswith(FROM_CURL):
            raise
        raise BadImageError(f"{error}; curl's -d changes a file: use --data-binary") from None
    rows = [outcome if isinstance(outcome, Answer) else error_body(outcome) for outcome in outcomes]
    body = msgspec.json.encode(rows[0] if query.boxes is None else {"answers": rows})
    return Response(body, media_type="application/json")


def unique_values(pairs: Iterable[tuple[str, str]], fields: Sequence[str]) -> dict[str, str]:
    """Return the values by name; raises BadRequestError for a name not in `fields`, an empty value, or two values."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in fields:
            meant = did_you_mean(name[:80], fields)
            raise BadRequestError(f"{name[:80]!r} is no option here{meant}: the options are {', '.join(fields)}")
        if not value:
            raise BadRequestError(f"{name} is empty: give a value, or leave it out")
        if values.setdefault(name, value) != value:
            raise BadRequestError(f"{name} is {values[name][:80]!r} and {value[:80]!r}: give it once")
    return values


def _parse_query(pairs: Iterable[tuple[str, str]]) -> Query:
    """Return the options from the pairs of name and value in the query and the form; raises BadRequestError."""
    try:
        return msgspec.convert(unique_values(pairs, OPTIONS), Query, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequestError(str(error).replace("`$.", "`")) from None


async def _image_and_fields(request: Request) -> tuple[bytes, list[tuple[str, str]]]:
    """Return the image's bytes, and name and value of a form's other fields; raises BadRequestError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _read_form(request)
    if not kind or kind.startswith("image/") or kind in RAW:
        return await request.body(), []
    raise BadRequestError(
        f"content type {kind[:80]}: send the image as it is, without a content type or with its own, as in: "
        f"curl -H 'Content-Type: image/jpeg' --data-binary @cat.jpg; or send a form: {EXAMPLE}"
    )


async def _read_form(request: Request) -> tuple[bytes, list[tuple[str, str]]]:
    """Return a form's only file, under any name, and name and value of its other fields; raises BadRequestError."""
    images: list[bytes] = []
    fields: list[tuple[str, str]] = []
    try:
        async with request.form(max_files=1, max_fields=2 * len(OPTIONS), max_part_size=sys.maxsize) as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    images.append(await value.read())
                elif "\0" in value:  # a part without a file name is read as text: Latin-1 if it is not UTF-8
                    images.append(value.encode("latin-1", "replace"))
                else:
                    fields.append((name, value))
    except HTTPException as error:
        what = "it has several files" if error.detail.startswith("Too many files") else error.detail.rstrip(".")
        raise BadRequestError(f"the form cannot be used: {what}: send one image: {EXAMPLE}") from None
    if len(images) != 1:
        raise BadRequestError(f"the form has {len(images) or 'no'} images: send one as a file, as in {EXAMPLE}")
    return images[0], fields
