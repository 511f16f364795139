"""Measures energy: the board's sensors, a sampling thread, windows, idle power, facts of the board."""
