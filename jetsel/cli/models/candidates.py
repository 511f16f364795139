"""Which models are to run as engines, and what of each is handed to the builder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError, UnknownFamilyError, UnknownModelError
from jetsel.base.weights import Weights
from jetsel.engines.building.builder import EngineOrder
from jetsel.engines.building.trial import Array, Photographs
from jetsel.image import InputSpec, Photograph, model_input
from jetsel.site.configured import served_models
from jetsel.zoo import Model, model_folders, scan, verify

BACKEND = "tensorrt"  # the one whose models are built

_QDQ = b"\x22\x10DequantizeLinear"  # a node's op_type in an ONNX file: field 4 of NodeProto, 16 bytes long


@dataclass(frozen=True)
class Candidate:
    """A model that is to run as an engine, and the family that it is of."""

    family: str
    model: Model
    classes: int

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.manifest.name

    @property
    def weights(self) -> Weights:
        """What a backend is to load."""
        return self.model.weights(self.classes).backbone


def on_tensorrt(family: str, models: Iterable[Model], classes: int, config: Config) -> list[Candidate]:
    """Return those of a family's models that the configuration has run by TensorRT."""
    backends, default = config.models.backends, config.models.backend
    return [
        Candidate(family, model, classes) for model in models if backends.get(model.manifest.name, default) == BACKEND
    ]


def asked_for(config: Config, names: Collection[str], family: str | None) -> list[Candidate]:
    """Return the models of these names, all that run on TensorRT if there are none; family: None for all.

    Raises UnknownFamilyError, UnknownModelError, and ConfigError if nothing is to be built.
    """
    zoo = scan(model_folders(config.models))
    if family is not None and family not in zoo.families:
        raise UnknownFamilyError(f"there is no family {family}: see jetsel models list")
    families = [one_family for one_family in zoo.families.values() if family in (None, one_family.name)]
    if names:
        every = [
            Candidate(one_family.name, model, len(one_family.labels.names))
            for one_family in families
            for model in one_family.models
        ]
        if unknown := sorted(set(names) - {one.name for one in every}):
            raise UnknownModelError(f"there is no model {', '.join(unknown)}: see jetsel models list")
        return [one for one in every if one.name in names]
    candidates = [
        one
        for one_family in families
        for one in on_tensorrt(
            one_family.name, served_models(one_family, config).values(), len(one_family.labels.names), config
        )
    ]
    if not candidates:
        raise ConfigError(
            'models.backend: no model runs on tensorrt here: name those to build, or write backend = "tensorrt" under '
            "[models] in jetsel.toml"
        )
    return candidates


def order_of(candidate: Candidate, photographs: Photographs[Photograph]) -> EngineOrder:
    """Return what is to be built, and compared on these photographs.

    Raises ManifestError if the weights are not those that the manifest means.
    """
    content = verify(candidate.model)
    return EngineOrder(candidate.weights, _QDQ in content, _Prepared(photographs, candidate.model.manifest.input))


class _Prepared:
    """Photographs as one model takes them."""

    def __init__(self, photographs: Photographs[Photograph], spec: InputSpec) -> None:
        self.source = photographs.source
        self._photographs = photographs
        self._spec = spec

    def __len__(self) -> int:
        return len(self._photographs)

    def __iter__(self) -> Iterator[Array]:
        return (model_input(photograph, self._spec) for photograph in self._photographs)
