"""`/openapi.json`: every path in OpenAPI 3.1."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from jetsel import __version__
from jetsel.gateway.classify import RAW, Query
from jetsel.gateway.errors import CODES
from jetsel.gateway.inference import MODEL_PATHS
from jetsel.gateway.tensors import Inference
from jetsel.wire import Answer

REFS = "#/components/schemas/{name}"


async def openapi_document(_request: Request) -> Response:
    """Return the reply to a request for /openapi.json: the OpenAPI document of every path."""
    (answer, inference, _), components = msgspec.json.schema_components([Answer, Inference, Query], ref_template=REFS)
    parameters = components.pop("Query")["properties"]
    fields = {
        "error": {"type": "string", "description": "what is wrong, and how to repair it"},
        "code": {"type": "string", "description": "stable; docs/protocol.md lists them"},
        "retry": {"type": "boolean", "description": "whether the same request may succeed later"},
    }
    components["Error"] = {"type": "object", "required": list(fields), "properties": fields}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "jetsel gateway", "version": __version__},
        "components": {"schemas": components},
        "paths": {
            "/classify": {"post": _classify(parameters, answer)},
            "/metrics": {"get": _get("What the daemon counts, for Prometheus", "text/plain")},
            "/v2": {"get": _get("The server, by the Open Inference Protocol")},
            "/v2/health/live": {"get": _get("Whether the gateway runs")},
            "/v2/health/ready": {"get": _get("Whether the daemon answers and is ready")},
            "/v2/models": {"get": _get("The names that requests may use")},
            **_model_paths(inference),
        },
    }
    return JSONResponse(document)


def _classify(parameters: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the description of POST /classify. parameters, answer: schemas of its options and of its reply."""
    fields = {"image": {"type": "string", "format": "binary"}} | parameters
    file = {"type": "object", "required": ["image"], "properties": fields}
    content: dict[str, Any] = {kind: {"schema": {}} for kind in RAW}
    return {
        "summary": "What an image shows",
        "parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in parameters.items()],
        "requestBody": {"required": True, "content": content | {"multipart/form-data": {"schema": file}}},
        "responses": {
            "200": _content("The answer; with boxes, one for each in `answers`", "application/json", answer),
            **_errors(),
        },
    }


def _model_paths(inference: dict[str, Any]) -> dict[str, Any]:
    """Return the descriptions of the paths of one model. inference: schema of an inference request."""
    schemas = {}
    for path in MODEL_PATHS:
        names = re.findall(r"{(\w+)}", path)
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
        infer = {
            "summary": "Inference; supports the binary extension",
            "requestBody": {"required": True, "content": {"application/json": {"schema": inference}}},
            "responses": {"200": _content("Outputs and parameters"), **_errors()},
        }
        schemas[path] = {"parameters": parameters, "get": _get("Inputs and outputs")}
        schemas[f"{path}/ready"] = {"parameters": parameters, "get": _get("Whether the model can answer")}
        schemas[f"{path}/infer"] = {"parameters": parameters, "post": infer}
    return schemas


def _get(summary: str, content_type: str = "application/json") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _content(summary, content_type), **_errors()}}


def _content(text: str, content_type: str = "application/json", schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": text, "content": {content_type: {"schema": schema or {}}}}


def _errors() -> dict[str, Any]:
    """Return a response for each status of an error, with its codes."""
    error = {"$ref": REFS.format(name="Error")}
    return {str(status): _content(", ".join(codes), "application/json", error) for status, codes in CODES.items()}
