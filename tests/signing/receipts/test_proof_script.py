"""Keccak-256, secp256k1 and EIP-712 of the website's script, compared with the server's libraries."""

# coincurve and pysha3 are typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import sha3
from coincurve import PrivateKey
from signed_receipts import BODY, SIGNER, signed_payment_required, signed_settle_response

from centgate.signing.eip3009 import derive_address, recover_signer
from centgate.signing.receipts.typed_data import ANSWER, OFFER, RECEIPT

pytestmark = pytest.mark.extended

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
Run = Callable[[str, Any], Any]


@pytest.fixture
def run_script(tmp_path: Path) -> Run:
    """Evaluate an expression in Node for an input, with the script imported as `proof`."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on this machine")
    script = files("centgate.website") / "assets" / "proof.js"
    (tmp_path / "proof.mjs").write_bytes(script.read_bytes())

    def evaluate(expression: str, options: Any) -> Any:
        code = (
            'import { readFileSync } from "node:fs";\n'
            f'import * as proof from "{(tmp_path / "proof.mjs").as_uri()}";\n'
            "const bytes = (text) => Uint8Array.from(Buffer.from(text, 'hex'));\n"
            "const given = JSON.parse(readFileSync(0));\n"
            f"console.log(JSON.stringify({expression}));\n"
        )
        command = [node, "--input-type=module", "-e", code]
        done = subprocess.run(
            command, input=json.dumps(options), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return evaluate


def test_hash_is_keccak_256(run_script: Run) -> None:
    chance = random.Random(402)
    lengths = [*range(300), 1000, 5000]
    inputs = [chance.randbytes(length) for length in lengths]

    hashes = run_script(
        "given.map((each) => proof.hex(proof.keccak(bytes(each))))", [each.hex() for each in inputs]
    )

    assert hashes == ["0x" + sha3.keccak_256(each).hexdigest() for each in inputs]


def test_recovered_signer_matches_coincurve(run_script: Run) -> None:
    chance = random.Random(402)
    signed: list[tuple[bytes, bytes, str]] = []
    for _ in range(80):
        key, digest = chance.randbytes(32), chance.randbytes(32)
        compact = PrivateKey(key).sign_recoverable(digest, hasher=None)
        v = compact[64] + chance.choice([0, 27])
        signed.append((digest, compact[:64] + bytes([v]), derive_address(key)))

    found = run_script(
        "given.map(([digest, signature]) => proof.recover(bytes(digest), bytes(signature)))",
        [(digest.hex(), signature.hex()) for digest, signature, _ in signed],
    )

    assert found == [address for *_, address in signed]


def odd_signatures() -> list[tuple[bytes, bytes]]:
    """Return invalid and unusual signatures over one digest, and those at the limits."""
    digest = bytes(range(32))
    good = PrivateKey(b"\x5e" * 32).sign_recoverable(digest, hasher=None)
    r, s = good[:32], good[32:64]
    numbers = [0, 1, 2, 3, 5, ORDER - 1, ORDER, ORDER + 1, ORDER // 2, ORDER // 2 + 1, 2**256 - 1]
    words = [each.to_bytes(32, "big") for each in numbers]
    high = (ORDER - int.from_bytes(s, "big")).to_bytes(32, "big")
    pairs = [(each, s) for each in words] + [(r, each) for each in words] + [(r, high), (s, r)]
    tails = [bytes([v]) for v in (0, 1, 2, 26, 27, 28, 29, 255)] + [b"", b"\x1b\x00"]
    odd = [(digest, one + other + bytes([27])) for one, other in pairs]
    return odd + [(each, r + s + tail) for tail in tails for each in (digest, bytes(32), b"\xff" * 32)]


def test_signatures_refused_by_coincurve_are_refused(run_script: Run) -> None:
    odd = odd_signatures()

    found = run_script(
        "given.map(([digest, signature]) => proof.recover(bytes(digest), bytes(signature)))",
        [(digest.hex(), signature.hex()) for digest, signature in odd],
    )

    assert found == [recover_signer(digest, signature) for digest, signature in odd]
    assert None in found


def test_signer_of_each_statement_is_recovered(run_script: Run) -> None:
    settled, required = signed_settle_response(body=BODY), signed_payment_required()
    signed = [
        (OFFER, required["extensions"]["offer-receipt"]["info"]["offers"][0]),
        (RECEIPT, settled["extensions"]["offer-receipt"]["info"]["receipt"]),
        (ANSWER, settled["extensions"]["centgate-answer"]["info"]["answer"]),
    ]

    found = run_script(
        "given.map(([statement, signed]) => proof.parseSigned(statement, signed))",
        [({**asdict(kind), "fields": list(kind.fields.items())}, each) for kind, each in signed],
    )

    assert [each["signer"] for each in found] == [SIGNER.address.lower()] * 3
    assert [each["digest"] for each in found] == [
        "0x" + statement.digest(each["payload"]).hex() for statement, each in signed
    ]
