"""Building what TensorRT runs: engines, their keys and records, and the comparison that each must pass."""
