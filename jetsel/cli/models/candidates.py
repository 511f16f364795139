"""Find the models that run as TensorRT engines, and make the builder's orders for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError, UnknownFamilyError, UnknownModelError
from jetsel.base.weights import Weights
from jetsel.engines.building.builder import EngineOrder
from jetsel.engines.building.trial import Array, Photographs
from jetsel.image import InputSpec, Photograph, model_input
from jetsel.site.configured import served_models
from jetsel.zoo import Family, Model, model_folders, scan, verify

BACKEND = "tensorrt"  # the backend whose models are built

_QDQ = b"\x22\x10DequantizeLinear"  # in an ONNX file with 8-bit weights: op_type, field 4 of NodeProto, 16 bytes


@dataclass(frozen=True)
class Candidate:
    """A model for which an engine may be built, and its family."""

    family: Family
    model: Model

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.manifest.name

    @property
    def weights(self) -> Weights:
        """The weights from which the engine is built: those of the backbone, without a trained head."""
        return self.model.weights(len(self.family.labels.names)).backbone


def runs_on_tensorrt(model: Model, config: Config) -> bool:
    """Whether the daemon runs a model on TensorRT by this configuration."""
    return config.models.backends.get(model.manifest.name, config.models.backend) == BACKEND


def requested_candidates(config: Config, names: Collection[str], family: str | None) -> list[Candidate]:
    """Return the models with these names, or all that run on TensorRT if `names` is empty. family: None for all.

    Raises UnknownFamilyError, UnknownModelError, or ConfigError if there is nothing to build.
    """
    zoo = scan(model_folders(config.models))
    if family is not None and family not in zoo.families:
        raise UnknownFamilyError(f"there is no family {family}: see jetsel models list")
    families = [one for one in zoo.families.values() if family in (None, one.name)]
    installed = [Candidate(one, model) for one in families for model in one.models]
    if unknown := sorted(set(names) - {candidate.name for candidate in installed}):
        raise UnknownModelError(f"there is no model {', '.join(unknown)}: see jetsel models list")
    if names:
        return [candidate for candidate in installed if candidate.name in names]
    served = [candidate for candidate in installed if candidate.name in served_models(candidate.family, config)]
    candidates = [candidate for candidate in served if runs_on_tensorrt(candidate.model, config)]
    if not candidates:
        raise ConfigError(
            'models.backend: no model runs on tensorrt here: name those to build, or write backend = "tensorrt" under '
            "[models] in jetsel.toml"
        )
    return candidates


def engine_order(candidate: Candidate, photographs: Photographs[Photograph]) -> EngineOrder:
    """Return the order to build an engine, and to compare it on these images.

    Raises ManifestError if the weights do not match the manifest.
    """
    content = verify(candidate.model)
    return EngineOrder(candidate.weights, _QDQ in content, _ModelInputs(photographs, candidate.model.manifest.input))


class _ModelInputs:
    """Images as inputs of one model, each preprocessed when it is read. spec: the model's input."""

    def __init__(self, photographs: Photographs[Photograph], spec: InputSpec) -> None:
        self.source = photographs.source
        self._photographs = photographs
        self._spec = spec

    def __len__(self) -> int:
        return len(self._photographs)

    def __iter__(self) -> Iterator[Array]:
        return (model_input(photograph, self._spec) for photograph in self._photographs)
