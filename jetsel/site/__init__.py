"""The families, models and calibrations that a configuration serves, without sockets and engines."""
