"""Models of the edge server by the configuration: which of them answer for a family, and what each is sent."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from jetsel.base.config import Config, EdgeModel
from jetsel.base.errors import ConfigError, pip_install
from jetsel.base.files import read_bounded
from jetsel.edge.messages import Remote, Start
from jetsel.edge.model_runner import EdgeRunner, EdgeServers, tensor
from jetsel.edge.runner import Edge, Photograph
from jetsel.image import InputSpec, jpeg
from jetsel.policies.deadline import EDGE, REDUCED
from jetsel.zoo import Family, Labels

PROBE_PX = 128
MOST_LABELS_BYTES = 16 * 2**20


def open_edge(config: Config, family: Family) -> Edge | None:
    """Connect to the configured edge, in the background; None where there is none, or no photograph may go there.

    family: the one that it answers for. Raises ConfigError with the key that is wrong.
    """
    edge = config.edge
    if not edge.urls or edge.allow == "never":
        return None
    if importlib.util.find_spec("aiohttp") is None:
        raise ConfigError(f"edge.url: asking an edge needs aiohttp: {pip_install('edge')}")
    if not edge.models:
        raise ConfigError(
            'edge.models: name at least one model of the edge server, as in [edge.models.xl] then remote = "starter.xl"'
        )
    token = None if edge.token_file is None else _read(Path(edge.token_file), "edge.token_file").strip()
    return Edge(Start(edge.urls, token, remotes(config, family)))


def runners(config: Config, family: Family, edge: EdgeServers) -> dict[str, EdgeRunner]:
    """Return what runs each of the edge's models, by its name among the family: `edge:xl`, `edge:xl@224`.

    Raises ConfigError.
    """
    made = {}
    for name, remote in remotes(config, family).items():
        model = config.edge.models[name]
        made[EDGE + name] = EdgeRunner(edge, name, remote, _spec(name, model, family))
        if model.accuracy_at_px and model.input != "encoded":
            raise ConfigError(f"edge.models.{name}.accuracy_at_px: leave it out, a tensor has one size")
        for px in model.accuracy_at_px:
            made[f"{EDGE}{name}{REDUCED}{px}"] = EdgeRunner(edge, name, remote, None, int(px))
    return made


def remotes(config: Config, family: Family) -> dict[str, Remote]:
    """Return the edge's models by name, each with its labels mapped to the family's."""
    made, labels = {}, family.labels
    gray = Photograph(jpeg(np.full((PROBE_PX, PROBE_PX, 3), 128, np.uint8)))
    noise = np.random.default_rng(0).integers(0, 256, (PROBE_PX, PROBE_PX, 3), np.uint8)  # as large as a photograph
    probe_file = Photograph(jpeg(noise))
    for name, model in config.edge.models.items():
        spec = _spec(name, model, family)
        if spec is None:
            probe, small_probe = probe_file, gray
        else:
            probe = small_probe = tensor(np.zeros((1, 3, spec.height_px, spec.width_px), np.float32))
        made[name] = Remote(
            model.remote,
            model.input,
            model.output,
            model.input_name,
            model.output_name,
            list(labels.wnids),
            _places(name, model, labels),
            probe.payload,
            small_probe.payload,
            probe.shape,
        )
    return made


def _spec(name: str, model: EdgeModel, family: Family) -> InputSpec | None:
    """What the model is sent; None for the photograph as it is."""
    if model.input == "encoded":
        return None
    specs = {one.manifest.name: one.manifest.input for one in family.models}
    if (like := model.like or name) not in specs:
        raise ConfigError(f"edge.models.{name}.like: name the model here whose input it takes: {', '.join(specs)}")
    return specs[like]


def _places(name: str, model: EdgeModel, labels: Labels) -> list[int] | None:
    if model.labels is None:
        return None
    lines = _read(Path(model.labels), f"edge.models.{name}.labels").splitlines()
    known = {text: number for texts in (labels.names, labels.wnids) for number, text in enumerate(texts)}
    unknown = [line for line in lines if line.strip() not in known]
    if unknown or not lines:
        raise ConfigError(
            f"edge.models.{name}.labels: {len(unknown)} of {len(lines)} lines are no class of the family, "
            f"{unknown[:1]} the first: a name or an identifier a line, in the order of the model's output"
        )
    return [known[line.strip()] for line in lines]


def _read(path: Path, key: str) -> str:
    try:
        return read_bounded(path, MOST_LABELS_BYTES).decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{key}: {path} cannot be read ({why}): correct the path, or leave {key} out") from None
