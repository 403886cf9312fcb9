"""Findings of the doctor's checks, for its command and for the operator's console."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

FindingStatus = Literal["ok", "warning", "failed", "skipped"]


class Finding(Struct, frozen=True):
    """Result of a check, for the operator."""

    status: FindingStatus
    what: str
    mend: str | None = None
    """How to fix it; None if there is nothing to do."""


class CheckResult(Struct, frozen=True):
    """Finding of a completed check, with its duration."""

    name: str
    finding: Finding
    duration: float
