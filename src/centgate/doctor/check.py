"""What a check is: one question about a deployment, what came of it, and how to mend what is wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from centgate.doctor.deployment import Deployment

Status = Literal["ok", "warning", "failed", "skipped"]
SECONDS = 8.0
"""How long a check may take."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a check, for whoever runs the deployment."""

    status: Status
    what: str
    mend: str | None = None
    """What to do about it; None where there is nothing to do."""


def ok(what: str) -> Finding:
    """All is as it should be."""
    return Finding("ok", what)


def warning(what: str, mend: str) -> Finding:
    """It works, and may not be meant, or not work for long."""
    return Finding("warning", what, mend)


def failed(what: str, mend: str) -> Finding:
    """It does not work."""
    return Finding("failed", what, mend)


def skipped(what: str, mend: str | None = None) -> Finding:
    """There is nothing to look at, or nothing to look with."""
    return Finding("skipped", what, mend)


@dataclass(frozen=True)
class Check:
    """A check by its name."""

    name: str
    ask: Callable[[Deployment], Awaitable[Finding]]
    seconds: float = SECONDS
    text: str | None = None

    @property
    def about(self) -> str:
        """What it looks at: its line in the documentation."""
        return self.text or cleandoc(self.ask.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Result:
    """A check that was made."""

    name: str
    finding: Finding
    seconds: float


async def examine(deployment: Deployment, checks: Sequence[Check]) -> list[Result]:
    """Make all checks at the same time, each within its deadline; none can spoil another."""
    return await asyncio.gather(*(_result(check, deployment) for check in checks))


async def _result(check: Check, deployment: Deployment) -> Result:
    started = time.perf_counter()
    finding = await _finding(check, deployment)
    seconds = round(time.perf_counter() - started, 3)
    return Result(check.name, _without(deployment.secrets, finding), seconds)


async def _finding(check: Check, deployment: Deployment) -> Finding:
    try:
        async with asyncio.timeout(check.seconds):
            return await check.ask(deployment)
    except TimeoutError:
        return failed(
            f"there was no answer within {check.seconds:g} s", "see whether this machine can reach it"
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks are to be seen
        return failed(
            f"the check itself failed: {type(error).__name__}: {error}"[:300],
            "please report this; the other checks stand",
        )


def _without(secrets: Collection[str], finding: Finding) -> Finding:
    """The finding without what is secret, whoever repeated it."""
    what, mend = finding.what, finding.mend
    for secret in secrets:
        what = what.replace(secret, "…")
        mend = mend.replace(secret, "…") if mend else mend
    return replace(finding, what=what, mend=mend)
