"""Whether a process is ready, as a list of checks; how an HTTP answer says so."""

from collections.abc import Sequence

import attrs

OK = 200
UNAVAILABLE = 503


@attrs.frozen
class Check:
    """One thing that has to be well; `problem` is one sentence, empty when it is."""

    name: str
    problem: str = ""


def answer(checks: Sequence[Check], *, verbose: bool) -> tuple[int, str]:
    """HTTP code and text, in the form of the API server's own /readyz.

    What is wrong is always said; `verbose` names what is well, too.
    """
    wrong = [check for check in checks if check.problem]
    shown = checks if verbose else wrong
    lines = [
        f"[-]{check.name} failed: {check.problem}" if check.problem else f"[+]{check.name} ok"
        for check in shown
    ]
    if not lines:
        return OK, "ok"
    lines.append("readyz check failed" if wrong else "readyz check passed")
    return UNAVAILABLE if wrong else OK, "\n".join(lines) + "\n"
