"""Deployment on the development chain whose services all return their examples, for the whole session."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from example_deployment import PAYER, run_with_examples
from node_packages import install_packages
from node_runner import NodeRunner

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot

CLIENTS = Path(__file__).parents[2] / "clients"


@pytest.fixture(scope="session")
def deployment(devchain: DevChain, tmp_path_factory: pytest.TempPathFactory) -> Generator[ApiSnapshot]:
    """Deployment data that the website reads from the API."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        with run_with_examples(devchain_settings(devchain, Settings(port=0), folder)) as url:
            yield read_snapshot(url, None)


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Environment of a buyer who runs a code sample: a wallet, and a separate home."""
    return build_environment(tmp_path)


def build_environment(home: Path) -> dict[str, str]:
    """Write a wallet into a home folder, and return the environment of the buyer who has it."""
    wallet = home / "wallet"
    wallet.write_text(PAYER.private_key + "\n")
    wallet.chmod(0o600)
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("CENTGATE_", "XDG_"))
    }
    return {
        **inherited,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CENTGATE_WALLET": str(wallet),
    }


@pytest.fixture(scope="module")
def node_runner(typescript_client: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[NodeRunner]:
    """A Node process that runs programs in the folder of the TypeScript client; it must end by itself."""
    runner = NodeRunner(typescript_client, build_environment(tmp_path_factory.mktemp("buyer")))
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the npm packages of the TypeScript sample; skips without npm."""
    return install_packages(tmp_path_factory, "clients", CLIENTS.glob("*.json"), "ci")
