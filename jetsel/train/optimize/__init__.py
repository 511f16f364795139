"""Make cheaper models from a model: pruned, factorised, or with 8-bit or 16-bit numbers."""
