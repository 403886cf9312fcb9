"""What registries claim of a proxy, held against what was seen on the chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from centgate.facts.contracts import ProxyClaim, Registry
from centgate.verdicts.proxies import Evidence, Finding

Claims = Sequence[tuple[Registry, ProxyClaim]]


def with_claims(found: Finding | None, claims: Claims) -> Finding:
    """A finding held against what registries claim; theirs alone where the chain was not seen.

    What stays unknown of a proxy is named in the notes.
    """
    found = _weighed(found, claims)
    if not found.is_proxy or found.upgradeable is not None:
        return found
    note = "whether the code behind this proxy can be changed, and by whom, could not be found out"
    return replace(found, notes=(*found.notes, note))


def _weighed(found: Finding | None, claims: Claims) -> Finding:
    saying: Claims = [(registry, claim) for registry, claim in claims if claim.is_proxy]
    denying: Claims = [(registry, claim) for registry, claim in claims if not claim.is_proxy]
    if found is None:
        return _claimed(saying) or _denied(denying) or Finding("unknown", is_proxy=None)
    if found.is_proxy:
        return replace(found, notes=(*found.notes, *_stale(found, saying)))
    if not found.delegates:
        contradicted = tuple(
            f"{registry} calls this a proxy, but the code at this address cannot run any other"
            for registry, _ in saying
        )
        return replace(found, notes=(*found.notes, *contradicted))
    if claimed := _claimed(saying):
        registry = claimed.evidence[0].source
        note = f"that this is a proxy is known from {registry} alone; the chain does not confirm it"
        evidence = (*found.evidence, *claimed.evidence)
        notes = (*found.notes, note, *claimed.notes)
        return replace(claimed, account=found.account, evidence=evidence, notes=notes, delegates=True)
    denied = _denied(denying)
    if denied and found.is_proxy is None and not found.evidence:
        return replace(found, is_proxy=False, evidence=denied.evidence)
    if found.is_proxy is None and not found.evidence:
        note = "its code can run code from elsewhere; whether it is a proxy of an uncommon kind is not known"
        return replace(found, notes=(*found.notes, note))
    return found


def _claimed(saying: Claims) -> Finding | None:
    """What a registry says that calls it a proxy: the first that knows the kind, else the first."""
    if not saying:
        return None
    registry, claim = next((each for each in saying if each[1].kind), saying[0])
    left_out = f"{registry} names {claim.left_out} more implementations, which are left out here"
    return Finding(
        "delegated_wallet" if claim.kind == "eip7702" else "contract",
        is_proxy=True,
        kind=claim.kind,
        implementations=tuple(each.address for each in claim.implementations),
        upgradeable=True if claim.kind == "eip7702" else None,
        evidence=(_said(registry, claim),),
        notes=(left_out,) if claim.left_out else (),
    )


def _denied(denying: Claims) -> Finding | None:
    if not denying:
        return None
    return Finding("contract", is_proxy=False, evidence=(_said(*denying[0]),))


def _stale(found: Finding, saying: Claims) -> Iterator[str]:
    """Where a registry names other code than the chain does."""
    for registry, claim in saying:
        named = [each.address for each in claim.implementations]
        if named and not {*named} & {*found.implementations}:
            says = "the slot" if any("storage" in each.field for each in found.evidence) else "the chain"
            yield (
                f"{registry} names {named[0]} as implementation, {says} says {found.implementations[0]}: "
                "the chain is right"
            )


def _said(registry: Registry, claim: ProxyClaim) -> Evidence:
    return Evidence(registry, claim.field, claim.value)
