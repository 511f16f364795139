"""A stand-in for pycuda 2022.1 over the simulated GPU, as far as an engine host needs it."""

VERSION_TEXT = "2022.1"
