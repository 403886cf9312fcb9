"""Rules on a token's contract: fraud, published source, and the powers of its owner."""

from __future__ import annotations

from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import TokenRule

_OWNER = "goplus:owner_address"
_OWNERS = (_OWNER, "onchain:owner.address", "onchain:owner.kind")


def _controls_everything(evidence: TokenEvidence) -> bool:
    """True if one key may change taxes, exclude holders and make more of the token."""
    flags = evidence.flags
    powers = (flags.tax_modifiable, flags.blacklists, flags.mintable)
    return all(power is True for power in powers) and evidence.ownership.is_unchecked


CONTRACT_RULES: tuple[TokenRule, ...] = (
    # fraud
    TokenRule(
        "fake_token",
        "critical",
        "imitation of another token",
        "It imitates another token's name or symbol.",
        lambda evidence: evidence.flags.fake is True or evidence.flags.genuine is False,
        ("goplus:fake_token.value", "goplus:fake_token.true_token_address", "goplus:is_true_token"),
    ),
    TokenRule(
        "airdrop_scam",
        "critical",
        "fraudulent airdrops",
        "It is sent to holders unasked to lure them into a fraud.",
        lambda evidence: evidence.flags.airdrop_scam is True,
        ("goplus:is_airdrop_scam",),
    ),
    TokenRule(
        "gas_abuse",
        "critical",
        "abuse of the holder's gas",
        "Moving it makes the holder pay gas for the work of others.",
        lambda evidence: evidence.flags.gas_abuse is True,
        ("goplus:gas_abuse",),
    ),
    TokenRule(
        "serial_creator",
        "low",
        "other honeypots of its creator",
        "Its creator is linked to honeypots.",
        lambda evidence: evidence.flags.serial_creator is True,
        ("goplus:honeypot_with_same_creator", "goplus:creator_address"),
    ),
    # contract
    TokenRule(
        "closed_source",
        "high",
        "published source code",
        "Its source code is not published, so what it does cannot be checked.",
        lambda evidence: evidence.contract.is_closed_source,
        (
            "goplus:is_open_source",
            "honeypotis:contractCode.rootOpenSource",
            "honeypotis:contractCode.openSource",
            "honeypotis:summary.flags",
            "registries:implementation",
        ),
    ),
    TokenRule(
        "upgradeable",
        "medium",
        "whether its code can be replaced",
        "It is a proxy: the account that controls it can replace its code.",
        lambda evidence: evidence.contract.is_upgradeable is True,
        ("goplus:is_proxy", "honeypotis:contractCode.isProxy"),
        "code_power",
    ),
    TokenRule(
        "external_call",
        "medium",
        "calls to other contracts",
        "It calls other contracts while it moves, so what it does can change with them.",
        lambda evidence: evidence.flags.external_call is True,
        ("goplus:external_call",),
        "habit",
    ),
    # owner privileges
    TokenRule(
        "owner_changes_balances",
        "critical",
        "whether its owner can change balances",
        "Its owner can change any holder's balance.",
        lambda evidence: evidence.flags.changes_balances is True,
        ("goplus:owner_change_balance", *_OWNERS),
        "power",
    ),
    TokenRule(
        "self_destructs",
        "critical",
        "self-destruction",
        "It can be destroyed, and every holding with it.",
        lambda evidence: evidence.flags.self_destructs is True,
        ("goplus:selfdestruct", *_OWNERS),
        "code_power",
    ),
    TokenRule(
        "hidden_owner",
        "high",
        "a hidden owner",
        "An account keeps control of it without appearing as its owner.",
        lambda evidence: evidence.flags.hidden_owner is True,
        ("goplus:hidden_owner", *_OWNERS),
        "hidden_power",
    ),
    TokenRule(
        "ownership_reclaimable",
        "high",
        "whether ownership can be taken back",
        "An ownership that was given up can be taken back.",
        lambda evidence: evidence.flags.reclaimable is True,
        ("goplus:can_take_back_ownership", *_OWNERS),
        "hidden_power",
    ),
    TokenRule(
        "owner_can_tax_one",
        "high",
        "taxes for single holders",
        "Its owner can set a tax for a single holder.",
        lambda evidence: evidence.flags.personal_tax_modifiable is True,
        ("goplus:personal_slippage_modifiable", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "owner_can_pause",
        "high",
        "whether its owner can stop transfers",
        "Its owner can stop all transfers, sales included.",
        lambda evidence: evidence.flags.pausable is True,
        ("goplus:transfer_pausable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_change_tax",
        "medium",
        "whether its owner can change taxes",
        "Its owner can change its taxes.",
        lambda evidence: evidence.flags.tax_modifiable is True,
        ("goplus:slippage_modifiable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_blacklist",
        "medium",
        "a blacklist",
        "It has a blacklist: single holders can be kept from selling.",
        lambda evidence: evidence.flags.blacklists is True,
        ("goplus:is_blacklisted", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "owner_can_mint",
        "medium",
        "whether more of it can be made",
        "More of it can be made, which takes value from every holder.",
        lambda evidence: evidence.flags.mintable is True,
        ("goplus:is_mintable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_change_limits",
        "medium",
        "whether its owner can change trading limits",
        "Its owner can change how much may be traded at once.",
        lambda evidence: evidence.flags.anti_whale_modifiable is True,
        ("goplus:anti_whale_modifiable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_controls_everything",
        "high",
        "the owner's powers together",
        "One account can change its taxes, exclude holders and make more of it.",
        _controls_everything,
        ("goplus:slippage_modifiable", "goplus:is_blacklisted", "goplus:is_mintable", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "trading_limits",
        "low",
        "trading limits",
        "It limits how much may be traded or held.",
        lambda evidence: evidence.flags.anti_whale is True,
        ("goplus:is_anti_whale",),
    ),
    TokenRule(
        "whitelist",
        "low",
        "a whitelist",
        "It has a whitelist: some holders are spared limits or taxes.",
        lambda evidence: evidence.flags.whitelists is True,
        ("goplus:is_whitelisted",),
    ),
)
