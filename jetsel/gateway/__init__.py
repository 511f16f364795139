"""HTTP beside the daemon: Open Inference Protocol, metrics and a page. It is a client of the socket, in a process."""
