"""Eshratifar and Pedram's multiplexer on real photographs: `python -m calibration.papers.multiplexer --help`."""
