"""What stands around a Prometheus: a desk that somebody may sit at, a gate that wants a token; and one who says yes or no."""

from __future__ import annotations

import json
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx

from tests.controlplane.certs import Credential
from tests.controlplane.processes import StoppedAtTheEnd


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nobody reads it."""

    def answer(self, code: int, body: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(StoppedAtTheEnd):
    """A web server in a thread, on loopback."""

    def __init__(self, handler: type[_Quiet], port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def _begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Desk(_Server):
    """Exposes `desk_busy`.

    Attributes:
        busy: its value.
    """

    def __init__(self) -> None:
        self.busy = 0
        desk = self

        class Handler(_Quiet):
            def do_GET(self) -> None:
                self.answer(200, f"desk_busy {desk.busy}\n".encode(), "text/plain; version=0.0.4")

        super().__init__(Handler)
        self._begin()


class Sayer(_Server):
    """Answers as a Prometheus does: 1 to the query `yes`, and 0 to every other."""

    def __init__(self, port: int) -> None:
        class Handler(_Quiet):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                result = [time.time(), "1" if asked == b"query=yes" else "0"]
                answer = {"status": "success", "data": {"resultType": "scalar", "result": result}}
                self.answer(200, json.dumps(answer).encode(), "application/json")

        super().__init__(Handler, port)
        self._begin()


class Gate(_Server):
    """Lets those to a Prometheus who bear the token.

    Attributes:
        token: the one that it takes.
        url: its base.
    """

    def __init__(self, beyond: str, token: str, credential: Credential, ca: bytes, folder: Path) -> None:
        self.token = token
        gate, trusted = self, ssl.create_default_context(cadata=ca.decode())

        class Handler(_Quiet):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Authorization"] != f"Bearer {gate.token}":
                    self.answer(401, b"", "text/plain")
                    return
                passed = httpx.post(
                    f"{beyond}{self.path}",
                    content=body,
                    headers={"Content-Type": self.headers["Content-Type"]},
                    verify=trusted,
                    trust_env=False,
                )
                self.answer(passed.status_code, passed.content, "application/json")

        super().__init__(Handler)
        certificate, key = folder / "gate.crt", folder / "gate.key"
        certificate.write_bytes(credential.certificate)
        key.write_bytes(credential.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://{self.address}"
        self._begin()
