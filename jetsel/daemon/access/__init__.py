"""Who may connect over tcp: allowed keys, the answer to each handshake, and what is told of the refused."""
