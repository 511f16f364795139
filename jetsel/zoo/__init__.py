"""Models on disk: their manifests, labels and folders, and how they are added, changed and removed."""

from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import Manifest
from jetsel.zoo.store import STARTER, Broken, Family, Model, Zoo, model_folders, scan, verify

__all__ = ["STARTER", "Broken", "Family", "Labels", "Manifest", "Model", "Zoo", "model_folders", "scan", "verify"]
