"""Which families and models a configuration serves, which family is the default, and how large an image may be."""

from __future__ import annotations

from collections.abc import Sequence

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError
from jetsel.image import Limits
from jetsel.zoo import Family, Model, Zoo
from jetsel.zoo.store import planned_families

OURS = ("imagenet", "starter")  # what jetsel pulls and what it ships


def limits_of(config: Config) -> Limits:
    """Return the largest image that is accepted, in serving as in calibration."""
    return Limits(int(config.server.max_image_mb * 1e6), int(config.server.max_image_megapixels * 1e6))


def default_family(config: Config, families: Sequence[str]) -> str:
    """Return the family of requests that name none.

    That is the configuration's; else the first of the fleet's plan, the only one, the only one that is the owner's,
    ImageNet's, or the starter family. Raises ConfigError if none of these is there.
    """
    wanted = config.models.default_family
    if wanted is not None:
        if wanted not in families:
            raise ConfigError(f"models.default_family: there is no family {wanted!r}; found: {', '.join(families)}")
        return wanted
    owners = [name for name in families if name not in OURS]
    preferred = [*planned_families(), *(owners if len(owners) == 1 else []), *OURS]
    known = [name for name in preferred if name in families]
    if known:
        return known[0]
    raise ConfigError(
        f"models.default_family: there are several families ({', '.join(families)}): set one as the default"
    )


def served_models(family: Family, config: Config) -> dict[str, Model]:
    """Return those of a family's models that the configuration has served, by name, cheapest first."""
    only = config.models.only
    return {model.manifest.name: model for model in family.models if not only or model.manifest.name in only}


def served_families(zoo: Zoo, config: Config) -> list[str]:
    """Return the families of which a model is served; raises ConfigError if the configuration names unknown models."""
    known = {model.manifest.name for family in zoo.families.values() for model in family.models}
    for key, named in (("only", config.models.only), ("backends", config.models.backends)):
        unknown = sorted(set(named) - known)
        if unknown:
            raise ConfigError(f"models.{key}: no folder has {', '.join(unknown)}; see: jetsel models list")
    return [name for name, family in zoo.families.items() if served_models(family, config)]
