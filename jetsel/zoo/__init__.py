"""Which models there are: what each says of itself, where it lives, and the starter family that ships with jetsel."""

from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import Manifest
from jetsel.zoo.store import STARTER, Broken, Family, Model, Zoo, model_folders, scan, verify

__all__ = [
    "STARTER",
    "Broken",
    "Family",
    "Labels",
    "Manifest",
    "Model",
    "Zoo",
    "model_folders",
    "scan",
    "verify",
]
