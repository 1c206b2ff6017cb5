"""A fake Kubernetes API server: in this process, on loopback, strict, with a port for faults.

It answers as the real server does, which tests/contract/ holds it to. What it does not understand it answers with 501,
and raises at its end.

    async with fake_api() as server, server.gateway() as gateway:
        server.install(crds)
        server.faults.add(Answer(503), verb="patch", resource="nodes")
"""

from tests.fakeapi.answering import Entry
from tests.fakeapi.server import FakeApi, fake_api

__all__ = ["Entry", "FakeApi", "fake_api"]
