"""Decide which policy wins, by how much, and which error rates it can promise."""
