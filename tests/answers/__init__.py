"""A record of what the daemon answers and of what a fit gives, made before a large change and compared after it."""
