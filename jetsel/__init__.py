"""jetsel: for each photograph, the cheapest model that is likely to be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jetsel.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the clients when they are asked for: the daemon and the command line start without them."""
    if name in ("Client", "AsyncClient"):
        import jetsel.client

        return getattr(jetsel.client, name)
    raise AttributeError(f"module 'jetsel' has no attribute {name!r}")
