"""Cameras: reads one, asks the daemon about its newest frame, and tells what changed. A client of the socket."""
