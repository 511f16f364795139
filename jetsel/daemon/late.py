"""How long replies wait for a peer that does not read on, and how many may."""

from __future__ import annotations

MOST = 4096  # of all peers together
MOST_OF_ONE = 1024  # of one peer: it cannot take the room of all others
PATIENCE_S = 2.0  # how long one waits before it is lost
RETRY_MS = 5
