"""What the deployment keeps things in: the journal's database, and the shared cache."""

# asyncpg and redis are typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment, host
from centgate.payments.migrations import HEAD
from centgate.payments.store import BadAddress

CONNECT_SECONDS = 5
OLDEST_POSTGRESQL = 14
"""The oldest version that its makers still mend."""
LITTLE, TOO_LITTLE = 1 << 30, 100 << 20
"""Bytes of free space."""
REMOTE = re.compile(r"^(nfs\d?|cifs|smb\d?|smbfs|afs|ceph|glusterfs|lustre|beegfs|gfs2|ocfs2|fuse\.\w*)$")
"""Kinds of filesystem that several machines may share: SQLite's log in shared memory works on one alone."""
FLEETING = frozenset({"tmpfs", "ramfs", "overlay"})
"""Kinds that go with the machine or the container."""
OLDEST_REDIS = (6, 2)
PROBE = "INSERT INTO duties (name, worker, until) VALUES ('doctor', 'doctor', 0)"
"""An entry that is taken back."""


async def database(deployment: Deployment) -> Finding:
    """The journal's database can be reached and written, has the schema of this program, and loses nothing
    that it has confirmed."""
    if deployment.settings.database_url.startswith("sqlite:"):
        return await asyncio.to_thread(_sqlite, Path(deployment.settings.database_url[len("sqlite:///") :]))
    return await _postgresql(deployment)


async def clock_of_database(deployment: Deployment) -> float | None:
    """Seconds that the database's clock is ahead of this machine's; None where it has none of its own."""
    url = deployment.settings.database_url
    if url.startswith("sqlite:"):
        return None
    from centgate.payments.postgresql import connected

    connection = await connected(url)
    try:
        before = time.time()
        theirs = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
        return theirs - (before + time.time()) / 2
    finally:
        await connection.close(timeout=1)


async def _postgresql(deployment: Deployment) -> Finding:
    import asyncpg

    from centgate.payments.postgresql import connected

    try:
        connection = await connected(deployment.settings.database_url)
    except BadAddress as error:
        return failed(str(error), "mend CENTGATE_DATABASE_URL: no server can start with it")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return failed(
            f"PostgreSQL cannot be reached: {_told(error)}",
            "see CENTGATE_DATABASE_URL: host, port, user, password and database",
        )
    try:
        return await _tried(connection, deployment)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return failed(
            f"PostgreSQL cannot be written: {_told(error)}",
            "give the user of CENTGATE_DATABASE_URL the tables, on a server that takes writes",
        )
    finally:
        await connection.close(timeout=1)


async def _tried(connection: Any, deployment: Deployment) -> Finding:
    """What a connection shows."""
    version = await connection.fetchval("SHOW server_version")
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return failed(
            "this PostgreSQL is a standby, which takes no writes", "name the primary in CENTGATE_DATABASE_URL"
        )
    has_tables = await connection.fetchval("SELECT to_regclass('alembic_version')")
    found = await connection.fetchval("SELECT version_num FROM alembic_version") if has_tables else None
    if (schema := _schema(found)) is not None:
        return schema
    await _taken_back(connection)
    durable = await connection.fetchval("SHOW synchronous_commit")
    if durable == "off" or await connection.fetchval("SHOW fsync") == "off":
        return failed(
            "PostgreSQL confirms what it has not written (synchronous_commit or fsync is off): a crash loses "
            "payments",
            "set both to on, for the server or for this user",
        )
    return await _room(connection, deployment, str(version))


async def _taken_back(connection: Any) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(PROBE)
    finally:
        await transaction.rollback()


async def _room(connection: Any, deployment: Deployment, version: str) -> Finding:
    """Whether the server is of an age, and has connections enough."""
    settings = deployment.settings
    if int(version.partition(".")[0]) < OLDEST_POSTGRESQL:
        return warning(f"PostgreSQL {version} is no longer mended", "move to a version that is")
    most = int(await connection.fetchval("SHOW max_connections"))
    ours = settings.workers * settings.database_connections
    if ours > most // 2:
        return warning(
            f"one server takes up to {ours} connections, and PostgreSQL has {most} for all",
            "lower CENTGATE_DATABASE_CONNECTIONS, or raise max_connections",
        )
    return ok(f"PostgreSQL {version}, schema {HEAD}, durable")


def _schema(found: str | None) -> Finding | None:
    """What a version means that is not this program's."""
    if found == HEAD:
        return None
    if found is None:
        return warning("the database is empty", "run `centgate migrate`; or the first start makes the tables")
    if found < HEAD:
        return failed(
            f"the database has schema {found}, this Centgate needs {HEAD}", "run `centgate migrate`"
        )
    return failed(
        f"the database has schema {found}, made by a newer Centgate; this one knows {HEAD}",
        "update this Centgate",
    )


def _sqlite(path: Path) -> Finding:
    if str(path) == ":memory:":
        return failed("a journal in memory would forget who has paid", "name a file in CENTGATE_DATABASE_URL")
    folder = path.parent.resolve()
    if not folder.is_dir():
        return failed(f"the folder {folder} does not exist", "make it, or change CENTGATE_DATABASE_URL")
    if not os.access(folder, os.W_OK):
        return failed(f"the folder {folder} cannot be written", "let the server's user write there")
    free = shutil.disk_usage(folder).free
    if free < TOO_LITTLE:
        return failed(f"{folder} has {free >> 20} MB left", "make room: without it no payment is taken")
    kind = filesystem(folder)
    if REMOTE.match(kind):
        return failed(
            f"{folder} is on {kind}, which other machines may share: SQLite can lose payments there",
            "put the file on a disk of this machine, or use PostgreSQL",
        )
    finding = _file(path)
    if finding.status != "ok":
        return finding
    if kind in FLEETING:
        return warning(f"{folder} is on {kind}: what was paid is lost with it", "put the file on a volume")
    if free < LITTLE:
        return warning(f"{folder} has {free >> 20} MB left", "make room before it is full")
    return ok(f"{finding.what}, {kind or 'local disk'}, {free >> 30} GB free")


def _file(path: Path) -> Finding:
    """Whether the journal itself can be written, and is of this version."""
    if not path.exists():
        return ok(f"{path} will be made by the first start")
    try:
        with closing(
            sqlite3.connect(f"file:{path}?mode=rw", uri=True, isolation_level=None, timeout=3)
        ) as db:
            has = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            found = db.execute("SELECT version_num FROM alembic_version").fetchone() if has else None
            if (schema := _schema(found[0] if found else None)) is not None:
                return schema
            db.execute("BEGIN IMMEDIATE")
            db.execute(PROBE)
            db.execute("ROLLBACK")
            mode = db.execute("PRAGMA journal_mode").fetchone()[0]
    except sqlite3.Error as error:
        return failed(f"{path} cannot be written: {error}", "see who owns the file, and whether it is whole")
    return ok(f"SQLite, schema {HEAD}, {mode} mode")


def filesystem(folder: Path) -> str:
    """The kind of filesystem a folder is on; empty where that cannot be told (off Linux)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    mounts = [(fields[4], line.split(" - ")[1].split()[0]) for line in lines if (fields := line.split())]
    holding = [mount for mount in mounts if folder.is_relative_to(mount[0].replace("\\040", " "))]
    return max(holding, key=lambda mount: len(mount[0]))[1] if holding else ""


async def cache(deployment: Deployment) -> Finding:
    """The shared cache can be reached and written, is not too old, and makes room when it is full."""
    url = deployment.settings.cache_url
    if url is None:
        return skipped("CENTGATE_CACHE_URL is not set: each server has a cache of its own")
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    where = "the socket" if url.startswith("unix:") else host(url)
    try:
        client = Redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS)
    except ValueError:  # in words that may hold a part of its password
        return failed(
            "CENTGATE_CACHE_URL cannot be read",
            "write redis://:password@host:6379/0, and what is neither letter nor digit in a password as %XX",
        )
    try:
        key = f"centgate:doctor:{secrets.token_hex(8)}"
        await client.set(key, "1", ex=10)
        await client.delete(key)
        told: dict[str, Any] = await client.info()
    except (RedisError, OSError) as error:
        return failed(
            f"{where} cannot be used: {_told(error)}",
            "see CENTGATE_CACHE_URL; servers go on, each with a cache of its own",
        )
    finally:
        await client.aclose()
    return _fit(told)


def _fit(told: dict[str, Any]) -> Finding:
    """What a server says of itself."""
    version = str(told.get("redis_version", "0"))
    name = f"Valkey {told['valkey_version']}" if "valkey_version" in told else f"Redis {version}"
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_REDIS:
        return warning(f"{name} is old", "move to Redis 6.2, to any Valkey, or to something newer")
    most, policy = int(told.get("maxmemory", 0)), str(told.get("maxmemory_policy", ""))
    if most and policy == "noeviction":
        return warning(
            f"{name} refuses writes once its {most >> 20} MB are full (maxmemory-policy noeviction)",
            "set maxmemory-policy to allkeys-lru: everything in it can be had again",
        )
    return ok(f"{name}, {f'{most >> 20} MB, {policy}' if most else 'no limit of memory'}")


def _told(error: Exception) -> str:
    """What an error says, in one line; never one that was made of an address, which has a password."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    said = " ".join(str(error).split())
    return said[:200] or type(error).__name__
