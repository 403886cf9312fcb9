"""Key files: spellings of the key, permissions, and messages for unusable files."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from centgate.client.errors import WalletUnreadable
from centgate.client.settings import BuyerSettings
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.signing.eip3009 import recover_signer

KEY, ADDRESS = BUYER_ACCOUNTS[0].private_key, BUYER_ACCOUNTS[0].address
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A valid key file."""
    path = tmp_path / "wallet"
    path.write_text(KEY + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("text", [KEY, KEY[2:], KEY.upper().replace("0X", "0x"), f"  {KEY}\n\n"])
def test_key_is_read_in_each_spelling(file: Path, text: str) -> None:
    file.write_text(text)

    assert Wallet.from_file(file).address == ADDRESS
    assert Wallet.from_key(text).address == ADDRESS


def test_wallet_signs_as_its_address() -> None:
    digest = bytes(range(32))

    assert recover_signer(digest, Wallet.from_key(KEY).sign(digest)) == ADDRESS.lower()


def test_key_is_never_shown() -> None:
    wallet = Wallet.from_key(KEY)

    assert KEY[2:10] not in f"{wallet!r} {wallet} {wallet!s}"
    with pytest.raises(TypeError):
        pickle.dumps(wallet)
    with pytest.raises(TypeError):
        copy.deepcopy(wallet)


@posix
def test_new_wallet_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "wallet"
    before = os.umask(0)
    try:
        wallet = Wallet.new(path)
    finally:
        os.umask(before)

    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert Wallet.from_file(path).address == wallet.address
    assert path.read_text().count("\n") == 1


def test_new_wallets_differ(tmp_path: Path) -> None:
    assert Wallet.new(tmp_path / "a").address != Wallet.new(tmp_path / "b").address


def test_key_is_never_overwritten(file: Path) -> None:
    with pytest.raises(WalletUnreadable, match="never overwritten"):
        Wallet.new(file)

    assert Wallet.from_file(file).address == ADDRESS


def test_dangling_link_is_not_followed_on_write(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(WalletUnreadable, match="already exists"):
        Wallet.new(tmp_path / "link")

    assert not (tmp_path / "nowhere").exists()


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WalletUnreadable, match="cannot be written"):
        Wallet.new(tmp_path / "file" / "wallet")


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o666, 0o620, 0o610])
def test_file_with_wide_permissions_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    with pytest.raises(WalletUnreadable, match=f"chmod 600 {file}"):
        Wallet.from_file(file)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_private_file_is_read(file: Path, mode: int) -> None:
    file.chmod(mode)

    assert Wallet.from_file(file).address == ADDRESS


def test_link_to_key_file_is_accepted(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)

    assert Wallet.from_file(tmp_path / "link").address == ADDRESS


BAD = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "short": (KEY[:-1], "64 hex digits"),
    "long": (KEY + "0", "64 hex digits"),
    "words": ("test test test junk", "64 hex digits"),
    "two keys": (KEY + "\n" + KEY, "64 hex digits"),
    "no digits": ("0x" + "g" * 64, "64 hex digits"),
    "zero": ("0x" + "0" * 64, "not a secp256k1 private key"),
    "beyond the curve": ("0x" + "f" * 64, "not a secp256k1 private key"),
    "a long file": ("0" * 5000, "64 hex digits"),
    "not ascii": ("ключ", "one line of hex"),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_invalid_key_is_refused_and_not_repeated(file: Path, text: str, says: str) -> None:
    file.write_text(text)

    with pytest.raises(WalletUnreadable, match=says) as error:
        Wallet.from_file(file)

    assert not text.strip() or text.strip() not in str(error.value)
    assert error.value.money == "not_moved"


def test_text_in_place_of_bytes_is_refused_with_advice() -> None:
    key: Any = "0x" + "12" * 32

    with pytest.raises(WalletUnreadable, match="from_key") as error:
        Wallet(key)

    assert key not in str(error.value)


def test_key_in_place_of_path_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "0x" + "12" * 32
    monkeypatch.setenv("CENTGATE_WALLET", key)

    with pytest.raises(WalletUnreadable, match="from_key") as of_file:
        Wallet.from_file(key)
    with pytest.raises(ValidationError, match="CENTGATE_WALLET_KEY") as of_settings:
        BuyerSettings()

    assert key not in f"{of_file.value} {of_settings.value}"


def test_refused_cap_does_not_repeat_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "0x" + "12" * 32
    monkeypatch.setenv("CENTGATE_WALLET_KEY", key)
    monkeypatch.setenv("CENTGATE_CAP_TOTALS", "0.05")

    with pytest.raises(ValidationError, match="CENTGATE_CAP_TOTALS is not a cap") as refusal:
        BuyerSettings()

    assert key not in f"{refusal.value} {refusal.value.errors()} {refusal.value.json()}"


def test_missing_file_is_reported_with_advice(tmp_path: Path) -> None:
    with pytest.raises(WalletUnreadable, match="centgate wallet new"):
        Wallet.from_file(tmp_path / "none")


def test_folder_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(WalletUnreadable, match="not a file"):
        Wallet.from_file(tmp_path)


@posix
def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    with pytest.raises(WalletUnreadable, match="not a file"):
        Wallet.from_file(tmp_path / "pipe")


def test_environment_key_takes_precedence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(file))
    monkeypatch.setenv("CENTGATE_WALLET_KEY", BUYER_ACCOUNTS[1].private_key)
    settings = BuyerSettings()

    wallet = settings.open_wallet()

    assert wallet
    assert wallet.address == BUYER_ACCOUNTS[1].address
    assert BUYER_ACCOUNTS[1].private_key[2:] not in repr(settings)


def test_key_file_is_set_by_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(file))

    wallet = BuyerSettings().open_wallet()

    assert wallet
    assert wallet.address == ADDRESS


def test_without_key_there_is_no_wallet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    assert BuyerSettings().open_wallet() is None


def test_missing_named_file_is_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_WALLET", str(tmp_path / "none"))

    with pytest.raises(WalletUnreadable, match="no key file"):
        BuyerSettings().open_wallet()


def test_env_file_does_not_choose_payee(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("CENTGATE_API_URL=http://evil.internal\nCENTGATE_CAP_TOTAL=1000\n")
    monkeypatch.chdir(tmp_path)

    settings = BuyerSettings()

    assert (settings.api_url, str(settings.cap_total)) == ("http://127.0.0.1:8402", "1.00")


def test_client_is_configured_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_API_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("CENTGATE_LEDGER", str(tmp_path / "ledger"))

    with Centgate.from_settings() as client:
        assert (client.api, client.ledger.path) == ("http://127.0.0.1:9", tmp_path / "ledger")
