"""The resident process: sockets, admission, one request end to end, and its life from start to stop."""
