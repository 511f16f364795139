"""The policies: each chooses which models run for an image and which prediction is the answer."""

from jetsel.policies.policy import Decision, Evidence, Policy, Prediction, Run
from jetsel.policies.registry import catalogue

__all__ = ["Decision", "Evidence", "Policy", "Prediction", "Run", "catalogue"]
