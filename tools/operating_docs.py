"""Update the transcripts in docs/operating.md by running their commands on a journal of four payments.

.venv/bin/python tools/operating_docs.py

A transcript is a `console` block whose first line is `$ centgate …`. The lines after it are the command's
output.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "operating.md"
_TRANSCRIPT = re.compile(r"(?<=^```console\n)\$ (centgate .*)\n(?:.*\n)*?(?=^```$)", re.MULTILINE)
_SETTINGS = {
    "CENTGATE_DATABASE_URL": "sqlite:///centgate.db",
    "CENTGATE_NETWORK": "eip155:84532",
    "CENTGATE_PAY_TO": "0x2e988a386a799f506693793c6a5af6b54dfaabfb",
    "CENTGATE_RPC_84532_ENABLED": "false",  # no node is asked
    "COLUMNS": "100",
    "NO_COLOR": "1",
}
_SUBMITTED = 1_793_641_548.0
"""2026-11-02T17:45:48Z: long ago, so that the answer of a settled payment can no longer be fetched."""


Run = Callable[[list[str], Mapping[str, str], Path], subprocess.CompletedProcess[str]]
"""Function that runs `centgate` with arguments, an environment and a folder."""


def run_interpreter(
    arguments: list[str], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run `centgate` in an interpreter of its own."""
    command = [sys.executable, "-m", "centgate", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )


def render_page(text: str, run: Run = run_interpreter) -> str:
    """Return the page with the current output of each command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        create_journal(folder, run)
        return _TRANSCRIPT.sub(lambda found: f"$ {found[1]}\n{run_command(found[1], folder, run)}", text)


def run_command(command: str, folder: Path, run: Run) -> str:
    """Run a `centgate` command in a folder and return its output, with a fixed amount of free disk space."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
    done = run(shlex.split(command)[1:], {**environment, **_SETTINGS}, folder)
    output = re.sub(r"\w+, [\d,]+ GB free", "ext4, 72 GB free", done.stdout + done.stderr)
    return "\n".join(line.rstrip() for line in output.splitlines()) + "\n"


def create_journal(folder: Path, run: Run) -> None:
    """Create a journal with a payment that was delivered, one refused, one settled, and one open."""
    run_command("centgate migrate", folder, run)
    with closing(sqlite3.connect(folder / "centgate.db")) as connection, connection:
        for row in map(_build_row, range(4), ("delivered", "refused", "settled", "settling")):
            columns, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO payments ({columns}) VALUES ({marks})", tuple(row.values()))


def _build_row(number: int, state: str) -> Mapping[str, Any]:
    """Return a row of the table of payments."""
    at = _SUBMITTED + 60 * number
    is_settled = state in ("settled", "delivered")
    return {
        "network": "eip155:84532",
        "asset": "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
        "payer": "0x" + _hash(f"payer {number}")[:40],
        "nonce": "0x" + _hash(f"nonce {number}"),
        "state": state,
        "binding": _hash("request"),
        "service": "phishing-check",
        "proof": _hash("signature"),
        "signer_known": 1,
        "amount": "10000",
        "pay_to": _SETTINGS["CENTGATE_PAY_TO"],
        "valid_before": int(at) + 120,
        "transaction": "0x" + _hash(f"transaction {number}") if is_settled else None,
        "reason": "insufficient_funds" if state == "refused" else None,
        "created_at": at,
        "updated_at": at + 2,
        "settled_at": at + 2 if is_settled else None,
        "request_id": "req_" + _hash("answer")[:24] if state == "delivered" else None,
        "status": 200 if state == "delivered" else None,
    }


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def main() -> None:
    """Update the page."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
