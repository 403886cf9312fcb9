"""`centgate serve` logs how payments with an open outcome will be resolved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from served_api import run_api_process

from centgate.settings import Settings

pytestmark = pytest.mark.extended

RESOLVED = "unknown outcomes are resolved on the chain"
LEFT = "unknown outcomes are left to the facilitator alone"


@pytest.mark.parametrize(
    ("more", "level", "event", "nodes", "next_step"),
    [
        ({}, "warning", LEFT, "no node of eip155:84532", "set CENTGATE_RPC_84532_URL"),
        ({"RPC_84532_URL": "http://127.0.0.1:9/key"}, "info", RESOLVED, "1 own node of eip155:84532", None),
    ],
    ids=["no node", "own node"],
)
def test_start_log_names_nodes(
    settings: Settings,
    tmp_path: Path,
    more: dict[str, str],
    level: str,
    event: str,
    nodes: str,
    next_step: str | None,
) -> None:
    log = tmp_path / "log"

    with run_api_process(settings, log=log, **more):
        written: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]

    (line,) = [line for line in written if line["event"] == event]
    assert (line["level"], line["nodes"], line.get("next_step")) == (level, nodes, next_step)
