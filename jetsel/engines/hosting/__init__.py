"""The daemon's side of the engine host: its process, the socket and the memory shared with it, its supervision."""
