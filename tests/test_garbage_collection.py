"""Garbage collection of server processes: it starts when they serve, without the modules loaded before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from databases import create_sqlite

pytestmark = pytest.mark.extended

PROGRAM = """
import gc, os, sys
from centgate import server
from centgate.api import app
from centgate.cli.main import main

open_runtime, print_ready = app.open_runtime, server.print_ready

def tell(name):
    # in one piece: another process writes into the same pipe
    os.write(1, f"{name} {gc.isenabled()} {gc.get_freeze_count() > 0}\\n".encode())

def open_and_tell(*arguments):
    tell("runtime")
    return open_runtime(*arguments)

def print_and_tell(settings):
    tell("server")
    print_ready(settings)

app.open_runtime, server.print_ready = open_and_tell, print_and_tell
sys.argv = ["centgate", "serve", "--port", "0", "--workers", sys.argv[1]]
main()
"""


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        (1, ["runtime False False", "server True True"]),
        pytest.param(2, [*["runtime True True"] * 2, "server True True"], marks=pytest.mark.extended),
    ],
)
def test_every_process_collects_garbage_while_serving(tmp_path: Path, workers: int, told: list[str]) -> None:
    settings = {"CENTGATE_DATABASE_URL": create_sqlite(tmp_path), "CENTGATE_PHISHING_LIST_URL": "off"}
    offline = {"CENTGATE_RPC_8453_ENABLED": "false"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(workers)],
        env={**os.environ, **settings, **offline},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        lines: list[str] = []
        while not (line := process.stdout.readline()).startswith("ready "):
            assert line, "the server ended"
            lines.append(line.strip())
        process.send_signal(signal.SIGTERM)

    assert sorted(lines) == sorted(told)
