"""`jetsel top`: how a running daemon fares, live."""

from jetsel.cli.top.command import top

__all__ = ["top"]
