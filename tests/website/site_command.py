"""The command `centgate site build`, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from centgate.cli.main import app


def run_build(*arguments: str, **environment: str) -> Result:
    """Run `centgate site build` with arguments and variables of the environment."""
    return CliRunner().invoke(app, ["site", "build", *arguments], env=environment)
