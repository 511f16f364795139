"""Record every model once, fit what chooses among them, and replay any policy against the recording."""
