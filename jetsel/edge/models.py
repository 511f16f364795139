"""Models of the edge server: those that the configuration adds to a family, and how the daemon runs each."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.base.config import Config, EdgeModel
from jetsel.base.errors import ConfigError, JetselError, pip_install
from jetsel.base.files import read_bounded, read_secret
from jetsel.edge.messages import AskResult, EdgeStart, Remote
from jetsel.edge.runner import EdgeClient, EdgePayload
from jetsel.image import InputSpec, jpeg, model_input, smaller_size
from jetsel.policies import Prediction
from jetsel.policies.deadline import EDGE, REDUCED
from jetsel.runtime import RequestRun
from jetsel.runtime.model_queue import RemoteForecast, ResultCallback, SentImage, predict
from jetsel.runtime.request_run import Request
from jetsel.zoo import Family, Labels

BYTES_PER_PIXEL = 0.4  # of the files from jetsel.image.jpeg: 0.2 to 0.6 for four in five images
OVERHEAD_BYTES = 300  # of a request, without the image


@dataclass(frozen=True)
class EdgeRunner:
    """Runs one model of the edge server for the driver, which runs requests (see jetsel.runtime, Runner).

    name: the model's local name. spec: specification of its input tensor, None if it takes encoded images. shorter_px:
    size of the shorter side to which encoded images are reduced, None to send them as they are.
    """

    edge: EdgeClient
    name: str
    remote: Remote
    spec: InputSpec | None
    shorter_px: int | None = None
    now: Callable[[], float] = time.monotonic  # the driver's clock

    @property
    def unavailable(self) -> str | None:
        """Return why the model cannot run now, None if it can."""
        return self.edge.unavailable(self.name)

    def submit(self, model: str, run: RequestRun, arrived: ResultCallback) -> Callable[[], None]:
        """Send the request's image to the edge server; return a function that cancels. arrived: gets the result."""

        def deliver(result: AskResult | JetselError) -> None:
            if isinstance(result, AskResult):
                arrived(self._prediction(model, result), result.sent_bytes, result.received_bytes)
            else:
                arrived(result, None, None)

        left_ms = None if (deadline_s := run.request.deadline_s) is None else (deadline_s - self.now()) * 1e3
        return partial(self.edge.cancel, self.edge.ask(self.name, self._payload(run.request), left_ms, deliver))

    def _payload(self, request: Request) -> EdgePayload:
        """Return the request's image in the form that the model takes."""
        assert request.photograph is not None
        if self.spec is not None:
            return tensor_payload(model_input(request.photograph, self.spec))
        if self.shorter_px is None and request.file is not None:
            return EdgePayload(bytes(request.file))
        return EdgePayload(jpeg(request.photograph.bgr, self.shorter_px))

    def forecast(self, sent: SentImage, now_s: float) -> RemoteForecast:
        """Return the expected times and traffic of a run for this image: a smaller file takes less network time."""
        server = self.edge.server(self.name)
        sent_bytes = self.bytes_for(*sent.size_px, sent.file_bytes) + OVERHEAD_BYTES
        received_bytes = server.answers_bytes.get(self.name)
        traffic_kb = None if received_bytes is None else (sent_bytes + received_bytes) / 1e3
        run_ms = server.times[self.name].mean_and_sd_ms(now_s)
        return RemoteForecast(run_ms, server.link.estimate(sent_bytes), traffic_kb)

    def bytes_for(self, width_px: int, height_px: int, file_bytes: int | None) -> int:
        """Return the expected number of bytes to send for an image. file_bytes: its size, None if it came as pixels."""
        if self.spec is not None:
            return len(self.remote.probe)
        if self.shorter_px is None and file_bytes is not None:
            return file_bytes
        if self.shorter_px is not None:
            width_px, height_px = smaller_size(width_px, height_px, self.shorter_px)
        return round(width_px * height_px * BYTES_PER_PIXEL)

    def _prediction(self, model: str, result: AskResult) -> Prediction:
        values = np.frombuffer(result.values or b"", "<f4").astype(np.float32)
        if self.remote.output == "logits":
            return predict(model, values, 1.0)
        return Prediction(model, values, float(values.max()))


def tensor_payload(numbers: NDArray[np.float32]) -> EdgePayload:
    """Return a model's input (1, 3, height, width) as bytes to send."""
    return EdgePayload(numbers.astype("<f4").tobytes(), list(numbers.shape))


PROBE_PX = 128
MOST_LABELS_BYTES = 16 * 2**20


def open_edge(config: Config, family: Family) -> EdgeClient | None:
    """Connect to the configured edge servers in the background; return None if the configuration uses none.

    family: the one family whose requests they answer. Raises ConfigError that names the wrong key.
    """
    edge = config.edge
    if not edge.urls or edge.allow == "never":
        return None
    if importlib.util.find_spec("aiohttp") is None:
        raise ConfigError(f"edge.url: the edge server needs aiohttp on this device: {pip_install('edge')}")
    if not edge.models:
        raise ConfigError(
            'edge.models: name at least one model of the edge server, as in [edge.models.xl] then remote = "starter.xl"'
        )
    token = None if edge.token_file is None else read_secret(Path(edge.token_file), "edge.token_file:").strip()
    return EdgeClient(EdgeStart(edge.urls, token, remote_models(config, family)))


def edge_runners(config: Config, family: Family, edge: EdgeClient) -> dict[str, EdgeRunner]:
    """Return a runner for each model and reduced image size, by names such as `edge:xl@224`. Raises ConfigError."""
    by_name = {}
    for name, remote in edge.models.items():
        model = config.edge.models[name]
        by_name[EDGE + name] = EdgeRunner(edge, name, remote, _input_spec(name, model, family))
        if model.accuracy_at_px and model.input != "encoded":
            raise ConfigError(f"edge.models.{name}.accuracy_at_px: leave it out, a tensor has one size")
        for px in model.accuracy_at_px:
            by_name[f"{EDGE}{name}{REDUCED}{px}"] = EdgeRunner(edge, name, remote, None, int(px))
    return by_name


def remote_models(config: Config, family: Family) -> dict[str, Remote]:
    """Return the configured models of the edge server by local name. Raises ConfigError that names the wrong key."""
    by_name, labels = {}, family.labels
    gray = EdgePayload(jpeg(np.full((PROBE_PX, PROBE_PX, 3), 128, np.uint8)))
    noise = np.random.default_rng(0).integers(0, 256, (PROBE_PX, PROBE_PX, 3), np.uint8)  # a large file
    probe_file = EdgePayload(jpeg(noise))
    for name, model in config.edge.models.items():
        spec = _input_spec(name, model, family)
        if spec is None:
            probe, small_probe = probe_file, gray
        else:
            probe = small_probe = tensor_payload(np.zeros((1, 3, spec.height_px, spec.width_px), np.float32))
        by_name[name] = Remote(
            model.remote,
            model.input,
            model.output,
            model.input_name,
            model.output_name,
            list(labels.wnids),
            _label_places(name, model, labels),
            probe.payload,
            small_probe.payload,
            probe.shape,
        )
    return by_name


def _input_spec(name: str, model: EdgeModel, family: Family) -> InputSpec | None:
    """Return the specification of the model's input; None if it takes the encoded image. Raises ConfigError."""
    if model.input == "encoded":
        return None
    specs = {local.manifest.name: local.manifest.input for local in family.models}
    if (like := model.like or name) not in specs:
        raise ConfigError(
            f"edge.models.{name}.like: set it to the local model that takes the same input: {', '.join(specs)}"
        )
    return specs[like]


def _label_places(name: str, model: EdgeModel, labels: Labels) -> list[int] | None:
    """Return the class index of each number in the output, None if no file maps them. Raises ConfigError."""
    if model.labels is None:
        return None
    key = f"edge.models.{name}.labels"
    try:
        lines = read_bounded(Path(model.labels), MOST_LABELS_BYTES).decode().splitlines()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{key}: {model.labels} cannot be read ({why}): correct the path, or leave it out") from None
    places = {text: number for texts in (labels.names, labels.wnids) for number, text in enumerate(texts)}
    unknown = [line for line in lines if line.strip() not in places]
    if unknown or not lines:
        raise ConfigError(
            f"{key}: {len(unknown)} of {len(lines)} lines are not classes of the family, the first "
            f"is {unknown[:1]}: write one name or identifier per line, in the order of the model's output"
        )
    return [places[line.strip()] for line in lines]
