"""A Ray Serve application: a family's models behind the Open Inference Protocol, with as many replicas as each needs.

`serve run serve_family:application family=imagenet` on a cluster, or local_cluster.py beside it on one machine. Every
machine has jetsel and the models, and its own jetsel.toml says what runs them there.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError
from ray.serve.handle import DeploymentHandle
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from jetsel import __version__
from jetsel.base.errors import BadRequestError, BusyError, DeadlineError, JetselError, UnknownModelError, did_you_mean
from jetsel.engines import Backends, EngineFailedError, warm_up
from jetsel.gateway import tensors
from jetsel.gateway.errors import error_response
from jetsel.gateway.inference import json_bytes_of, reply
from jetsel.gateway.limits import RequestLimits
from jetsel.gateway.settings import GatewaySettings, read_token
from jetsel.image import decode, model_input
from jetsel.runtime.model_queue import predict
from jetsel.site.calibration_in_use import choose_calibration
from jetsel.site.site import Site, read_site
from jetsel.zoo import Family, verify

MOST_BATCH = 8  # what is pending goes out together, up to here; nothing waits for more
MOST_QUEUED = 128  # of one model; past it requests are refused, since a device has an answer of its own
MOST_REPLICAS = 4
READY_S = 1.0
AUTOSCALING = {
    "min_replicas": 1,
    "target_ongoing_requests": MOST_BATCH / 2,
    "upscale_delay_s": 2.0,
    "look_back_period_s": 12.0,
    "downscale_delay_s": 120.0,
}


def application(arguments: dict[str, str]) -> serve.Application:
    """Build the application. arguments: family, models (names with commas), replicas (at most, of each), token_file."""
    _, family = _family_here(arguments.get("family"))
    names = [model.manifest.name for model in family.models]
    wanted = arguments["models"].split(",") if "models" in arguments else names
    for name in wanted:
        if name not in names:
            raise UnknownModelError(f"{family.name} has no model {name}{did_you_mean(name, names)}")
    scaling = AUTOSCALING | {"max_replicas": int(arguments.get("replicas", MOST_REPLICAS))}
    model = serve.deployment(ModelReplica)
    models = {
        f"{family.name}.{name}": model.options(
            name=f"{family.name}.{name}",
            autoscaling_config=scaling,
            max_ongoing_requests=2 * MOST_BATCH,
            max_queued_requests=MOST_QUEUED,
        ).bind(family.name, name)
        for name in wanted
    }
    token = read_token(Path(arguments["token_file"])) if "token_file" in arguments else None
    ingress = serve.deployment(serve.ingress()(Ingress))
    return ingress.options(
        name="ingress", autoscaling_config=scaling | {"target_ongoing_requests": 32}, max_ongoing_requests=256
    ).bind(family.name, models, token)


def _family_here(name: str | None) -> tuple[Site, Family]:
    """Return what this machine's configuration serves, and the family as it is here."""
    site = read_site(None)
    return site, site.family(name)


class ModelReplica:
    """One copy of one model, which takes what is pending as one batch."""

    def __init__(self, family: str, name: str) -> None:
        site, found = _family_here(family)
        config = site.config
        (self._model,) = (model for model in found.models if model.manifest.name == name)
        verify(self._model)
        weights = self._model.weights(len(found.labels.names))
        backend = config.models.backends.get(name, config.models.backend)
        backends = Backends(config.host)
        self._engine = backends.open(backend, weights, concurrency=1, threads=config.models.threads)
        warm_up(self._engine, weights)
        self._limits, self._decode_px = site.limits, found.decode_px
        self._id = serve.get_replica_context().replica_id.unique_id
        self._run.set_max_batch_size(min(MOST_BATCH, self._engine.max_batch or MOST_BATCH))

    async def is_ready(self) -> bool:
        """Say that it has loaded."""
        return True

    async def infer(self, photograph: bytes | NDArray[np.float32]) -> tuple[NDArray[np.float32], int, str]:
        """Return logits (classes,), the size of the batch, and which replica this is.

        photograph: a file, or (1, 3, height, width). Raises BadImageError and EngineFailedError.
        """
        if isinstance(photograph, bytes):
            photograph = await asyncio.to_thread(self._input, photograph)
        return await self._run(photograph)

    def _input(self, data: bytes) -> NDArray[np.float32]:
        return model_input(decode(data, self._limits, self._decode_px), self._model.manifest.input)

    @serve.batch(max_batch_size=MOST_BATCH, batch_wait_timeout_s=0.0)
    async def _run(self, inputs: list[NDArray[np.float32]]) -> list[tuple[NDArray[np.float32], int, str]]:
        logits = (await asyncio.to_thread(self._engine.infer, *inputs)).logits
        return [(row, len(inputs), self._id) for row in logits]


class Ingress:
    """The protocol: reads requests, hands each photograph to a replica of its model, and writes the replies."""

    def __init__(self, family: str, models: dict[str, DeploymentHandle], token: str | None) -> None:
        site, self._family = _family_here(family)
        config = site.config
        self._models, self._token, self._body_mb = models, token, config.server.max_image_mb * MOST_BATCH
        served = {model.manifest.name: model for model in self._family.models}
        calibration = choose_calibration(self._family, served, config, None).calibration
        self._temperatures = {} if calibration is None else calibration.temperatures

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """What Ray Serve serves."""
        one = "/v2/models/{name}"
        routes = [
            Route("/v2", self._about),
            Route("/v2/health/live", self._live),
            Route("/v2/health/ready", self._ready),
            Route(one, self._metadata),
            Route(f"{one}/ready", self._ready),
            Route(f"{one}/infer", self._infer, methods=["POST"]),
        ]
        app = Starlette(routes=routes, exception_handlers={JetselError: error_response})
        return RequestLimits(app, GatewaySettings(token=self._token, max_body_mb=self._body_mb, behind_proxy=True))

    async def _about(self, _: Request) -> Response:
        about = {"name": "jetsel on Ray Serve", "version": __version__, "extensions": ["binary_tensor_data"]}
        return JSONResponse(about | {"models": list(self._models)})

    async def _live(self, _: Request) -> Response:
        return JSONResponse({"live": True})

    async def _ready(self, request: Request) -> Response:
        """Whether the model, or every one, has a replica that answers."""
        wanted = [self._handle(request)] if request.path_params else list(self._models.values())
        try:
            await asyncio.wait_for(asyncio.gather(*(one.is_ready.remote() for one in wanted)), READY_S)
        except (asyncio.TimeoutError, RayError):
            return JSONResponse({"ready": False}, 503)
        return JSONResponse({"ready": True})

    def _handle(self, request: Request) -> DeploymentHandle:
        name = request.path_params["name"]
        if name not in self._models:
            raise UnknownModelError(f"there is no model {name}{did_you_mean(name, self._models)}")
        return self._models[name]

    async def _metadata(self, request: Request) -> Response:
        self._handle(request)
        told, classes = tensors.metadata(), len(self._family.labels.names)
        told["inputs"].append({"name": "tensor", "datatype": "FP32", "shape": self._shape(request)})
        told["outputs"].append({"name": "logits", "datatype": "FP32", "shape": [-1, classes]})
        return JSONResponse({"name": request.path_params["name"], "platform": "jetsel"} | told)

    def _shape(self, request: Request) -> list[int]:
        name = request.path_params["name"].removeprefix(f"{self._family.name}.")
        (spec,) = (model.manifest.input for model in self._family.models if model.manifest.name == name)
        return [-1, 3, spec.height_px, spec.width_px]

    async def _infer(self, request: Request) -> Response:
        began, handle, name = time.perf_counter(), self._handle(request), request.path_params["name"]
        asked, binary = tensors.parse(await request.body(), json_bytes_of(request))
        photographs = self._photographs(asked.inputs[0], binary, self._shape(request))
        limit_s = None if asked.parameters.deadline_ms is None else asked.parameters.deadline_ms / 1e3
        try:
            answers = await asyncio.wait_for(
                asyncio.gather(*(handle.infer.remote(one) for one in photographs)), limit_s
            )
        except RayTaskError as failed:  # what a replica raised
            raise (failed.cause if isinstance(failed.cause, JetselError) else EngineFailedError(str(failed))) from None
        except BackPressureError:
            raise BusyError(f"{MOST_QUEUED} requests wait for {name}: ask later, or allow more replicas") from None
        except asyncio.TimeoutError:
            raise DeadlineError(f"{name} did not answer within deadline_ms: {asked.parameters.deadline_ms:g}") from None
        columns = self._columns(name, np.stack([logits for logits, _, _ in answers]), asked.parameters.top_k)
        told = {
            "batch": max(size for _, size, _ in answers),
            "replica": answers[0][2],
            "total_ms": (time.perf_counter() - began) * 1e3,
        }
        return reply(*tensors.encode_outputs(name, None, asked, columns, told))

    def _photographs(
        self, tensor: tensors.Tensor, binary: memoryview | None, shape: list[int]
    ) -> list[bytes] | list[NDArray[np.float32]]:
        if tensor.datatype == "BYTES":
            found = [bytes(one) for one in tensors.elements(tensor, binary)]
        elif tensor.datatype == "FP32" and tensor.shape[1:] == shape[1:]:
            try:
                flat = np.array(tensor.data, np.float32) if binary is None else np.frombuffer(binary, "<f4")
                found = list(flat.reshape(-1, 1, *shape[1:]))
            except (ValueError, TypeError) as error:
                raise BadRequestError(f"data does not fill shape {tensor.shape}: {error}") from None
        else:
            raise BadRequestError(f"{tensor.datatype} {tensor.shape}: send BYTES, photographs, or FP32 {shape}")
        if len(found) != tensor.shape[0] or not 1 <= len(found) <= tensors.MOST_IMAGES:
            raise BadRequestError(f"{len(found)} photographs came: send 1 to {tensors.MOST_IMAGES}, as shape says")
        return found

    def _columns(self, name: str, logits: NDArray[np.float32], top_k: int) -> tensors.Columns:
        if not np.isfinite(logits).all():
            raise EngineFailedError(f"{name} returned numbers that are not finite")
        temperature = self._temperatures.get(name.removeprefix(f"{self._family.name}."), 1.0)
        rows = [predict(name, row, temperature) for row in logits]
        labels, n = self._family.labels, len(rows)
        top = [
            f"{row.probabilities[at]:.6f}:{labels.wnids[at]}:{labels.names[at]}"
            for row in rows
            for at in np.argsort(-row.probabilities)[:top_k]
        ]
        best = [labels.names[row.probabilities.argmax()] for row in rows]
        columns: dict[str, Any] = {
            "label": ("BYTES", [n], best),
            "probability": ("FP32", [n], [row.confidence for row in rows]),
            "top_k": ("BYTES", [n, len(top) // n], top),
            "logits": ("FP32", list(logits.shape), logits.ravel().tolist()),
        }
        return columns
