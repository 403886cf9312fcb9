"""Output of the demonstration."""

from __future__ import annotations

from io import StringIO

import httpx
import pytest
from rich.console import Console

from centgate.cli.demo.buyer import DemoBuyer
from centgate.devchain.devnet import DevChain
from centgate.settings import Settings


@pytest.mark.extended
def test_text_of_answers_is_no_markup() -> None:
    output = StringIO()
    chain = DevChain("http://127.0.0.1:1", "http://127.0.0.1:1", "in-process EVM")
    with httpx.Client() as http:
        buyer = DemoBuyer(Console(file=output, soft_wrap=True), chain, Settings(), http)
        buyer.print_warnings({"warnings": ["urls[a] was not read"]})

    assert output.getvalue() == "   warning urls[a] was not read\n"
