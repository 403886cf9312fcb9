"""Checks of the storage: the journal's database, and the shared cache."""

# asyncpg and redis are only partially typed
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

from msgspec.structs import replace

from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext, display_origin
from centgate.findings import Finding
from centgate.payments.database.migrations import HEAD_REVISION, SELECT_REVISION
from centgate.payments.database.store import InvalidDatabaseUrl, sqlite_path
from centgate.settings import Settings

CONNECT_SECONDS = 5
OLDEST_POSTGRESQL = 14
"""Oldest version that PostgreSQL still supports."""
LOW_SPACE, MIN_SPACE = 1 << 30, 100 << 20
"""Free space limits in bytes."""
NETWORK_FILESYSTEMS = re.compile(
    r"^(nfs\d?|cifs|smb\d?|smbfs|afs|ceph|glusterfs|lustre|beegfs|gfs2|ocfs2|fuse\.\w*)$"
)
"""Network filesystems: SQLite's WAL index in shared memory works on one machine only."""
EPHEMERAL_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "overlay"})
"""Filesystems that are lost with the machine or the container."""
MAX_POOLER_CONNECTIONS = 20
"""Connections of a pooler that are tried, to occupy the one that has prepared a statement."""
OLDEST_REDIS = (6, 2)
TEST_INSERT = "INSERT INTO duties (name, worker, until) VALUES ('doctor', 'doctor', 0)"
"""Test write, which is rolled back."""


async def check_database(deployment: DoctorContext) -> Finding:
    """The journal's database is reachable and writable, has this version's schema, and commits durably."""
    if deployment.settings.database_url.startswith("sqlite:"):
        return await asyncio.to_thread(_check_sqlite, sqlite_path(deployment.settings.database_url))
    return await _check_postgresql(deployment)


async def read_database_skew(deployment: DoctorContext) -> float | None:
    """Return the seconds that the database's clock is ahead of this machine's; None for SQLite."""
    url = deployment.settings.database_url
    if url.startswith("sqlite:"):
        return None
    from centgate.payments.database.postgresql import connect

    connection = await connect(url)
    try:
        before = time.time()
        database_time = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
        return database_time - (before + time.time()) / 2
    finally:
        await connection.close(timeout=1)


async def _check_postgresql(deployment: DoctorContext) -> Finding:
    import asyncpg

    from centgate.payments.database.postgresql import connect

    try:
        connection = await connect(deployment.settings.database_url)
    except InvalidDatabaseUrl as error:
        return fail(str(error), "fix CENTGATE_DATABASE_URL: the server cannot start with it")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return fail(
            f"PostgreSQL cannot be reached: {_describe_error(error)}",
            "check CENTGATE_DATABASE_URL: host, port, user, password and database",
        )
    try:
        finding = await _check_connection(connection, deployment)
        process = await connection.fetchval("SELECT pg_backend_pid()")
        if finding.status == "failed" or connection.get_server_pid() == process:
            return finding
        return await _check_pooler(deployment.settings, finding)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return fail(
            f"PostgreSQL is not writable: {_describe_error(error)}",
            "grant the tables to the user of CENTGATE_DATABASE_URL, on a primary server",
        )
    finally:
        await connection.close(timeout=1)


async def _check_connection(connection: Any, deployment: DoctorContext) -> Finding:
    """Check role, schema, write access and durability over an open connection."""
    version = await connection.fetchval("SHOW server_version")
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return fail("this PostgreSQL is a read-only standby", "set CENTGATE_DATABASE_URL to the primary")
    has_tables = await connection.fetchval("SELECT to_regclass('alembic_version')")
    revision = await connection.fetchval(SELECT_REVISION) if has_tables else None
    if (schema_problem := _check_schema(revision)) is not None:
        return schema_problem
    await _write_and_rollback(connection)
    durable = await connection.fetchval("SHOW synchronous_commit")
    if durable == "off" or await connection.fetchval("SHOW fsync") == "off":
        return fail(
            "PostgreSQL confirms writes before they are on disk (synchronous_commit or fsync is off): a "
            "crash loses payments",
            "set both to on, for the server or for this user",
        )
    return await _check_server(connection, deployment, str(version))


async def _check_pooler(settings: Settings, finding: Finding) -> Finding:
    """Check that a pooler in front of PostgreSQL keeps prepared statements if they are used behind it."""
    if not settings.database_prepared_statements:
        return replace(finding, what=f"{finding.what}, behind a pooler: statements are not prepared")
    if not await _is_statement_lost(settings.database_url):
        return replace(finding, what=f"{finding.what}, behind a pooler that keeps prepared statements")
    return fail(
        "the pooler in front of PostgreSQL loses prepared statements: writes fail after money has moved",
        "remove CENTGATE_DATABASE_PREPARED_STATEMENTS, or set max_prepared_statements of PgBouncer",
    )


async def _is_statement_lost(url: str) -> bool:
    """Return True if a statement is unknown after the server process that prepared it is in other use."""
    import asyncpg

    from centgate.payments.database.postgresql import connect

    first, other = [await connect(url) for _ in range(2)]
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            query = "SELECT pg_backend_pid()"
            statement = await first.prepare(query, name=f"doctor_{secrets.token_hex(8)}")
            process = await statement.fetchval()
            for _ in range(MAX_POOLER_CONNECTIONS):
                await other.execute("BEGIN")
                if await other.fetchval(query) == process:
                    break
                await other.execute("ROLLBACK")
            await statement.fetchval()
    except asyncpg.InvalidSQLStatementNameError:
        return True
    except TimeoutError:  # the pooler has no other connection to give
        return False
    finally:
        first.terminate()
        other.terminate()
    return False


async def _write_and_rollback(connection: Any) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(TEST_INSERT)
    finally:
        await transaction.rollback()


async def _check_server(connection: Any, deployment: DoctorContext, version: str) -> Finding:
    """Check the server's version and its connection limit."""
    settings = deployment.settings
    if int(version.partition(".")[0]) < OLDEST_POSTGRESQL:
        return warn(f"PostgreSQL {version} is no longer supported", "upgrade to a supported version")
    max_connections = int(await connection.fetchval("SHOW max_connections"))
    used_connections = settings.workers * settings.database_connections
    if used_connections > max_connections // 2:
        return warn(
            f"one server uses up to {used_connections} connections, PostgreSQL allows {max_connections}",
            "lower CENTGATE_DATABASE_CONNECTIONS, or raise max_connections",
        )
    return ok(f"PostgreSQL {version}, schema {HEAD_REVISION}, durable")


def _check_schema(revision: str | None) -> Finding | None:
    """Compare the schema revision with this version's. Returns the problem, or None."""
    if revision == HEAD_REVISION:
        return None
    if revision is None:
        return warn("the database is empty", "run `centgate migrate`, or let the first start create tables")
    if revision < HEAD_REVISION:
        return fail(
            f"the database has schema {revision}, this version needs {HEAD_REVISION}",
            "run `centgate migrate`",
        )
    return fail(
        f"the database has schema {revision} of a newer version; this one supports {HEAD_REVISION}",
        "upgrade this installation",
    )


def _check_sqlite(path: Path) -> Finding:
    if str(path) == ":memory:":
        return fail("an in-memory journal loses all payments", "set CENTGATE_DATABASE_URL to a file")
    folder = path.parent.resolve()
    if not folder.is_dir():
        return fail(f"the folder {folder} does not exist", "create it, or change CENTGATE_DATABASE_URL")
    if not os.access(folder, os.W_OK):
        return fail(f"the folder {folder} is not writable", "grant the server's user write access")
    free = shutil.disk_usage(folder).free
    if free < MIN_SPACE:
        return fail(f"{folder} has {free >> 20} MB left", "free disk space: otherwise payments are rejected")
    filesystem_type = find_filesystem_type(folder)
    if NETWORK_FILESYSTEMS.match(filesystem_type):
        return fail(
            f"{folder} is on {filesystem_type}, a network filesystem: SQLite can lose payments there",
            "move the file to a local disk, or use PostgreSQL",
        )
    finding = _check_file(path)
    if finding.status != "ok":
        return finding
    if filesystem_type in EPHEMERAL_FILESYSTEMS:
        return warn(
            f"{folder} is on {filesystem_type}: payments are lost with it", "move the file to a volume"
        )
    if free < LOW_SPACE:
        return warn(f"{folder} has {free >> 20} MB left", "free disk space")
    return ok(f"{finding.what}, {filesystem_type or 'local disk'}, {free >> 30} GB free")


def _check_file(path: Path) -> Finding:
    """Check that the journal file is writable and has this version's schema."""
    if not path.exists():
        return ok(f"{path} will be created by the first start")
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=3)
        ) as db:
            has_table = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            row = db.execute(SELECT_REVISION).fetchone() if has_table else None
            if (schema_problem := _check_schema(row[0] if row else None)) is not None:
                return schema_problem
            db.execute("BEGIN IMMEDIATE")
            db.execute(TEST_INSERT)
            db.execute("ROLLBACK")
            mode = db.execute("PRAGMA journal_mode").fetchone()[0]
    except sqlite3.Error as error:
        return fail(f"{path} is not writable: {error}", "check the file's owner and integrity")
    return ok(f"SQLite, schema {HEAD_REVISION}, {mode} mode")


def find_filesystem_type(folder: Path) -> str:
    """Return the filesystem type of a folder; empty if unknown (on systems other than Linux)."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    mounts = [(fields[4], line.split(" - ")[1].split()[0]) for line in lines if (fields := line.split())]
    matches = [mount for mount in mounts if folder.is_relative_to(mount[0].replace("\\040", " "))]
    return max(matches, key=lambda mount: len(mount[0]))[1] if matches else ""


async def check_cache(deployment: DoctorContext) -> Finding:
    """The shared cache is reachable and writable, is a supported version, and evicts entries when full."""
    url = deployment.settings.cache_url
    if url is None:
        return skip("CENTGATE_CACHE_URL is not set: each server has its own cache")
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    location = "the socket" if url.startswith("unix:") else display_origin(url)
    try:
        client = Redis.from_url(url, socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS)
    except ValueError:  # its message may contain a part of the password
        return fail(
            "CENTGATE_CACHE_URL is invalid",
            "use redis://:password@host:6379/0, with special characters in the password written as %XX",
        )
    try:
        key = f"centgate:doctor:{secrets.token_hex(8)}"
        await client.set(key, "1", ex=10)
        await client.delete(key)
        server_info: dict[str, Any] = await client.info()
    except (RedisError, OSError) as error:
        return fail(
            f"{location} cannot be used: {_describe_error(error)}",
            "check CENTGATE_CACHE_URL; meanwhile each server uses its own cache",
        )
    finally:
        await client.aclose()
    return _evaluate_redis(server_info)


def _evaluate_redis(server_info: dict[str, Any]) -> Finding:
    """Check the version and the eviction policy of a Redis or Valkey server."""
    version = str(server_info.get("redis_version", "0"))
    name = (
        f"Valkey {server_info['valkey_version']}" if "valkey_version" in server_info else f"Redis {version}"
    )
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_REDIS:
        return warn(f"{name} is too old", "upgrade to Redis 6.2 or later, or to Valkey")
    max_memory, policy = int(server_info.get("maxmemory", 0)), str(server_info.get("maxmemory_policy", ""))
    if max_memory and policy == "noeviction":
        return warn(
            f"{name} rejects writes once its {max_memory >> 20} MB are full (maxmemory-policy noeviction)",
            "set maxmemory-policy to allkeys-lru: everything in the cache can be recomputed",
        )
    return ok(f"{name}, {f'{max_memory >> 20} MB, {policy}' if max_memory else 'no memory limit'}")


def _describe_error(error: Exception) -> str:
    """Format an error in one line. Do not pass errors about a URL: they may contain its password."""
    if isinstance(error, TimeoutError):
        return "no response in time"
    message = " ".join(str(error).split())
    return message[:200] or type(error).__name__
