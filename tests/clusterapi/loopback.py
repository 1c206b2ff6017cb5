"""Runs a program in a network of its own, of which only the named loopback ports lead in or out.

    loopback.py --inward PORT... --outward PORT... -- PROGRAM ARGUMENT...

Cluster API's manager cannot be told to listen on 127.0.0.1 alone. In a network namespace it may listen wherever it likes: from
outside there is 127.0.0.1:PORT for each port that leads inward, and it sees 127.0.0.1:PORT for each that leads outward.
Nothing is changed on the machine, and when the program ends, however it ends, the kernel takes the namespace away.

Run with the standard library alone. The program takes the place of this process, so signals go to it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_PR_SET_PDEATHSIG = 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_CHUNK = 64 * 1024
_MANY = 16
"""Ports that can lead outward."""
_LIBC = ctypes.CDLL(None, use_errno=True)

Listeners = dict[int, socket.socket]
"""By the port to which what connects is passed on."""


def main() -> None:
    """Make the namespace, with a relay on either side of its border, and become the program."""
    options = _options()
    inward = {port: _listener(port) for port in options.inward}
    here, there = socket.socketpair()
    # Each relay can only dial in its own namespace; a listener goes on listening where it was made.
    _fork(lambda: _relay(_received(there)), here, *inward.values())
    _enter_new_network()
    outward = {port: _listener(port) for port in options.outward}
    _send(here, outward)
    _fork(lambda: _relay(inward), here, there, *outward.values())
    for one in (here, there, *inward.values(), *outward.values()):
        one.close()
    os.execv(options.program[0], options.program)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for direction in ("--inward", "--outward"):
        parser.add_argument(direction, type=int, nargs="*", default=[])
    parser.add_argument("program", nargs="+")
    return parser.parse_args()


def _listener(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port), backlog=128)


def _enter_new_network() -> None:
    """A new network namespace with its loopback up; who is not root needs a user namespace for that."""
    if _LIBC.unshare(_CLONE_NEWNET) != 0 and _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))


def _send(to: socket.socket, listeners: Listeners) -> None:
    # The byte is there because descriptors travel with data only.
    socket.send_fds(to, [b"."], [listener.fileno() for listener in listeners.values()])


def _received(source: socket.socket) -> Listeners:
    _, descriptors, _, _ = socket.recv_fds(source, 1, _MANY)
    listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    return {listener.getsockname()[1]: listener for listener in listeners}


def _fork(work: Callable[[], None], *not_mine: socket.socket) -> None:
    """A child that works until this process, or the program that takes its place, ends."""
    parent = os.getpid()
    if os.fork():
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for one in not_mine:
        one.close()
    try:
        work()
    finally:
        os._exit(1)


def _relay(listeners: Listeners) -> None:
    asyncio.run(_serve(listeners))


async def _serve(listeners: Listeners) -> None:
    servers = [
        await asyncio.start_server(_passing_on_to(port), sock=listener)
        for port, listener in listeners.items()
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def _passing_on_to(port: int) -> Callable[..., object]:
    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Nobody there is a connection that ends at once.
        with contextlib.suppress(OSError), contextlib.closing(writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(far_writer):
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))

    return accepted


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


if __name__ == "__main__":
    main()
