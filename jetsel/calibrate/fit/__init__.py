"""Fit policies to recorded images: folds, features, the goal, and the assembled calibration."""
