"""ZMTP as the daemon speaks it, over ipc and tcp, with keys and without: what libzmq would do, without what ends it."""
