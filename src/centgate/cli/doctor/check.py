"""Checks: run one test of a deployment each, and report the finding with its fix."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from centgate.findings import CheckResult, Finding, FindingStatus

if TYPE_CHECKING:
    from centgate.cli.doctor.context import DoctorContext

CHECK_TIMEOUT = 8.0
"""Default timeout of a check."""


def ok(what: str) -> Finding:
    """Return a finding without problems."""
    return Finding("ok", what)


def warn(what: str, mend: str) -> Finding:
    """Return a finding that works, but may be unintended or stop working."""
    return Finding("warning", what, mend)


def fail(what: str, mend: str) -> Finding:
    """Return a finding that does not work."""
    return Finding("failed", what, mend)


def skip(what: str, mend: str | None = None) -> Finding:
    """Return a finding for a check that does not apply or cannot run."""
    return Finding("skipped", what, mend)


_SEVERITY: tuple[FindingStatus, ...] = ("failed", "warning", "ok", "skipped")


async def check_each(
    contexts: Mapping[str, DoctorContext], check: Callable[[DoctorContext], Awaitable[Finding]]
) -> Finding:
    """Run a check in each context; the finding has the worst status, and names the context of each part."""
    findings = await asyncio.gather(*map(check, contexts.values()))
    if len(findings) == 1:
        return findings[0]
    present = {each.status for each in findings}
    status: FindingStatus = next(each for each in _SEVERITY if each in present)
    mends = [each.mend for each in findings if each.mend and each.status == status]
    return Finding(
        status,
        "; ".join(f"{name}: {each.what}" for name, each in zip(contexts, findings, strict=True)),
        "; ".join(dict.fromkeys(mends)) or None,
    )


class Check(Struct, frozen=True):
    """Named check."""

    name: str
    run: Callable[[DoctorContext], Awaitable[Finding]]
    timeout: float = CHECK_TIMEOUT
    text: str | None = None

    @property
    def description(self) -> str:
        """Description of the check, for `--list` and the documentation."""
        return self.text or cleandoc(self.run.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


async def run_checks(deployment: DoctorContext, checks: Sequence[Check]) -> list[CheckResult]:
    """Run all checks concurrently, each with its own timeout. A failing check does not affect the others."""
    return await asyncio.gather(*(_run_check(check, deployment) for check in checks))


async def _run_check(check: Check, deployment: DoctorContext) -> CheckResult:
    started = time.perf_counter()
    finding = await _run_with_timeout(check, deployment)
    seconds = round(time.perf_counter() - started, 3)
    return CheckResult(check.name, _redact(deployment.secrets, finding), seconds)


async def _run_with_timeout(check: Check, deployment: DoctorContext) -> Finding:
    try:
        async with asyncio.timeout(check.timeout):
            return await check.run(deployment)
    except TimeoutError:
        return fail(f"no response within {check.timeout:g} s", "check that this machine can reach it")
    except Exception as error:  # noqa: BLE001 - the results of the other checks must be shown
        return fail(
            f"the check itself failed: {type(error).__name__}: {error}"[:300],
            "please report this; the other checks are valid",
        )


def _redact(secrets: Collection[str], finding: Finding) -> Finding:
    """Replace secrets in the finding's text."""
    what, mend = finding.what, finding.mend
    for secret in secrets:
        what = what.replace(secret, "…")
        mend = mend.replace(secret, "…") if mend else mend
    return replace(finding, what=what, mend=mend)
