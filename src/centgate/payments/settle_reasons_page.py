"""Prints the page of a facilitator's reasons, from their table."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.payments.settle_reasons import REASONS, SOURCES, ReasonCertainty

_INTRODUCTION = """# Reasons of facilitators

What a facilitator's refusal says about the money depends on its reason. The reasons are a closed table: one
that is not in it is in doubt, whatever it begins with.

- **payload**: decided from the payload, the terms, and the facilitator's own configuration or policy. This
  presentation of the payment sent nothing.
- **chain_state**: decided before sending, from what a node or the clock said. This presentation sent nothing,
  but the refusal may be the effect of an earlier sending of the same payment, or of a node that failed.
- **in_doubt**: can be said after sending.

The settle functions of all SDKs verify again and return verify's reason as their own. When a node rejects the
broadcast itself, they read the reason from the error's text: the reasons about balance, signature and
validity can come about in this way too. Reasons of other schemes and of Permit2 are not listed.

This page is written by `make docs`.

## Sources

| name | version | files |
| --- | --- | --- |
"""
_HEADS: Mapping[ReasonCertainty, str] = {
    "payload": "payload: this presentation sent nothing",
    "chain_state": "chain_state: nothing was sent, but an earlier sending may be the cause",
    "in_doubt": "in_doubt: the money may have moved",
}


def render_page() -> str:
    """Return the documentation page of all reasons as Markdown."""
    sources = "".join(f"| {source.name} | {source.version} | {source.files} |\n" for source in SOURCES)
    return _INTRODUCTION + sources + "".join(map(_render_section, _HEADS))


def _render_section(certainty: ReasonCertainty) -> str:
    rows = "".join(
        f"| `{name}` | {reason.meaning} | {', '.join(source.name for source in reason.sources)} |\n"
        for name, reason in REASONS.items()
        if reason.certainty == certainty
    )
    return f"\n## {_HEADS[certainty]}\n\n| reason | meaning | named by |\n| --- | --- | --- |\n{rows}"


if __name__ == "__main__":
    print(render_page(), end="")  # noqa: T201 - it is what the program is for
