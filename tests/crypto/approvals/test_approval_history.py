"""Warnings about approvals that an answer may lack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from centgate.crypto.approvals.approval_evidence import ApprovalEvidence
from centgate.crypto.approvals.approval_history import ApprovalHistory, collect_warnings
from centgate.crypto.approvals.reported import (
    ApprovalScan,
    GrantScan,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
    ReportedSpender,
    ReportedToken,
)

APPROVAL = ReportedApproval(
    ReportedToken("0x" + "a0" * 20),
    ReportedSpender("0x" + "11" * 20, source_verified=True),
    "rpc",
    amount=5,
    amount_text="5",
)
LOGS = ApprovalScan(
    ReportedApprovals((APPROVAL,), 1),
    from_block=0,
    to_block=1000,
    head=1000,
    end_time=1_800_000_000,
    collectibles=0,
)
GRANTS = GrantScan((), from_block=0, to_block=1000, head=1000)


def list_gaps(scan: ApprovalScan, grants: GrantScan | None) -> list[str]:
    """Return the warnings about missing approvals of a wallet with one approval."""
    history = ApprovalHistory(scan.approvals, "rpc", scan, grants)
    evidence = [ApprovalEvidence(APPROVAL, 1, scan.end_time)]
    words = ("Event logs", "Grants", "Events of Permit2", "Approval events")
    return [each for each in collect_warnings(history, OnchainState(), evidence) if each.startswith(words)]


def test_complete_logs_and_grants_have_no_gap():
    assert list_gaps(LOGS, GRANTS) == []
    assert list_gaps(LOGS, replace(GRANTS, from_block=900)) == []  # the coverage names older grants


@pytest.mark.parametrize(
    ("grants", "warning"),
    [
        (None, "Grants inside Permit2 could not be read"),
        (replace(GRANTS, lacks_recent=True), "Grants inside Permit2 in the newest blocks could not be read"),
        (replace(GRANTS, unread=2), "Events of Permit2 that could not be read: 2"),
    ],
)
def test_missing_grants_are_said_without_logs(grants: GrantScan | None, warning: str):
    assert list_gaps(LOGS, grants) == [warning]


def test_missing_logs_are_said_beside_grants():
    scan = replace(LOGS, from_block=800)

    assert list_gaps(scan, replace(GRANTS, from_block=900)) == [
        "Event logs were read for blocks 800 to 1000; older approvals may exist",
    ]


def test_unread_events_are_not_said_to_be_of_some_contract():
    assert list_gaps(replace(LOGS, unread=3), GRANTS) == [
        "Event logs were read for blocks 0 to 1000; some of them could not be read",
        "Approval events that could not be read, or not be told to be of tokens or of NFTs, which are left "
        "out: 3",
    ]
