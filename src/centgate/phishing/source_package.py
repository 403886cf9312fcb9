"""Source of the shipped list: one npm package, pinned by the hash of its bytes."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from base64 import b64encode
from hashlib import sha512
from pathlib import Path
from typing import Final

from centgate.phishing.snapshot import ImportedList, import_list

PACKAGE: Final = "eth-phishing-detect@1.2.0"
INTEGRITY: Final = (
    "sha512-+M7D4dhu5tkSA9b5eiBwDeJCjwy+7Lv49nuTEw8fNZIZUAVZC3d2XHatBq1MOW7J8kxNGbBdgBuIf65opI7Tkg=="
)
DATE: Final = "2022-04-19"
"""Date of the newest entries: the package has no date, and archives made by npm have no real ones."""
SINGLE_LABELS: Final = ("com12786312634", "iclexofmarket")
"""Single labels in the list that are not top-level domains, so they are harmless."""


class PackageUnavailable(Exception):
    """The package cannot be fetched, or is not the pinned one; the message says which."""


def fetch_package() -> bytes:
    """Fetch the package with npm and check it against the pinned hash. Raises `PackageUnavailable`."""
    npm = shutil.which("npm")
    if npm is None:
        raise PackageUnavailable(f"npm is not on the PATH; it is needed to fetch {PACKAGE}")
    # outside of any project, because npm would apply the project's settings
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--pack-destination", folder, "--silent"]
        try:
            subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
        except subprocess.TimeoutExpired:
            raise PackageUnavailable(f"npm did not fetch {PACKAGE} within two minutes") from None
        except subprocess.CalledProcessError as error:
            raise PackageUnavailable(f"npm could not fetch {PACKAGE}: {error.stderr.strip()}") from None
        return verify_integrity(next(Path(folder).glob("*.tgz")).read_bytes())


def verify_integrity(archive: bytes) -> bytes:
    """Return the archive if it is the pinned one. Raises `PackageUnavailable`."""
    integrity = f"sha512-{b64encode(sha512(archive).digest()).decode()}"
    if integrity != INTEGRITY:
        raise PackageUnavailable(f"{PACKAGE} has the integrity {integrity}, not the pinned {INTEGRITY}")
    return archive


def import_package(archive: bytes) -> ImportedList:
    """Build a snapshot from the pinned package."""
    config = read_member(archive, "package/src/config.json")
    return import_list(config, source=f"npm {PACKAGE}", date=DATE, single_labels=SINGLE_LABELS)


def read_licence(archive: bytes) -> bytes:
    """Return the licence of the list."""
    return read_member(archive, "package/LICENSE")


def read_member(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as package:
        content = package.extractfile(name)
        assert content is not None, f"{name} is a file of the pinned package"
        return content.read()
