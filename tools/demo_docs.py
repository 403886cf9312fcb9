"""Write docs/demo.md: the output of `centgate demo`, without the values that differ in each run.

.venv/bin/python tools/demo_docs.py

Step 7 reads documentation from a package index, so the index must be reachable.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from centgate.cli.demo.web import NO_REGISTRY

PAGE = Path(__file__).parent.parent / "docs" / "demo.md"
PACKAGE_INDEX_STEP = re.compile(r"^7\. .*?(?=^8\. )", re.MULTILINE | re.DOTALL)
"""The step whose output depends on the package index."""
_INTRODUCTION = """# The demonstration

`make demo` (or `centgate demo`) acts as a buyer against a complete deployment on this machine: an EVM in the
process, a facilitator, the API, and a small website that is fetched. It needs no key and no account. It
checks each step and ends with exit code 1 if one does not do what it says. Step 7 reads from a package index
and is skipped if none answers.

This page is written by `make docs`. Ports, ids and transactions differ in each run; here they are replaced by
fixed ones.

````text
"""


class DemoFailed(RuntimeError):
    """The demonstration ended with an error."""


def render_page(environment: Mapping[str, str] = os.environ) -> str:
    """Run the demonstration and return the page. Raises DemoFailed."""
    command = [sys.executable, "-m", "centgate", "demo"]
    fixed = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, env={**environment, **fixed}, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode != 0:
        raise DemoFailed(done.stdout + done.stderr)
    return f"{_INTRODUCTION}{normalize(done.stdout)}````\n"


def normalize(output: str) -> str:
    """Replace ports, ids, transactions and the age of the phishing list by fixed values."""
    port = re.compile(r"(?<=127\.0\.0\.1:)\d{5}")
    fixed = {
        found: f"4000{number}" for number, found in enumerate(dict.fromkeys(port.findall(output)), start=1)
    }
    output = port.sub(lambda match: fixed[match[0]], output)
    output = re.sub(r"\b0x[0-9a-f]{64}\b", "0x" + "5e" * 32, output)
    output = re.sub(r"\breq_[0-9a-f]{24}\b", "req_" + "5e" * 12, output)
    output = re.sub(r"[0-9,]+ days old", "1,678 days old", output)
    return "\n".join(line.rstrip() for line in output.splitlines()) + "\n"


def remove_package_index_step(page: str) -> str:
    """Return the page without the step that depends on a package index."""
    return PACKAGE_INDEX_STEP.sub("", page)


def main() -> None:
    """Write the page."""
    page = render_page()
    if NO_REGISTRY in page:
        sys.exit("demo_docs: no package index answers, so the page would lack step 7")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
