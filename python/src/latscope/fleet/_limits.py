"""What one who connects to the pages can hold of the server, and what it writes to its log about it."""

import asyncio
import logging
import resource
import time
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

from .._clean import clean

#: The most connections: then the oldest one without a request ends, else the oldest one.
MOST = 256

#: How long a connection may send no whole request, or take nothing of an answer, s.
PATIENCE = 20.0

#: The most connections that are taken at once, each a descriptor before it is counted.
BACKLOG = 64

#: The most messages of a log in a span, s.
MESSAGES, SPAN = 20, 60.0


def connections(patience: float = PATIENCE) -> type[H11Protocol]:
    """Returns the protocol of a server whose connections are limited in number and idle time."""
    most = min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    held: dict[H11Protocol, None] = {}

    class Limited(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            held[self] = None
            if len(held) > most:
                ended = next(filter(_is_idle, held), next(iter(held)))
                del held[ended]
                ended.transport.abort()
            self.watch = self.loop.call_later(patience, self.look, None)

        def connection_lost(self, exc: Exception | None) -> None:
            held.pop(self, None)
            self.watch.cancel()
            super().connection_lost(exc)

        def look(self, before: object) -> None:
            # A page that is being made may take long; one that is not taken may not.
            left = self.transport.get_write_buffer_size()
            now = (self.cycle, left)
            if now == before and (left or _is_idle(self)):
                self.transport.abort()
            else:
                self.watch = self.loop.call_later(patience, self.look, now)

    return Limited


def _is_idle(connection: H11Protocol) -> bool:
    return connection.cycle is None or connection.cycle.response_complete


class Rarely(logging.Filter):
    """Filter of a log: no more than MESSAGES in a SPAN, and none with what a terminal would obey."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.clock, self.begin, self.seen = clock, -SPAN, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns true if a message is written."""
        now, left = self.clock(), 0
        if now - self.begin >= SPAN:
            left = max(self.seen - MESSAGES, 0)
            self.begin, self.seen = now, 0
        self.seen += 1
        if record.exc_info and not record.exc_text:
            record.exc_text = clean(logging.Formatter().formatException(record.exc_info))
        text = (
            f"{record.getMessage()} ({left} messages before it were left out)"
            if left
            else record.getMessage()
        )
        record.msg, record.args = clean(text), ()
        return self.seen <= MESSAGES


_RARELY = Rarely()


def limit_logs() -> None:
    """Limits what the server writes to standard error."""
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(_RARELY)
