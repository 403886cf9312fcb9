"""Connections to addresses that were checked, and to no others."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv6Address

from centgate.safefetch.addresses import Address, read_address
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.policy import Policy
from centgate.safefetch.target import Target

SECONDS = 4.0
"""For one address to accept a connection."""
MOST_TRIED = 4
"""Addresses of one name that are tried."""
BUFFER = 64 * 1024
"""Bytes after whose double nothing more is taken from the network until some were read."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(
    target: Target, addresses: Sequence[Address], policy: Policy, tls: ssl.SSLContext
) -> AsyncGenerator[Connection]:
    """A connection to the first of these addresses that accepts one, cut in the end."""
    reached = await _reached(target, addresses, policy)
    reader, writer = await _wrapped(reached, target, tls)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _reached(target: Target, addresses: Sequence[Address], policy: Policy) -> socket.socket:
    for address in addresses[:MOST_TRIED]:
        try:
            return await _dialled(address, target, policy)
        except OSError:  # refused, no route, not in time
            continue
    raise FetchFailed("unreachable", f"{target.shown} could not be reached")


async def _dialled(address: Address, target: Target, policy: Policy) -> socket.socket:
    """A socket connected to this very address, which is checked before the first packet and after."""
    if not policy.admits(str(address), target.port):
        raise FetchFailed("blocked_address", f"{target.shown} leads to an address that must not be fetched")
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    dialling = socket.socket(family, socket.SOCK_STREAM)
    try:
        dialling.settimeout(0)
        async with asyncio.timeout(SECONDS):
            await asyncio.get_running_loop().sock_connect(dialling, (str(address), target.port))
        if read_address(dialling.getpeername()[0]) != address:
            raise ConnectionError("connected to another address")
    except BaseException:
        dialling.close()
        raise
    return dialling


async def _wrapped(reached: socket.socket, target: Target, tls: ssl.SSLContext) -> Connection:
    if target.scheme == "http":
        return await asyncio.open_connection(sock=reached, limit=BUFFER)
    try:
        return await asyncio.open_connection(sock=reached, ssl=tls, server_hostname=target.host, limit=BUFFER)
    except ssl.SSLCertVerificationError as error:
        what = f"the certificate of {target.shown} is not valid: {error.verify_message.rstrip('.')}"
        raise FetchFailed("tls", what) from None
    except OSError:  # also an end of the connection in the middle of the handshake
        raise FetchFailed("tls", f"no TLS connection to {target.shown} could be agreed on") from None


def tls_context() -> ssl.SSLContext:
    """The system's authorities, host names checked, HTTP/1.1 alone."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
