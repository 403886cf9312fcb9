"""Compile Solidity sources to artefacts, one JSON file beside each source.

Usage: `python tools/compile_contracts.py [folder ...]`; without folders it compiles all sources of `src` and
`tests`. The compiler is npm's `solc` in the version of `tools/solidity`, installed into a temporary folder.
A source with the comment `// solc: viaIR` is compiled by way of the intermediate representation.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

ROOT: Final = Path(__file__).parents[1]
PACKAGE_FILES: Final = tuple((ROOT / "tools" / "solidity").glob("package*.json"))
EVM_VERSION: Final = "paris"
"""The oldest rules among the supported chains' forks: newer opcodes than these are not used."""
OPTIMIZER_RUNS: Final = 200
VIA_IR_COMMENT: Final = "// solc: viaIR"

# reads a list of compiler inputs, and writes the list of their outputs
_PROGRAM: Final = """
const solc = require("solc");
const inputs = JSON.parse(require("fs").readFileSync(0, "utf8"));
const outputs = inputs.map((input) => JSON.parse(solc.compile(JSON.stringify(input))));
process.stdout.write(JSON.stringify({ version: solc.version(), outputs }));
"""
_IMPORT: Final = re.compile(r'^import\s[^"]*"(\.[^"]+)";', re.MULTILINE)


class CompilationFailed(Exception):
    """The compiler found errors or warnings, which the message lists."""


def find_sources(folders: Iterable[Path]) -> list[Path]:
    """Return the Solidity sources in folders and below, sorted."""
    return sorted(source for folder in folders for source in folder.rglob("*.sol"))


def compile_sources(sources: Iterable[Path], packages: Path) -> dict[Path, str]:
    """Compile sources with the compiler in a folder of npm packages.

    Returns the text of each artefact by file. Raises `CompilationFailed`; a warning is a failure too.
    """
    files = list(sources)
    inputs = [build_compiler_input(file) for file in files]
    result = subprocess.run(
        ["node", "-e", _PROGRAM],
        input=json.dumps(inputs),
        cwd=packages,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(result.stdout)
    return {
        file.with_suffix(".json"): _render_artefact(file, settings, output, answer["version"])
        for file, settings, output in zip(files, inputs, answer["outputs"], strict=True)
    }


def build_compiler_input(source: Path) -> dict[str, Any]:
    """Return the input of one source alone: others beside it must not change its bytecode."""
    text = source.read_text()
    return {
        "language": "Solidity",
        "sources": {name: {"content": content} for name, content in _read_with_imports(source).items()},
        "settings": {
            "evmVersion": EVM_VERSION,
            "optimizer": {"enabled": True, "runs": OPTIMIZER_RUNS},
            "viaIR": VIA_IR_COMMENT in text,
            # no hash of paths and comments in the code
            "metadata": {"appendCBOR": False, "bytecodeHash": "none"},
            "outputSelection": {
                source.name: {"*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]}
            },
        },
    }


def hash_sources(compiler_input: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all sources of a compiler input."""
    text = "".join(source["content"] for source in compiler_input["sources"].values())
    return sha256(text.encode()).hexdigest()


def install_compiler(folder: Path) -> None:
    """Install the compiler into a folder."""
    for file in PACKAGE_FILES:
        shutil.copy(file, folder)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    subprocess.run(command, cwd=folder, check=True)


def main(arguments: list[str]) -> None:
    folders = [Path(argument).resolve() for argument in arguments] or [ROOT / "src", ROOT / "tests"]
    with tempfile.TemporaryDirectory(prefix="centgate-solc-") as packages:
        install_compiler(Path(packages))
        try:
            artefacts = compile_sources(find_sources(folders), Path(packages))
        except CompilationFailed as failure:
            sys.exit(str(failure))
    for file, text in artefacts.items():
        file.write_text(text)
        print(file)


def _read_with_imports(source: Path) -> dict[str, str]:
    """Return a source and its imports, by path relative to the source's folder."""
    contents: dict[str, str] = {}
    names = [source.name]
    while names:
        name = names.pop()
        if name not in contents:
            contents[name] = (source.parent / name).read_text()
            imports = _IMPORT.findall(contents[name])
            names += [posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for path in imports]
    return dict(sorted(contents.items()))


def _render_artefact(
    source: Path, compiler_input: Mapping[str, Any], output: Mapping[str, Any], version: str
) -> str:
    if errors := [error["formattedMessage"] for error in output.get("errors", ())]:
        raise CompilationFailed("\n".join(errors))
    artefact = {
        "compiler": {"name": "solc", "version": version},
        "contracts": {
            name: {
                "abi": contract["abi"],
                "initcode": "0x" + contract["evm"]["bytecode"]["object"],
                "runtimeCode": "0x" + contract["evm"]["deployedBytecode"]["object"],
            }
            for name, contract in output["contracts"][source.name].items()
            # interfaces and abstract contracts have no code
            if contract["evm"]["bytecode"]["object"]
        },
        "settings": {name: compiler_input["settings"][name] for name in ("evmVersion", "optimizer", "viaIR")},
        "sourceSha256": hash_sources(compiler_input),
    }
    return _render_json(artefact, depth=4) + "\n"


def _render_json(value: Any, depth: int, indent: str = "") -> str:
    """Render objects and lists with a line for each member down to a depth, deeper ones on one line."""
    if depth == 0 or not value or not isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True)
    inner = indent + " "
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        lines = [f'{inner}"{key}": {_render_json(members[key], depth - 1, inner)}' for key in sorted(members)]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    lines = [inner + _render_json(member, depth - 1, inner) for member in cast("list[Any]", value)]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]"


if __name__ == "__main__":
    main(sys.argv[1:])
