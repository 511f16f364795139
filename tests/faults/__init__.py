"""Faults on purpose: files that are wrong at a reload, and mixed requests, with the figures of docs/reliability.md."""
