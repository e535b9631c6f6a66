"""The server of the pages: who may read them, and what a browser may do with them."""

import hmac
import ipaddress
import os
import secrets
import socket
import sys
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .._clean import tell
from ._errors import FleetError
from ._lake import Lake
from ._limits import BACKLOG, connections, limit_logs
from ._pages import pages

#: Variable with the token, which other users of the machine do not see, unlike an option.
TOKEN = "LATSCOPE_FLEET_TOKEN"

_COOKIE = "latscope-fleet"

#: Rules for browsers: nothing is loaded from elsewhere, nothing is run, no other page embeds this one.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}


class Guard:
    """Application that answers only those who know the token, and on loopback only to names of loopback: a
    page of elsewhere whose name leads here cannot read."""

    def __init__(self, inner: ASGIApp, token: str | None, loopback: bool) -> None:
        self.inner, self.token, self.loopback = inner, token, loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refusal(request)
        if answer is None:
            await self.inner(scope, receive, _with_headers(send))
        else:
            await answer(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        host = _host(request.headers.get("host", ""))
        if self.loopback and not (host == "localhost" or _is_loopback(host)):
            return PlainTextResponse("This page has no such name.", 421)
        if self.token is None:
            return None
        given = request.query_params.get("token")
        if given is not None and self._is_token(given):
            # The address without the token is what is kept and passed on.
            others = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
            # Two slashes at the beginning would be the name of another host.
            path = "/" + quote(request.url.path.lstrip("/"))
            answer = RedirectResponse(path + ("?" + urlencode(others) if others else ""))
            answer.set_cookie(_COOKIE, self.token, httponly=True, samesite="strict")
            return answer
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_token(request.cookies.get(_COOKIE, "")) or self._is_token(bearer):
            return None
        return PlainTextResponse(
            "This page needs its token: open the address that latscope-fleet serve printed.",
            401,
            {"WWW-Authenticate": "Bearer"},
        )

    def _is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


def _with_headers(send: Send) -> Send:
    async def sending(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))  # type: ignore[call-overload]
            there = {name.lower() for name, _ in headers}
            rules = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = headers + [rule for rule in rules if rule[0] not in there]
        await send(message)

    return sending  # type: ignore[return-value]


def _host(text: str) -> str:
    """Returns the host of a header `Host`, empty if it is none."""
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def listening(text: str) -> socket.socket:
    """Returns a socket that listens on `HOST:PORT` or `[HOST]:PORT`; port 0 is a free one. Raises
    FleetError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not host:
        raise FleetError(f"--listen {text}: give HOST:PORT, as 127.0.0.1:8100")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host.strip("[]"), int(port)))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        made.close()
        raise FleetError(f"--listen {text}: {error}") from None
    return made


class Site:
    """Pages of a lake on an address. `token` is None for everyone who reaches the address, or a text; without
    it (`""`) there is none on loopback, and a random one elsewhere."""

    def __init__(self, lake: Lake, listen: str, token: str | None = "", results: Path | None = None) -> None:
        self.socket = listening(listen)
        host, port = self.socket.getsockname()[:2]
        loopback = _is_loopback(host)
        if token == "":
            token = os.environ.get(TOKEN) or (None if loopback else secrets.token_urlsafe(24))
        named = socket.gethostname() if ipaddress.ip_address(host).is_unspecified else host
        named = f"[{named}]" if ":" in named else named
        self.address = f"http://{named}:{port}/" + (f"?token={token}" if token else "")
        self.access = (
            "who has this address with its token may read"
            if token
            else "no token: all users of this machine may read"
            if loopback
            else "no token: all who reach this address may read"
        )
        app = Guard(pages(lake, results), token, loopback)
        settings = uvicorn.Config(
            app,
            http=connections(),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            backlog=BACKLOG,
        )
        limit_logs()
        self.server = uvicorn.Server(settings)

    def run(self) -> None:
        """Answers until a signal ends it."""
        try:
            self.server.run(sockets=[self.socket])
        except KeyboardInterrupt:
            pass
        finally:
            self.socket.close()


def serve(lake: Lake, listen: str, token: str | None = "", results: Path | None = None) -> None:
    """Serves the pages, and prints the address and who may read, until a signal ends it."""
    site = Site(lake, listen, token, results)
    tell(f"{site.address}\n{site.access}; end it by Ctrl-C")
    sys.stdout.flush()
    site.run()
