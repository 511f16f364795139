"""The Open Inference Protocol's paths: metadata, readiness and inference."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jetsel import __version__
from jetsel.base.errors import BadRequestError, JetselError
from jetsel.client import AsyncClient
from jetsel.gateway import tensors
from jetsel.gateway.sender import Catalogue, Sender
from jetsel.wire import Answer

JSON_LENGTH_HEADER = "Inference-Header-Content-Length"
MODEL_PATHS = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
LARGE_BYTES = 1_000_000  # size of a body above which it is read in a thread, because that takes milliseconds


def reply(body: bytes, json_bytes: int | None) -> Response:
    """Return an HTTP reply with this body. json_bytes: length of its JSON if binary tensors follow, else None."""
    if json_bytes is None:
        return Response(body, media_type="application/json")
    return Response(body, headers={JSON_LENGTH_HEADER: str(json_bytes)}, media_type="application/octet-stream")


def json_bytes_of(request: Request) -> int | None:
    """Return the length of the JSON before binary tensors in a body, None if it is all JSON; raises BadRequestError."""
    length = request.headers.get(JSON_LENGTH_HEADER)
    if length is not None and not (length.isascii() and length.isdecimal() and len(length) < 12):
        raise BadRequestError(f"{JSON_LENGTH_HEADER}: {length[:12]}: it must be the number of bytes of the JSON")
    return None if length is None else int(length)


class InferenceApi:
    """Handlers of /v2 and of every path below it."""

    def __init__(self, client: AsyncClient, catalogue: Catalogue, sender: Sender) -> None:
        self._client = client
        self._catalogue = catalogue
        self._sender = sender

    def routes(self) -> list[Route]:
        """Return a route for each path; a model's paths exist with and without a version."""
        routes = [
            Route("/v2", self._server),
            Route("/v2/health/live", self._live),
            Route("/v2/health/ready", self._ready),
            Route("/v2/models", self._models),
        ]
        for path in MODEL_PATHS:
            routes += [
                Route(path, self._model),
                Route(f"{path}/ready", self._model_ready),
                Route(f"{path}/infer", self._infer, methods=["POST"]),
            ]
        return routes

    async def _server(self, _: Request) -> Response:
        return JSONResponse({"name": "jetsel", "version": __version__, "extensions": ["binary_tensor_data"]})

    async def _live(self, _: Request) -> Response:
        return JSONResponse({"live": True})

    async def _ready(self, _: Request) -> Response:
        try:
            state = (await self._client.status(timeout_ms=1000)).state
        except JetselError as error:
            state = str(error)  # so that the reply says why
        return JSONResponse({"ready": state == "ready", "state": state}, 200 if state == "ready" else 503)

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"models": list(await self._catalogue.served_names())})

    async def _model(self, request: Request) -> Response:
        served = await self._catalogue.find(**request.path_params)
        fields = {"name": served.name, "versions": served.versions, "platform": "jetsel"}
        return JSONResponse({key: value for key, value in fields.items() if value} | tensors.metadata())

    async def _model_ready(self, request: Request) -> Response:
        served = await self._catalogue.find(**request.path_params)
        return JSONResponse({"name": served.name, "ready": served.is_ready}, 200 if served.is_ready else 503)

    async def _infer(self, request: Request) -> Response:
        """Answer a POST to .../infer: classify each image of the request, and return the outputs as tensors."""
        body, json_bytes = await request.body(), json_bytes_of(request)
        if len(body) > LARGE_BYTES:
            infer_request, images = await asyncio.to_thread(tensors.read, body, json_bytes)
        else:
            infer_request, images = tensors.read(body, json_bytes)
        if request.query_params:
            raise BadRequestError("query parameters are not supported: put options into `parameters` of the request")
        if infer_request.model_name not in (None, request.path_params["name"]):
            raise BadRequestError(
                f"model_name is {infer_request.model_name[:80]!r}, and the address names another: leave it out"
            )
        served = await self._catalogue.find(**request.path_params)
        if served.model is not None and infer_request.parameters.policy is not None:
            words = f"{served.name} is a single model and takes no policy: send the request to {served.family.name}"
            raise BadRequestError(words)
        model, version = (None, None) if served.model is None else (served.model.name, served.model.version)
        answers = await self._classify_all(infer_request.parameters, served.family.name, model, images)
        return reply(*tensors.encode_reply(served.name, version, infer_request, answers))

    async def _classify_all(
        self, options: tensors.InferenceParameters, family: str, model: str | None, images: list[tensors.Image]
    ) -> Sequence[Answer | JetselError]:
        """Return each image's answer, or each box's answer or error. The first image that fails cancels the others."""
        if options.boxes is not None and len(images) != 1:
            raise BadRequestError(f"boxes are of one image, and {len(images)} were sent: send one with its boxes")
        calls = [self._sender.classify(image, options, family=family, model=model) for image in images]
        if len(calls) == 1:
            return await calls[0]
        pending = [asyncio.ensure_future(call) for call in calls]
        try:
            return [answer for (answer,) in await asyncio.gather(*pending)]
        finally:
            for task in pending:
                task.cancel()
