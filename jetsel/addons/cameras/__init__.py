"""Cameras: reads frames, sends the newest to the daemon, and reports changes of the label. A client of the socket."""
