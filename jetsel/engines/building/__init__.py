"""Builds TensorRT engines: their keys, their records, and the comparison that each must pass."""
