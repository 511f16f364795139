"""Cheaper rungs made from a model: pruned, factorised, quantised, or shown smaller photographs."""
