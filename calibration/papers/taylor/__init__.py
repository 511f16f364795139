"""Taylor et al.'s premodel on real photographs: `python -m calibration.papers.taylor --help`."""
