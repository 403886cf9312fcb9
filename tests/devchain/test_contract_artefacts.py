"""Artefacts of Solidity contracts: complete, reproducible, and readable."""

import json
from pathlib import Path

import pytest
from compile_contracts import (
    ROOT,
    CompilationFailed,
    build_compiler_input,
    compile_sources,
    find_sources,
    hash_sources,
)

from centgate.solidity import load_contract

FOLDERS = (ROOT / "src", ROOT / "tests")
CONTRACTS = ROOT / "src" / "centgate" / "devchain" / "contracts"


def test_compiler_reproduces_artefacts(solidity_compiler: Path):
    """Compile the two smallest sources, one of each way of compilation; all take half a minute."""
    sources = [
        CONTRACTS / "Erc20.sol",
        ROOT / "src" / "centgate" / "lookups" / "contracts" / "TradeRecords.sol",
    ]

    artefacts = compile_sources(sources, solidity_compiler)

    assert {file: file.read_text() for file in artefacts} == artefacts
    assert {json.loads(text)["settings"]["viaIR"] for text in artefacts.values()} == {False, True}


def test_every_artefact_matches_its_source():
    sources = find_sources(FOLDERS)

    assert len(sources) > 10
    for source in sources:
        artefact = json.loads(source.with_suffix(".json").read_text())
        settings = build_compiler_input(source)["settings"]
        assert artefact["sourceSha256"] == hash_sources(build_compiler_input(source))
        assert artefact["settings"] == {name: settings[name] for name in artefact["settings"]}


def test_compiler_warning_is_failure(solidity_compiler: Path, tmp_path: Path):
    source = tmp_path / "Unused.sol"
    source.write_text(
        "// SPDX-License-Identifier: CC0-1.0\npragma solidity ^0.8.20;\n"
        "contract Unused { function set() external { uint256 value; } }\n"
    )

    with pytest.raises(CompilationFailed, match="Unused local variable"):
        compile_sources([source], solidity_compiler)


def test_loaded_contract_has_signatures():
    erc20 = load_contract(CONTRACTS, "Erc20")

    assert erc20.signature("transferFrom") == "transferFrom(address,address,uint256)"
    assert erc20.constructor_types == ["string", "string", "uint8", "uint256"]
    assert len(erc20.initcode) > len(erc20.runtime_code) > 1000
    with pytest.raises(LookupError, match="no"):
        erc20.signature("no")
