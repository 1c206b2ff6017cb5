"""Addresses that somebody else may not send us to: this machine itself, and its link-local neighbours.

Among the link-local ones is the metadata service of every large cloud, which hands out the credentials of the machine.
"""

import ipaddress
import socket


def is_local(host: str) -> bool:
    """Whether a host, as written, is loopback, link-local or unspecified, in any notation that a resolver accepts."""
    host = host.rstrip(".").lower()
    if host in ("localhost", "ip6-localhost", "ip6-loopback") or host.endswith(".localhost"):
        return True
    # A link-local address may name its interface: fe80::1%eth0.
    bare = host.partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        try:
            # Resolvers also take 127.1, 0x7f000001 and 2130706433 for addresses.
            address = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_link_local or address.is_unspecified
