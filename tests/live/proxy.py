"""A wire between a process and an API server that a test can cut: bytes go through, or nowhere, and nobody is told."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Wire:
    """Forwards TCP connections to a port on loopback. While it is cut, connections stay open and bytes stay on their way.

    Attributes:
        port: where to connect instead.
    """

    def __init__(self, to: int) -> None:
        self._to = to
        self._whole = threading.Event()
        self._whole.set()
        self._ended = False
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """From now on nothing arrives, in either direction; nothing is refused either."""
        self._whole.clear()

    def mend(self) -> None:
        """What was on its way arrives."""
        self._whole.set()

    def close(self) -> None:
        """End it, and all that goes through it."""
        self._ended = True
        self._whole.set()
        for one in (self._listener, *list(self._sockets)):
            # A thread that waits in accept or recv is woken by this, and by nothing less.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._ended:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._sockets |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    thread = threading.Thread(target=self._forward, args=(source, sink), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def wire(to: int) -> Iterator[Wire]:
    """A wire for as long as the block."""
    made = Wire(to)
    try:
        yield made
    finally:
        made.close()
