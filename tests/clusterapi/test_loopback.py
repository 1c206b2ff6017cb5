"""A program that listens on every interface is reached on 127.0.0.1 alone, and nothing outlives it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.clusterapi.binaries import LOOPBACK
from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import wait_until

_LISTENS = "0A"

# Answers each connection with what a server outside says.
_PROGRAM = """
import socket, sys
inside, outside = map(int, sys.argv[1:])
with socket.create_server(("", inside)) as server:
    while True:
        near, _ = server.accept()
        with near, socket.create_connection(("127.0.0.1", outside)) as far:
            near.sendall(b"inside, " + far.recv(100))
"""


def _listening_on(port: int) -> set[str]:
    """The local addresses of this machine's own network on which a port is open, in the kernel's hexadecimal."""
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, local, _, state = line.split()[:4]
            address, _, number = local.partition(":")
            if state == _LISTENS and int(number, 16) == port:
                found.add(address)
    return found


def _said(port: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            return connection.recv(100)
    except OSError:
        return b""


def _greet(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"outside")


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux'")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_is_reached_on_loopback_alone_and_nothing_outlives_it(how: signal.Signals) -> None:
    inside, outside = free_ports(2)
    with socket.create_server(("127.0.0.1", outside)) as server:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        program = (sys.executable, "-I", "-c", _PROGRAM, str(inside), str(outside))
        ways = ("--inward", str(inside), "--outward", str(outside))
        with subprocess.Popen([*LOOPBACK, *ways, "--", *program]) as running:
            wait_until(lambda: _said(inside) == b"inside, outside", seconds=30, what="the program answers")
            assert _listening_on(inside) == {"0100007F"}
            running.send_signal(how)
            assert running.wait(10) == -how
        wait_until(lambda: not _listening_on(inside), seconds=10, what="its port is free again")
        server.shutdown(socket.SHUT_RDWR)
