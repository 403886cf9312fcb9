"""Merge the proxy claims of registries with the on-chain finding. The chain takes precedence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from centgate.crypto.contract.account_finding import AccountEvidence, AccountFinding
from centgate.crypto.contract.contracts import ProxyClaim, SourceRegistry

Claims = Sequence[tuple[SourceRegistry, ProxyClaim]]


def apply_registry_claims(finding: AccountFinding | None, claims: Claims) -> AccountFinding:
    """Merge a finding with registry claims; use the claims alone if the chain was not read.

    Adds a note if it stays unknown who can change the code of a proxy.
    """
    finding = _merge(finding, claims)
    if not finding.is_proxy or finding.upgradeable is not None:
        return finding
    note = "whether the code behind this proxy can be changed, and by whom, is not known"
    return replace(finding, notes=(*finding.notes, note))


def _merge(finding: AccountFinding | None, claims: Claims) -> AccountFinding:
    claiming: Claims = [(registry, claim) for registry, claim in claims if claim.is_proxy]
    denying: Claims = [(registry, claim) for registry, claim in claims if not claim.is_proxy]
    if finding is None:
        return (
            _finding_from_claims(claiming)
            or _finding_from_denials(denying)
            or AccountFinding("unknown", is_proxy=None)
        )
    if finding.is_proxy:
        return replace(finding, notes=(*finding.notes, *_note_stale_claims(finding, claiming)))
    if finding.has_delegatecall is False:
        contradictions = tuple(
            f"{registry} reports a proxy, but the code at this address cannot run other code"
            for registry, _ in claiming
        )
        return replace(finding, notes=(*finding.notes, *contradictions))
    if claim := _finding_from_claims(claiming):
        registry = claim.evidence[0].source
        note = f"only {registry} reports that this is a proxy; the chain does not confirm it"
        evidence = (*finding.evidence, *claim.evidence)
        notes = (*finding.notes, note, *claim.notes)
        return replace(
            claim,
            account=finding.account,
            evidence=evidence,
            notes=notes,
            has_delegatecall=finding.has_delegatecall,
        )
    if finding.has_delegatecall is None:
        return finding
    denial = _finding_from_denials(denying)
    if denial and finding.is_proxy is None and not finding.evidence:
        return replace(finding, is_proxy=False, evidence=denial.evidence)
    if finding.is_proxy is None and not finding.evidence:
        note = "its code can run other contracts' code; whether it is an uncommon kind of proxy is not known"
        return replace(finding, notes=(*finding.notes, note))
    return finding


def _finding_from_claims(claiming: Claims) -> AccountFinding | None:
    """Return the finding of the first claim with a proxy kind, else of the first claim."""
    if not claiming:
        return None
    registry, claim = next((each for each in claiming if each[1].kind), claiming[0])
    left_out = f"{registry} lists {claim.omitted_count} more implementations, which are left out here"
    return AccountFinding(
        "delegated_wallet" if claim.kind == "eip7702" else "contract",
        is_proxy=True,
        kind=claim.kind,
        implementations=tuple(each.address for each in claim.implementations),
        upgradeable=True if claim.kind == "eip7702" else None,
        evidence=(_claim_evidence(registry, claim),),
        notes=(left_out,) if claim.omitted_count else (),
    )


def _finding_from_denials(denying: Claims) -> AccountFinding | None:
    if not denying:
        return None
    return AccountFinding("contract", is_proxy=False, evidence=(_claim_evidence(*denying[0]),))


def _note_stale_claims(finding: AccountFinding, claiming: Claims) -> Iterator[str]:
    """Yield a note for each registry whose implementation differs from the chain's."""
    for registry, claim in claiming:
        addresses = [each.address for each in claim.implementations]
        if addresses and not {*addresses} & {*finding.implementations}:
            where = "the slot" if any("storage" in each.field for each in finding.evidence) else "the chain"
            yield (
                f"{registry} gives {addresses[0]} as implementation, {where} has "
                f"{finding.implementations[0]}: "
                "the chain takes precedence"
            )


def _claim_evidence(registry: SourceRegistry, claim: ProxyClaim) -> AccountEvidence:
    return AccountEvidence(registry, claim.field, claim.value)
