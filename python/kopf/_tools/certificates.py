"""Self-signed certificates of webhook servers."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Collection

_LIFETIME = datetime.timedelta(days=365)


def _split(hostnames: Collection[str]) -> tuple[list[str], list[str]]:
    """Split to names and addresses; addresses that cannot be reached are dropped."""
    import ipaddress

    names: list[str] = []
    addresses: list[str] = []
    for hostname in hostnames:
        try:
            address = ipaddress.ip_address(hostname)
        except ValueError:
            names.append(hostname)
        else:
            if not address.is_unspecified:
                addresses.append(str(address))
    return list(dict.fromkeys(names)), list(dict.fromkeys(addresses))


def build_certificate(
    hostnames: Collection[str], password: str | None = None
) -> tuple[bytes, bytes]:
    """Make a certificate that is its own CA, and its private key; both in PEM.

    With a password, the key is encrypted; that needs the package ``cryptography``.
    """
    names, addresses = _split(hostnames)
    if importlib.util.find_spec("cryptography") is not None:
        return _build(names, addresses, password)
    if password is not None:
        from kopf._tools.webhooks import MissingDependencyError

        raise MissingDependencyError(
            "A password for a self-signed certificate requires an extra dependency: "
            "run `pip install cryptography`. "
            "Or generate your own certificates and pass as certfile=/pkeyfile=."
        )
    from kopf import _engine

    cert, key = _engine.build_certificate([*names, *addresses])
    return bytes(cert), bytes(key)


def _build(names: list[str], addresses: list[str], password: str | None) -> tuple[bytes, bytes]:
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, [*names, *addresses][0])])
    sans: list[x509.GeneralName] = [x509.DNSName(name) for name in [*names, *addresses]]
    sans += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    now = datetime.datetime.now(datetime.timezone.utc)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(sans), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption: serialization.KeySerializationEncryption
    if password is None:
        encryption = serialization.NoEncryption()
    else:
        encryption = serialization.BestAvailableEncryption(password.encode("utf-8"))
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ),
    )
