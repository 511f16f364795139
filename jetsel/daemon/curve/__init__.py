"""The server of peers elsewhere, who must show a key: libzmq's ROUTER, and what it does not bound by itself."""
