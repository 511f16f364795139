"""What an error is over HTTP: a status for each of the daemon's codes, and a body that says what helps."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jetsel.base.errors import JetselError

STATUS = {
    "bad-request": 400,
    "bad-image": 400,
    "unsupported-version": 400,
    "unknown-model": 404,
    "unknown-family": 404,
    "unknown-policy": 404,
    "image-too-large": 413,
    "in-doubt": 422,
    "unmet-requirements": 422,
    "over-limit": 429,
    "busy": 429,
    "loading": 503,
    "shutting-down": 503,
    "no-daemon": 503,
    "no-reply": 504,
    "deadline": 504,
    "model-unavailable": 503,
    "engine-died": 503,
}
"""By the daemon's code; any other is 500."""


def body_of(error: JetselError) -> dict[str, Any]:
    """What both forms share: `error` is what the Open Inference Protocol reads, `code` and `retry` the daemon's."""
    return {"error": str(error), "code": error.code, "retry": error.retry}


async def refused(_: Request, error: Exception) -> Response:
    """Answer a request with a JetselError."""
    assert isinstance(error, JetselError)
    return JSONResponse(body_of(error), STATUS.get(error.code, 500), {"Retry-After": "1"} if error.retry else None)
