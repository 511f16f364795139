"""The manager of a fleet: reads reports of devices, chooses each device's models, and rolls out plans."""
