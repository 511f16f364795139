"""A stand-in for pycuda 2022.1 over the simulated GPU, as far as an engine host needs it."""

VERSION = (2022, 1)
VERSION_STATUS = ""
VERSION_TEXT = "2022.1"
