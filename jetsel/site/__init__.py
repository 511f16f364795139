"""What this configuration serves, for daemon, calibration, fleet and commands; it knows no socket and no engine."""
