"""Certificate authority for tests."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """Certificate authority; `asked` lists the names that clients of its servers sent (SNI)."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of a test")])
        self.server_names: list[str | None] = []
        basics = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key, datetime.now(UTC) + DAY)
        self._certificate = builder.add_extension(basics, critical=True).sign(self._key, hashes.SHA256())

    def client(self) -> ssl.SSLContext:
        """Return a client's TLS context that trusts this authority alone."""
        pem = self._certificate.public_bytes(Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def write_certificate(self, file: Path) -> None:
        """Write the authority's own certificate to a file."""
        file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def server(self, host: str, *, expired: bool = False) -> ssl.SSLContext:
        """Return a server's TLS context with a certificate for a name or an IP address."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = datetime.now(UTC) + (-DAY if expired else DAY)
        names = x509.SubjectAlternativeName([_general_name(host)])
        builder = self._builder(x509.Name([]), key, until).add_extension(names, critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "chain.pem"
            private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
            context.load_cert_chain(file)
        context.sni_callback = lambda _socket, name, _context: self.server_names.append(name)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(until - 5 * DAY)
            .not_valid_after(until)
        )


def _general_name(host: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
