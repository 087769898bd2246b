"""A certificate authority of the tests' own, and a certificate for 127.0.0.1."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

LASTS = timedelta(days=2)


@dataclass(frozen=True)
class Certificates:
    """Files of one authority and of the server that it certifies."""

    ca_file: Path
    certificate_file: Path
    key_file: Path


def make_certificates(folder: Path) -> Certificates:
    """Write an authority, and a certificate for 127.0.0.1 and for no name."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = name_of("gatemesh tests")
    authority = (
        builder(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        builder(name_of("server"), ca_name, server_key.public_key())
        .add_extension(here, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    made = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    made.ca_file.write_bytes(authority.public_bytes(Encoding.PEM))
    made.certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    private = server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    made.key_file.touch(mode=0o600)
    made.key_file.write_bytes(private)
    return made


def name_of(common_name: str) -> x509.Name:
    """Return a name as certificates hold it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Return a certificate of these days that is not signed yet."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LASTS)
        .not_valid_after(now + LASTS)
    )
