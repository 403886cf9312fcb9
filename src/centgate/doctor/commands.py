"""`centgate doctor`: hold this deployment's settings against the world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from centgate.doctor.check import Check, Result, Status
    from centgate.settings import Settings

COLOURS: dict[Status, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}

app = typer.Typer()


@app.command()
def doctor(
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="A check to make, may be repeated; `provider` for all providers. All unless given."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, in a shape that stays.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Say what each check looks at, and end.")] = False,
    send_test_alert: Annotated[
        bool, typer.Option("--send-test-alert", help="Send an alert to CENTGATE_ALERT_WEBHOOK.")
    ] = False,
) -> None:
    """Hold this deployment's settings against the world, and say how to mend what is wrong.

    Looks at money (address, token, facilitator, node), the public URL, database, cache, clock, alerts,
    metrics and every provider; moves no money. Exit code 0 when nothing failed, 1 when something did, 2 for
    settings that cannot be read. `--list` says what each check looks at.
    """
    from centgate.doctor.checks import chosen
    from centgate.terminal import fail, settings_given

    try:
        checks = chosen(only or [])
    except ValueError as error:
        fail(str(error), 2)
    if listing:
        _list(checks)
        return
    results = _examined(settings_given(), checks, send_test_alert=send_test_alert)
    if as_json:
        _print_json(results)
    else:
        _print_table(results)
    raise typer.Exit(1 if _worst(results) == "failed" else 0)


def _examined(settings: Settings, checks: Sequence[Check], *, send_test_alert: bool) -> list[Result]:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from centgate.doctor.check import examine
    from centgate.doctor.deployment import open_deployment
    from centgate.log import set_up_logs

    set_up_logs("error")

    async def run() -> list[Result]:
        # names are looked up in threads, and where nothing answers each takes seconds
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max(8, len(checks))))
        async with open_deployment(settings, send_test_alert=send_test_alert) as deployment:
            return await examine(deployment, checks)

    return asyncio.run(run())


def _worst(results: Sequence[Result]) -> Status:
    found = {result.finding.status for result in results}
    return "failed" if "failed" in found else "warning" if "warning" in found else "ok"


def _print_json(results: Sequence[Result]) -> None:
    import orjson

    checks: list[dict[str, Any]] = [
        {
            "name": result.name,
            "status": result.finding.status,
            "what": result.finding.what,
            "mend": result.finding.mend,
            "seconds": result.seconds,
        }
        for result in results
    ]
    report = {"status": _worst(results), "checks": checks}
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def _print_table(results: Sequence[Result]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "", "finding", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for result in results:
        finding = result.finding
        told = Text(finding.what)
        if finding.mend:
            told.append(f"\n-> {finding.mend}", "bold" if finding.status == "failed" else "dim")
        table.add_row(result.name, Text(finding.status, COLOURS[finding.status]), told)
    console = Console(highlight=False)
    console.print(table)
    counts = Counter(result.finding.status for result in results)
    console.print("\n" + ", ".join(f"{counts[status]} {status}" for status in COLOURS if counts[status]))


def _list(checks: Sequence[Check]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for check in checks:
        table.add_row(check.name, check.about)
    Console(highlight=False).print(table)
