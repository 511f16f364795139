"""Places for clients that others may not take: some for ipc, and of those some for root and the daemon's own user."""

from __future__ import annotations

TCP_SHARE = 0.75  # of all places: the rest is for ipc
TRUSTED = 16  # places for root and the daemon's own user, who ask for status and reload


def trusted_places(places: int) -> int:
    """How many of so many are kept for root and the daemon's own user: an eighth of all where those are few."""
    return min(TRUSTED, places // 8)
