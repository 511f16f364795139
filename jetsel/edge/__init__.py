"""Models on edge servers: a child process that queries them over HTTP, and estimates of the network's time."""
