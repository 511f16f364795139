"""What the images teach: features, folds, the goal, and the calibration that is put together."""
