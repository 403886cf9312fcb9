"""Base model of the answers' data."""

from __future__ import annotations

from centgate.client.wire_model import ApiModel


class AnswerData(ApiModel):
    """Part of an answer. Fields added by newer servers are dropped here, but are in `answer.data`."""
