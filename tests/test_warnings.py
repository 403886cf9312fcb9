"""Who writes warnings: modules that only build answers return them, and know no trace of a request."""

from __future__ import annotations

import re
from pathlib import Path

import centgate

SOURCE = Path(centgate.__file__).parent


def test_answers_and_rules_know_no_trace() -> None:
    files = [file for folder in ("answers", "crypto") for file in (SOURCE / folder).rglob("*.py")]

    named = {
        str(file.relative_to(SOURCE))
        for file in files
        if re.search(r"\bRequestTrace\b|\.trace\b", file.read_text(encoding="utf-8"))
    }

    assert files
    assert named == set()
