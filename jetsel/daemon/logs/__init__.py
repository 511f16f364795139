"""Where log lines go: fields into the journal under systemd, readable lines elsewhere; never waiting, never raising."""
