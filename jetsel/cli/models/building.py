"""Build the engines that the configuration's models lack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jetsel.config import Config
from jetsel.daemon.family import served_models
from jetsel.engines.building.builder import Builder, Order
from jetsel.engines.building.inputs import Array, Photographs
from jetsel.engines.building.plans import Plan
from jetsel.errors import ConfigError, JetselError, UnknownFamilyError, UnknownModelError
from jetsel.image import InputSpec, Photograph, model_input
from jetsel.weights import Weights
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
        return self.model.weights(self.classes)


@dataclass(frozen=True)
class Outcome:
    """What became of one candidate: its engine, or None and the reason. was_built: now, not before."""

    candidate: Candidate
    plan: Plan | None
    reason: str | None
    was_built: bool


def on_tensorrt(family: str, models: Iterable[Model], classes: int, config: Config) -> list[Candidate]:
    """Return those of a family's models that the configuration has run by TensorRT."""
    backends, default = config.models.backends, config.models.backend
    return [
        Candidate(family, model, classes) for model in models if backends.get(model.manifest.name, default) == BACKEND
    ]


def asked_for(config: Config, names: Collection[str], family: str | None) -> list[Candidate]:
    """Return the models of these names, all that run on TensorRT where there are none; family: None for all.

    Raises UnknownFamilyError, UnknownModelError, and ConfigError where nothing is to be built.
    """
    zoo = scan(model_folders(config.models))
    if family is not None and family not in zoo.families:
        raise UnknownFamilyError(f"there is no family {family}: see jetsel models list")
    families = [known for known in zoo.families.values() if family in (None, known.name)]
    if names:
        every = [Candidate(known.name, model, len(known.labels.names)) for known in families for model in known.models]
        if unknown := sorted(set(names) - {one.name for one in every}):
            raise UnknownModelError(f"there is no model {', '.join(unknown)}: see jetsel models list")
        return [one for one in every if one.name in names]
    found = [
        one
        for known in families
        for one in on_tensorrt(known.name, served_models(known, config).values(), len(known.labels.names), config)
    ]
    if not found:
        raise ConfigError(
            'models.backend: no model runs on tensorrt here: name those to build, or write backend = "tensorrt" under '
            "[models] in jetsel.toml"
        )
    return found


def build_missing(
    builder: Builder,
    candidates: Sequence[Candidate],
    photographs: Photographs[Photograph],
    tell: Callable[[int, int, str], None],
    waiting: Callable[[], None],
    *,
    force: bool = False,
) -> Iterator[Outcome]:
    """Build what does not stand yet, one after the other, and say of each candidate what became of it.

    photographs: what each engine is compared on with ONNX Runtime.
    tell: called before each build with the candidate's number of how many, and the model's name; waiting: where
    another build has to end first. force: build what stands, too. One that fails is an outcome, and the rest go on.
    """
    for number, candidate in enumerate(candidates, start=1):
        plan = None if force else builder.standing(candidate.weights)
        if plan is not None:
            yield Outcome(candidate, plan, None, was_built=False)
            continue
        tell(number, len(candidates), candidate.name)
        try:
            order = _order(candidate, photographs)
            yield Outcome(candidate, builder.build(order, waiting, force=force), None, was_built=True)
        except JetselError as error:
            yield Outcome(candidate, None, str(error), was_built=False)


def _order(candidate: Candidate, photographs: Photographs[Photograph]) -> Order:
    """Raises ManifestError where the weights are not those that the manifest means."""
    content = verify(candidate.model)
    spec = candidate.model.manifest.input
    return Order(
        weights=candidate.weights,
        has_qdq=_QDQ in content,
        inputs=_Prepared(photographs, spec),
    )


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
