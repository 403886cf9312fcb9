"""The packages of the JavaScript client are pinned."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent


def test_packages_are_pinned() -> None:
    package = json.loads((HERE / "package.json").read_text(encoding="utf-8"))

    assert package["dependencies"] == {
        "@x402/core": "2.27.0",
        "@x402/evm": "2.27.0",
        "@x402/extensions": "2.27.0",
        "@x402/fetch": "2.27.0",
        "mppx": "0.11.0",
        "viem": "2.57.0",
    }


def test_lock_names_no_registry() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))

    assert [package for package in lock["packages"].values() if "resolved" in package] == []
