"""Addresses to which nobody else may send us: this machine itself, its link-local neighbours, a cloud's metadata service.

A metadata service hands out the credentials of the machine to whoever asks from it. Most are link-local; the others that
are known are named here, after the manuals of Amazon, Google, Azure, Oracle, Alibaba and Scaleway.
"""

import ipaddress
import socket
from collections.abc import Iterator
from typing import Final

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
    )
)
_CARRYING: Final = tuple(ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96"))
"""The last 32 bits are an IPv4 address, to which somebody on the way sends it: RFC 6052, 7915, 4291."""
_TRANSLATED: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
"""Somewhere in it is an IPv4 address; where, whoever runs the network decides (RFC 8215, 6052 section 2.2). So all of it counts."""

LOCAL: Final = (
    "this machine, a link-local neighbour or a cloud's metadata service, or may be translated to one"
)
"""What `is_local` looks for, in words."""


def is_local(host: str) -> bool:
    """Whether a host, as written, is one of them, in any notation that a resolver accepts."""
    host = host.rstrip(".").lower()
    if host in ("localhost", "ip6-localhost", "ip6-loopback") or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and any(_is_local(meant) for meant in _meant(address))


def _address(host: str) -> _Address | None:
    try:
        # A link-local address may name its interface: fe80::1%eth0.
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        # Resolvers also take 127.1, 0x7f000001 and 2130706433 for addresses.
        return ipaddress.ip_address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _meant(address: _Address) -> Iterator[_Address]:
    """The address, and the IPv4 addresses that it carries in itself."""
    yield address
    if not isinstance(address, ipaddress.IPv6Address):
        return
    yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
    if any(address in network for network in _CARRYING):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _is_local(address: _Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address in _METADATA
        or address in _TRANSLATED
    )
