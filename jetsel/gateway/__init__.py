"""HTTP for the daemon: Open Inference Protocol, metrics and a page, in a process that is a client of the socket."""
