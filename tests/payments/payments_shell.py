"""Runner of `centgate payments` commands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from typer.testing import CliRunner, Result

from centgate.cli.main import app

NO_NODES = {"CENTGATE_RPC_8453_ENABLED": "false", "CENTGATE_RPC_84532_ENABLED": "false"}
"""Settings that disable the public nodes."""


def run_payments_command(
    *arguments: str, url: str, width: int = 120, settings: Mapping[str, str] = MappingProxyType({})
) -> Result:
    """Run `centgate payments …` to its end."""
    env = {"COLUMNS": str(width), "CENTGATE_DATABASE_URL": url, **NO_NODES, **settings}
    return CliRunner().invoke(app, ["payments", *arguments], env=env)
