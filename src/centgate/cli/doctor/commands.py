"""`centgate doctor`: check this deployment's settings against its environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from centgate.cli.doctor.check import Check
    from centgate.findings import CheckResult, FindingStatus
    from centgate.settings import Settings

COLOURS: dict[FindingStatus, str] = {
    "ok": "green",
    "warning": "yellow",
    "failed": "bold red",
    "skipped": "dim",
}

app = typer.Typer()


@app.command()
def doctor(
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A check to run, may be repeated; `provider` for all providers. Default: all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, in a stable format.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List all checks and exit.")] = False,
    send_test_alert: Annotated[
        bool,
        typer.Option(
            "--send-test-alert",
            help="Send an alert to CENTGATE_ALERT_WEBHOOK, and a ping to CENTGATE_WEBHOOK_URL.",
        ),
    ] = False,
) -> None:
    """Check this deployment's settings against its environment, and say how to fix each problem.

    Covers payments (address, token, facilitator, node), the public URL, database, cache, clock, alerts,
    metrics and every provider; moves no money. Exit code 0 if no check failed, 1 if one failed, 2 for
    invalid settings. `--list` describes each check.
    """
    from centgate.cli.doctor.registry import select_checks
    from centgate.cli.server_settings import load_settings
    from centgate.cli.terminal import exit_with_error

    try:
        checks = select_checks(only or [])
    except ValueError as error:
        exit_with_error(str(error), 2)
    if listing:
        _print_list(checks)
        return
    results = _run_checks(load_settings(), checks, send_test_alert=send_test_alert)
    if as_json:
        _print_json(results)
    else:
        _print_table(results)
    raise typer.Exit(1 if _overall_status(results) == "failed" else 0)


def _run_checks(settings: Settings, checks: Sequence[Check], *, send_test_alert: bool) -> list[CheckResult]:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from centgate.cli.doctor.check import run_checks
    from centgate.cli.doctor.context import open_context
    from centgate.log import configure_logging

    configure_logging("error")

    async def run() -> list[CheckResult]:
        # DNS lookups run in threads, and each takes seconds if no server responds
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max(8, len(checks))))
        async with open_context(settings, send_test_alert=send_test_alert) as deployment:
            return await run_checks(deployment, checks)

    return asyncio.run(run())


def _overall_status(results: Sequence[CheckResult]) -> FindingStatus:
    statuses = {result.finding.status for result in results}
    return "failed" if "failed" in statuses else "warning" if "warning" in statuses else "ok"


def _print_json(results: Sequence[CheckResult]) -> None:
    import orjson

    checks: list[dict[str, Any]] = [
        {
            "name": result.name,
            "status": result.finding.status,
            "what": result.finding.what,
            "mend": result.finding.mend,
            "seconds": result.duration,
        }
        for result in results
    ]
    report = {"status": _overall_status(results), "checks": checks}
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def _print_table(results: Sequence[CheckResult]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "", "finding", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for result in results:
        finding = result.finding
        text = Text(finding.what)
        if finding.mend:
            text.append(f"\n-> {finding.mend}", "bold" if finding.status == "failed" else "dim")
        table.add_row(result.name, Text(finding.status, COLOURS[finding.status]), text)
    console = Console(highlight=False)
    console.print(table)
    counts = Counter(result.finding.status for result in results)
    console.print("\n" + ", ".join(f"{counts[status]} {status}" for status in COLOURS if counts[status]))


def _print_list(checks: Sequence[Check]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for check in checks:
        table.add_row(check.name, check.description)
    Console(highlight=False).print(table)
