"""Time zones by name, from the pinned `tzdata` package alone.

Two replicas must agree on a boundary, so the operating system's zone files are never read (ADR/0004). This module is the
one place in `core` that reads files, and it reads only that package's. It knows names; what the rules of a zone mean for
a schedule stands in `schedule/offsets.py`.
"""

import difflib
import functools
import importlib.resources
import re
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from zoneinfo import ZoneInfo

from fivespot.core.errors import InvalidSpec

MAX_NAME_LENGTH = 64
"""Characters in a zone name; the CRD schema states the same bound."""

DEFAULT = "UTC"
"""The zone of a schedule that names none."""

_UNUSABLE = frozenset({"Factory", "localtime"})
_WANTED = "write an IANA time zone name such as Europe/London, America/New_York or UTC"
_OFFSET = re.compile(r"(?:UTC|GMT|Z)?[+-]?[0-9]{1,2}(?::?[0-9]{2})?", re.ASCII)
_ABBREVIATION = re.compile(r"[A-Z]{2,5}", re.ASCII)


def _package() -> Traversable:
    return importlib.resources.files("tzdata")


@functools.cache
def tzdata_version() -> str:
    """The release of the zone data in use, as IANA names it, such as `2026f`."""
    with _package().joinpath("zoneinfo", "tzdata.zi").open(encoding="utf-8") as file:
        return file.readline().removeprefix("# version ").strip()


@functools.cache
def names() -> frozenset[str]:
    """Every zone name that a schedule may use."""
    listed = _package().joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(name for name in listed if name not in _UNUSABLE)


def zone(name: object) -> ZoneInfo:
    """The zone called `name`; one object per name for the life of the process.

    Raises:
        InvalidSpec: of the field `timezone`, when `name` is not one of `names()`.
    """
    if not isinstance(name, str):
        raise InvalidSpec("timezone", name, f"{_WANTED}, as a string")
    if len(name) > MAX_NAME_LENGTH:
        remedy = f"a time zone name has at most {MAX_NAME_LENGTH} characters; {_WANTED}"
        raise InvalidSpec("timezone", f"{name[:MAX_NAME_LENGTH]}...", remedy)
    if name not in names():
        raise InvalidSpec("timezone", name, _remedy(name))
    return _load(name)


@functools.cache
def _load(name: str) -> ZoneInfo:
    with _package().joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _remedy(name: str) -> str:
    """What to write instead of `name`, which is none of ours."""
    same = [known for known in names() if known.lower() == name.strip().lower()]
    if same:
        return f"write {same[0]}; upper and lower case count, and there are no blanks"
    place = f"/{name.strip().replace(' ', '_').lower()}"
    cities = sorted(known for known in names() if known.lower().endswith(place))
    if cities:
        return f"write {cities[0]}; a place comes with its region"
    first, _, rest = name.partition("/")
    if first in {"posix", "right"} and rest in names():
        return f"write {rest}; only the plain names are known, not {first}/..."
    if name in _UNUSABLE:
        return f"every replica must read the same clock; {_WANTED}"
    if _OFFSET.fullmatch(name):
        return f"an offset says nothing about clock changes; {_WANTED}, or Etc/GMT-2, which is two hours east of UTC"
    close = difflib.get_close_matches(name, sorted(names()), n=3, cutoff=0.6)
    if close and not _ABBREVIATION.fullmatch(name):
        return f"did you mean {' or '.join(close)}? {_WANTED[0].upper()}{_WANTED[1:]}"
    if _ABBREVIATION.fullmatch(name):
        return f"an abbreviation is not a zone name; {_WANTED}"
    return f"not listed in tzdata {tzdata_version()}; {_WANTED}"


@functools.cache
def _links() -> Mapping[str, str]:
    """Deprecated name -> the name that it links to (`tzdata.zi`: lines `L target name`)."""
    folder = _package().joinpath("zoneinfo")
    # IANA links many capitals to a neighbour with the same clock since 1970. Those in zone.tab are nobody's old
    # spelling, and advising a person in Amsterdam to write Brussels would be wrong.
    current = {
        line.split("\t")[2]
        for line in folder.joinpath("zone.tab").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
    links = {}
    for line in folder.joinpath("tzdata.zi").read_text(encoding="utf-8").splitlines():
        if line.startswith("L "):
            _, target, name = line.split()
            if name not in current and name != DEFAULT:
                links[name] = target
    return links


def canonical(name: str) -> str:
    """The name that IANA prefers today for `name` (`America/New_York` for `US/Eastern`); `name` itself if it is one."""
    seen = {name}
    while (target := _links().get(name)) is not None and target not in seen:
        seen.add(target)
        name = target
    return name
