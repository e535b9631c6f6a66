"""A real S3 server (versitygw) on loopback, and a proxy before it that answers 503 when a test wants it."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

BUCKET = "fleet"
KEYS = {"AWS_ACCESS_KEY_ID": "latscope", "AWS_SECRET_ACCESS_KEY": "a secret of a test"}


def program() -> str | None:
    """Returns the path of versitygw, on the search path or where `go install` puts it."""
    places = [os.environ.get("PATH", ""), os.environ.get("GOBIN", ""), str(Path.home() / "go" / "bin")]
    return shutil.which("versitygw", path=os.pathsep.join(place for place in places if place))


def free_port() -> int:
    """Returns a port of loopback that nothing uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_for(port: int, process: "subprocess.Popen[Any]") -> None:
    """Waits until a process listens on a port. Raises RuntimeError if it ends before."""
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} ended with {process.returncode}")


@contextmanager
def gateway(directory: Path) -> Iterator[int]:
    """Gives the port of an S3 server with one bucket, whose objects are files in `data` of a directory."""
    found = program()
    assert found is not None
    (directory / "data" / BUCKET).mkdir(parents=True)
    (directory / "facts").mkdir()
    port = free_port()
    words = [found, "--port", f"127.0.0.1:{port}", "--quiet", "posix", "--sidecar", str(directory / "facts")]
    keys = {
        "ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"],
    }
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*words, str(directory / "data")], env=os.environ | keys, stdout=log, stderr=log
        )
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


def environment(port: int) -> dict[str, str]:
    """Returns the variables that name the server, as docs/fleet.md has them."""
    return KEYS | {
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }


@dataclass
class Cable:
    """Connection to a server, itself on a port of loopback, that is cut after `left` bytes of the clients, or
    holds if that is None. `cuts` counts what was cut."""

    port: int
    left: int | None = None
    cuts: int = 0


@contextmanager
def cable(server: int) -> Iterator[Cable]:
    """Gives a cable to a server."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", server)) as there:
                back = threading.Thread(target=copy, args=(there, self.request), daemon=True)
                back.start()
                try:
                    while data := self.request.recv(4096):
                        if made.left is not None:
                            made.left -= len(data)
                            if made.left < 0:
                                made.cuts += 1
                                return
                        there.sendall(data)
                    there.shutdown(socket.SHUT_WR)
                    back.join()
                except OSError:
                    return

    listening = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    made = Cable(listening.server_address[1])
    with serving(listening):
        yield made


@contextmanager
def serving(listening: ThreadingTCPServer | ThreadingHTTPServer) -> Iterator[None]:
    """Serves connections until the end, each in a thread."""
    listening.daemon_threads = True
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        listening.shutdown()
        listening.server_close()


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Copies what a connection gives to another one, until one of them ends."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


@dataclass
class Proxy:
    """Proxy before a server. It answers 503 to the next `refuse` requests whose method and path have `word`,
    and counts them in `refused`."""

    port: int
    refuse: int = 0
    word: str = ""
    refused: int = 0


@contextmanager
def proxy(server: int) -> Iterator[Proxy]:
    """Gives a proxy before the server on a port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if made.refuse and made.word in f"{self.command} {self.path}":
                made.refuse -= 1
                made.refused += 1
                self.send(503, [], b"<Error><Code>SlowDown</Code></Error>")
                return
            there = HTTPConnection("127.0.0.1", server)
            there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                there.putheader(name, value)
            there.endheaders(body)
            got = there.getresponse()
            kept = [one for one in got.getheaders() if one[0].lower() not in ("content-length", "connection")]
            length = got.getheader("content-length", "0") if self.command == "HEAD" else None
            self.send(got.status, kept, got.read(), length)
            there.close()

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

        def send(
            self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("content-length", length or str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Proxy(listening.server_address[1])
    with serving(listening):
        yield made
