"""ZMTP, the protocol of ZeroMQ on a connection, as the daemon's ipc socket speaks it."""
