"""Artefacts of Solidity contracts: complete, as compiled, and readable."""

from pathlib import Path

import pytest
from compile_contracts import ROOT, CompilationFailed, compile_sources, find_sources

from centgate.solidity import load_contract

FOLDERS = (ROOT / "src", ROOT / "tests")
CONTRACTS = ROOT / "src" / "centgate" / "devchain" / "contracts"


def test_compiler_reproduces_every_artefact(solidity_compiler: Path):
    artefacts = compile_sources(find_sources(FOLDERS), solidity_compiler)

    assert artefacts
    assert {file: file.read_text() for file in artefacts} == artefacts


def test_every_source_has_artefact():
    assert [source for source in find_sources(FOLDERS) if not source.with_suffix(".json").is_file()] == []


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
