"""Clients of the daemon, blocking and asyncio; they import the protocol, its errors and endpoints only."""

from jetsel.client.asynchronous import AsyncClient
from jetsel.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
