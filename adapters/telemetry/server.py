"""The HTTP side of a process: /metrics on one port, /healthz and /readyz on another."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from fivespot.adapters.telemetry.health import Check, answer
from fivespot.core.errors import FivespotError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_PATIENCE = 1.0
"""Seconds that requests in hand get at the end."""


class PortInUse(FivespotError):  # noqa: N818 - what is wrong
    """A port cannot be listened on."""


@asynccontextmanager
async def serving(
    registry: CollectorRegistry,
    ready: Callable[[], Awaitable[Sequence[Check]]],
    *,
    address: str,
    metrics_port: int | None,
    health_port: int | None,
) -> AsyncIterator[tuple[int | None, int | None]]:
    """Serve for as long as the block, on ports whose numbers are yielded; None is not served, 0 takes a free one.

    Both may be the same.

    Args:
        registry: what /metrics shows.
        ready: what /readyz asks.
        address: to listen on.
        metrics_port: of /metrics.
        health_port: of /healthz and /readyz.

    Raises:
        PortInUse: naming it and what to do.
    """

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    async def healthz(_: web.Request) -> web.Response:
        # That the event loop came to this line is the whole check.
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        code, text = answer(await ready(), verbose="verbose" in request.query)
        return web.Response(status=code, text=text)

    health: dict[str, Handler] = {"/healthz": healthz, "/readyz": readyz}
    async with AsyncExitStack() as stack:
        if metrics_port is not None and metrics_port == health_port != 0:
            port = await _listen(stack, address, metrics_port, {"/metrics": metrics, **health})
            yield port, port
            return
        first = second = None
        if metrics_port is not None:
            first = await _listen(stack, address, metrics_port, {"/metrics": metrics})
        if health_port is not None:
            second = await _listen(stack, address, health_port, health)
        yield first, second


async def _listen(stack: AsyncExitStack, address: str, port: int, paths: Mapping[str, Handler]) -> int:
    app = web.Application()
    for path, handler in paths.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_PATIENCE)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    site = web.TCPSite(runner, address, port)
    try:
        await site.start()
    except OSError as error:
        message = f"{address} port {port} cannot be listened on: {error.strerror}; choose another port, or 0 for none"
        raise PortInUse(message) from error
    found: int = runner.addresses[0][1]
    return found
