"""One certificate authority and what it issues, all in memory; nothing is valid for more than a week.

Elliptic curve keys throughout: an RSA key takes a tenth of a second, and there are dozens.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A certificate, or a bare public key, with its private key; both PEM."""

    certificate: bytes
    key: bytes


def key_pair() -> Credential:
    """A public and a private key that nobody vouches for: what signs and checks ServiceAccount tokens."""
    key = _new_key()
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Credential(certificate=public, key=_pem(key))


class CertificateAuthority:
    """Issues the certificates of one control plane."""

    def __init__(self) -> None:
        self._key = _new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "5spot test control plane")])
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        # Subject key identifier, authority key identifier and key usage: Python 3.13 refuses a chain without them.
        certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate: bytes = certificate.public_bytes(serialization.Encoding.PEM)

    def server(self) -> Credential:
        """For a server on localhost and 127.0.0.1."""
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, groups: Sequence[str] = ()) -> Credential:
        """For a client that Kubernetes shall know as `user` in `groups`."""
        # One attribute set per value: attributes that share a set are sorted when encoded.
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> Credential:
        key = _new_key()
        builder = self._builder(subject, key).add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Credential(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        # Backdated: a test may set a program's clock back a little.
        begin = datetime.now(UTC) - timedelta(hours=1)
        return (
            x509.CertificateBuilder(subject_name=subject, issuer_name=self._name, public_key=key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + _LIFE)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
