"""A stderr that is never waited for: where its reader stands still, what does not fit is left out."""

from __future__ import annotations

import os
import select
import socket
import stat

PART_BYTES = select.PIPE_BUF  # poll(2) tells of a pipe that can take this much, and write(2) takes as much at once


class Stream:
    """A descriptor that others may hold too, so its flags stay as they are: each part is asked for room before."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._socket = socket.socket(fileno=os.dup(fd)) if stat.S_ISSOCK(os.fstat(fd).st_mode) else None
        self._is_torn = False  # the end of a line could not be written

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it."""
        return os.isatty(self._fd)

    def write(self, text: str) -> bool:
        """Write lines, with the last one's end; False where not all of it could be, now or ever."""
        data = f"{text}\n".encode("utf-8", "backslashreplace")
        if self._is_torn:
            data = b"\n" + data
        at = 0
        try:
            while at < len(data):
                at += self._write_part(data[at : at + PART_BYTES])
        except OSError:  # there is no room, nobody reads any more, or the disk is full
            pass
        if at:
            self._is_torn = at < len(data)
        return at == len(data)

    def close(self) -> None:
        """Give back what was opened; the descriptor stays its owner's."""
        if self._socket is not None:
            self._socket.close()

    def _write_part(self, part: bytes) -> int:
        """Return how much was written; raises BlockingIOError where there is no room."""
        if self._socket is not None:  # the journal's stream is one: poll has it full at a quarter
            return self._socket.send(part, socket.MSG_DONTWAIT)
        if not any(events & select.POLLOUT for _, events in self._poll.poll(0)):
            raise BlockingIOError
        return os.write(self._fd, part)
