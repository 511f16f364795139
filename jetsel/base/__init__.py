"""Shared by all packages: errors, settings, logs, and files that are replaced whole. Imports nothing else of ours."""
