"""The manager of a fleet: what its devices tell, which models each should hold, and how a plan reaches them."""
