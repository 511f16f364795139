"""Runs the folder as a program: its files import each other as the package `host`, and nothing else of jetsel."""

import importlib
import sys
from pathlib import Path

# Python puts this folder on the path. The folder above it makes `host` a package, and is removed again, so that no file
# there can hide a library.
sys.path[0] = str(Path(__file__).resolve().parents[1])
serving = importlib.import_module("host.serving")
del sys.path[0]
sys.exit(serving.main(sys.argv[1:]))
