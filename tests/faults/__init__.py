"""Faults on purpose that take minutes or hours: scripts that print the figures of docs/reliability.md."""
