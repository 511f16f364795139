"""The errors that `jetsel.Client` raises, by the name that applications import them by."""

from jetsel.base.errors import *  # noqa: F403 - each of them is public
