"""Connect to checked addresses only."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from ipaddress import IPv6Address

from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.ip_ranges import IpAddress, parse_ip_address
from centgate.web.fetch.policy import FetchPolicy
from centgate.web.fetch.url import Target

CONNECT_SECONDS = 4.0
"""Time for one address to accept a connection."""
MAX_ADDRESSES = 4
"""Maximum number of addresses tried per host name."""
BUFFER_BYTES = 64 * 1024
"""Stream limit; at twice this size reading from the network pauses."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def open_checked_connection(
    target: Target, addresses: Sequence[IpAddress], policy: FetchPolicy, tls: ssl.SSLContext
) -> AsyncGenerator[Connection]:
    """Connect to the first address that accepts; abort the connection on exit."""
    connection = await _connect_first(target, addresses, policy)
    reader, writer = await _open_streams(connection, target, tls)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _connect_first(
    target: Target, addresses: Sequence[IpAddress], policy: FetchPolicy
) -> socket.socket:
    for address in addresses[:MAX_ADDRESSES]:
        try:
            return await _connect_checked(address, target, policy)
        except OSError:  # refused, no route, timed out
            continue
    raise FetchFailed("unreachable", f"{target.label} could not be reached")


async def _connect_checked(address: IpAddress, target: Target, policy: FetchPolicy) -> socket.socket:
    """Return a socket connected to exactly this address, checked before and after connecting."""
    if not policy.can_connect(str(address), target.port):
        raise FetchFailed(
            "blocked_address", f"{target.label} resolves to an address that must not be fetched"
        )
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(0)
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (str(address), target.port))
        if parse_ip_address(connection.getpeername()[0]) != address:
            raise ConnectionError("connected to another address")
    except BaseException:
        connection.close()
        raise
    return connection


async def _open_streams(connection: socket.socket, target: Target, tls: ssl.SSLContext) -> Connection:
    if target.scheme == "http":
        return await asyncio.open_connection(sock=connection, limit=BUFFER_BYTES)
    try:
        return await asyncio.open_connection(
            sock=connection, ssl=tls, server_hostname=target.host, limit=BUFFER_BYTES
        )
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {target.label} is not valid: {error.verify_message.rstrip('.')}"
        raise FetchFailed("tls", message) from None
    except OSError:  # also raised when the connection closes during the handshake
        raise FetchFailed("tls", f"the TLS handshake with {target.label} failed") from None


@cache
def default_tls() -> ssl.SSLContext:
    """Return the TLS context of fetches: host names checked, HTTP/1.1, and the system's CAs.

    They take 20 ms to load.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
