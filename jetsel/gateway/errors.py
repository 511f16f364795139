"""Errors over HTTP: a status for each of the daemon's codes, and a body with the repair."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jetsel.base.errors import JetselError

CODES = {
    400: ("bad-request", "bad-image", "unsupported-version"),
    401: ("not-allowed",),
    404: ("unknown-model", "unknown-family", "unknown-policy"),
    413: ("image-too-large",),
    422: ("in-doubt", "unmet-requirements"),
    429: ("over-limit", "busy"),
    500: ("internal",),
    503: ("loading", "shutting-down", "no-daemon", "model-unavailable", "engine-died"),
    504: ("no-reply", "deadline"),
}
"""The daemon's codes by HTTP status; all other codes get 500."""
_STATUS = {code: status for status, codes in CODES.items() for code in codes}


def error_body(error: JetselError) -> dict[str, Any]:
    """Return an error as a JSON object: `error` for the Open Inference Protocol; `code` and `retry` of the daemon."""
    return {"error": str(error), "code": error.code, "retry": error.retry}


async def error_response(_: Request, error: Exception) -> Response:
    """Return the reply to a request that a JetselError ended; starlette calls this handler."""
    assert isinstance(error, JetselError)
    return JSONResponse(error_body(error), _STATUS.get(error.code, 500), {"Retry-After": "1"} if error.retry else None)
