"""What providers have to ask outside the cluster: each question is asked again and again, and the answers are kept.

Asked only while this process leads: a standby that asks too would double the load of whoever answers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, Protocol

import attrs

from fivespot.adapters.kube.control.secrets import Secrets
from fivespot.adapters.kube.gateway import Gateway
from fivespot.adapters.kube.workqueue import WorkQueue
from fivespot.adapters.telemetry.metrics import ANSWERED, FAILED, Metrics
from fivespot.core.api import reasons
from fivespot.core.api.scheduled_machine import SecretKeyReference
from fivespot.core.errors import FivespotError
from fivespot.core.ports import Clock
from fivespot.core.provider.question import Heard, Question, Reading, pause, taken_in

_LOG: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 64
"""Questions under way at once. One to a host that swallows packets takes ten seconds, and must not keep others waiting."""
_PATIENCE: Final = 5.0
"""Seconds between looks at whether a Secret is still being read."""


class Ask(Protocol):
    """Asks a question once."""

    async def __call__(self, question: Question, *, ca: str | None, token: str | None) -> Heard:
        """What came of it; `ca` and `token` are what is in its Secrets. Nothing is raised."""


async def ask_nobody(question: Question, *, ca: str | None, token: str | None) -> Heard:  # noqa: ARG001 - an Ask
    """For kinds that have no questions."""
    return Heard(None, reasons.QUERY_FAILED, "nobody is there to ask")


@attrs.define(kw_only=True, eq=False)
class _Open:
    """A question, and what was heard to it; `used` is what its Secrets said when it was last to be asked."""

    namespace: str
    question: Question
    reading: Reading | None = None
    used: object = None


class Readings:
    """The questions of the providers of one kind, and what was heard to each.

    Args:
        on_news: told whose reading makes another answer possible.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        ask: Ask,
        *,
        on_news: Callable[[Iterable[str]], None],
        metrics: Metrics,
        random: Random | None = None,
    ) -> None:
        self._clock = clock
        self._ask = ask
        self._on_news = on_news
        self._metrics = metrics
        self._random = random or Random()  # noqa: S311 - jitter, not a secret
        self._open: dict[str, _Open] = {}
        self._wanted = asyncio.Event()
        self._queue: WorkQueue[str] = WorkQueue(clock)
        # A token or an authority that has changed is tried at once.
        self._secrets: Secrets[str] = Secrets(gateway, clock, on_news=self._secret_news, metrics=metrics)

    def want(self, key: str, namespace: str, question: Question | None) -> None:
        """Say what a provider asks from now on; nothing, when it is gone. What was heard to another question is forgotten."""
        before = self._open.get(key)
        if question is None:
            if before is not None:
                del self._open[key]
                self._queue.forget(key)
                self._secrets.want(key, namespace, ())
            return
        if before is None or before.question != question:
            self._open[key] = _Open(namespace=namespace, question=question)
            self._secrets.want(key, namespace, (reference.name for reference in question.secrets))
            self._queue.add(key)
            self._wanted.set()

    def of(self, key: str) -> Reading | None:
        """What was last heard for a provider."""
        found = self._open.get(key)
        return found.reading if found is not None else None

    async def run(self) -> None:
        """Ask, until cancelled."""
        # Most kinds have nothing to ask, ever.
        await self._wanted.wait()
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_ONCE):
                group.create_task(self._work(), name=f"asking {number}")

    async def close(self) -> None:
        """Leave every Secret, for good."""
        self._queue.close()
        await self._secrets.close()

    def _secret_news(self, keys: Iterable[str]) -> None:
        for key in keys:
            asked = self._open.get(key)
            # Whoever annotates a Secret has not given us another token.
            if asked is not None and self._usable(asked) != asked.used:
                self._queue.add(key)

    async def _work(self) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                await self._look(key)
                self._queue.forget(key)
            except Exception:  # noqa: BLE001 - one question's surprise must not stop the others
                _LOG.exception("a question could not be asked", extra={"schedule": key})
                self._queue.retry(key)
            finally:
                self._queue.done(key)

    async def _look(self, key: str) -> None:
        asked = self._open.get(key)
        if asked is None:
            return
        heard = await self._heard(asked)
        if self._open.get(key) is not asked:
            # Another question by now: nobody cares for this answer.
            return
        if heard is None:
            self._queue.add_at(key, self._clock.monotonic() + _PATIENCE)
            return
        now, before = self._clock.monotonic(), asked.reading
        asked.reading = reading = taken_in(before, heard, now)
        self._queue.add_at(key, now + pause(asked.question, reading, self._random.random()))
        if before is None or _told(before, asked.question) != _told(reading, asked.question):
            self._on_news([key])

    async def _heard(self, asked: _Open) -> Heard | None:
        """What came of asking once; None while its Secrets are being read."""
        question = asked.question
        asked.used = texts = self._usable(asked)
        if isinstance(texts, str):
            return Heard(None, reasons.QUERY_FAILED, texts)
        ca, token = texts
        if (question.ca is not None and ca is None) or (question.token is not None and token is None):
            return None
        try:
            heard = await self._ask(question, ca=ca, token=token)
        except Exception as error:  # noqa: BLE001 - a surprise is no answer either: what was heard before must not stand for ever
            _LOG.exception("a question could not be asked", extra={"url": question.url})
            heard = Heard(None, reasons.QUERY_FAILED, f"it could not be asked ({type(error).__name__})")
        self._metrics.asked(FAILED if heard.active is None else ANSWERED)
        return heard

    def _usable(self, asked: _Open) -> tuple[str | None, str | None] | str:
        """The authority and the token, None where there is none, or none yet; or why one of them cannot be had."""
        try:
            ca = self._text(asked, "spec.tls.caSecretRef", asked.question.ca)
            return ca, self._text(asked, "spec.bearerTokenSecretRef", asked.question.token)
        except FivespotError as error:
            return str(error)

    def _text(self, asked: _Open, field: str, reference: SecretKeyReference | None) -> str | None:
        if reference is None:
            return None
        try:
            return self._secrets.text(asked.namespace, reference.name, reference.key)
        except FivespotError as error:
            message = f"{field}: Secret {asked.namespace}/{reference.name}: {error}"
            raise FivespotError(message) from error


def _told(reading: Reading, question: Question) -> tuple[Heard, bool]:
    """What of a reading an answer can depend on."""
    return reading.heard, reading.held >= question.confirm
