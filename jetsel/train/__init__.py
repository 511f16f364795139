"""Training on the owner's machine, with the owner's images."""
