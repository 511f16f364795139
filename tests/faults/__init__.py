"""Faults on purpose: what lies wrong on a disk, and mixed requests whose command prints docs/reliability.md's figures."""
